import type { Admission } from "../admission/admission.js";
import type { ServedType } from "../builtin/served-type.js";
import { compareVersions } from "../builtin/versions.js";
import { elapsedMs, sleep } from "../clock.js";
import { NumberRangeError, parseObjectBody } from "../decode/body.js";
import {
  type DeleteOptions,
  type WriteOptions,
  fieldManagerOf,
  invalidResourceVersionText,
  isUint64,
  parseDeleteOptions,
  parseListOptions,
  parseWriteOptions,
} from "../decode/options.js";
import { BodySyntaxError } from "../errors/decode-errors.js";
import { type StatusError, badRequest, notFound, plainError, tooLargeResourceVersion } from "../errors/status-error.js";
import type { Identity } from "../identity/authenticator.js";
import type { UserInfo } from "../identity/user.js";
import { type JsonObject, type JsonValue, isObject, objectAt, stringAt } from "../json.js";
import { checkPathName, keyOf, resourceRefOf } from "../object/object-meta.js";
import { settled } from "../pending-conversion.js";
import { prepareList } from "../read/list.js";
import { checkSelectorSyntax } from "../read/selectors.js";
import { type EventWriter, jsonEventWriter, prepareWatch } from "../read/watch.js";
import type { Registry, ServedResource } from "../registry/registry.js";
import type { ResourceStore, StoredObject } from "../storage/store.js";
import { decodeObject, typeMetaMisfit } from "../write/decode-object.js";
import { type DeleteResult, deleteCollection, deleteObject } from "../write/delete.js";
import { applyObject, patchObject, patchTypeOf } from "../write/patch.js";
import { type WriteContext, type WriteResult, attemptWrite, checkPlace, renewable } from "../write/write-context.js";
import { createObject, updateObject } from "../write/write-object.js";
import {
  type RenderContext,
  negotiate,
  partialEventWriter,
  renderList,
  renderObject,
  renderValue,
  tableEventWriter,
} from "./representation.js";
import type { Answer, ApiRequest, StreamAnswer } from "./request-info.js";

/** A request for a served resource. */
export interface ResourceRequest {
  registry: Registry;
  /** The admission chain for writes. */
  admission: Admission;
  /** Authentication and authorization, for reviews and TokenRequests. */
  identity: Identity;
  request: ApiRequest;
  /** The effective user, after impersonation. */
  user: UserInfo;
  resource: ServedResource;
  namespace: string | undefined;
  /** "" for a collection. */
  name: string;
  /** "" on the main endpoint. */
  subresource: string;
  /** Collects the `Warning` headers. */
  warnings: string[];
}

/** Builds the context of a write. */
export function writeContextOf(on: ResourceRequest, options: WriteOptions): WriteContext {
  const { registry, admission, resource, namespace, warnings, request, user } = on;
  return {
    registry,
    resource,
    namespace,
    manager: fieldManagerOf(options, request.headers["user-agent"]),
    user,
    options: options.given,
    isDryRun: options.isDryRun,
    admission,
    fieldValidation: options.fieldValidation,
    integers: [],
    warnings,
    auditAnnotations: request.auditAnnotations,
  };
}

/** Negotiates the representation of the response. Throws 406 if the client accepts none. */
export function renderContextOf(on: ResourceRequest, { isList = false, isWatch = false } = {}): RenderContext {
  const { request, resource, warnings } = on;
  const { type } = resource;
  const representation = negotiate(
    {
      accept: request.headers.accept,
      userAgent: request.headers["user-agent"],
      pretty: request.query.get("pretty"),
    },
    { isCustom: type.custom !== undefined, isList, isWatch, goType: goTypeOf(type, isList) },
  );
  return { resource, representation, query: request.query, warnings };
}

// The package of a Go type is named after the first part of its group.
function goTypeOf({ custom, group, kind, listKind }: ServedType, isList: boolean): string {
  if (custom !== undefined) return `unstructured.Unstructured${isList ? "List" : ""}`;
  return `${group.split(".")[0] || "core"}.${isList ? listKind : kind}`;
}

const DEPRECATED_OF_CORE: Record<string, string> = {
  componentstatuses: "v1 ComponentStatus is deprecated in v1.19+",
  endpoints: "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
};

/** Returns the deprecation warning of a kind, or of a version of a custom resource; undefined if it is not deprecated. */
export function deprecationWarningOf(
  { type }: ServedResource,
  subresource: string,
  registry: Registry,
): string | undefined {
  // The deprecated core kinds have no subresources.
  if (type.group === "") return subresource === "" ? DEPRECATED_OF_CORE[type.plural] : undefined;
  const version = type.custom?.version;
  if (version === undefined || version["deprecated"] !== true) return undefined;
  const own = stringAt(version, "deprecationWarning");
  if (own !== undefined) return own;
  const better = registry.types
    .filter((other) => other.group === type.group && other.plural === type.plural)
    .filter((other) => other.custom?.version["deprecated"] !== true && compareVersions(other.version, type.version) < 0)
    .sort((a, b) => compareVersions(a.version, b.version))[0];
  const advice = better === undefined ? "" : `; use ${better.group}/${better.version} ${better.kind}`;
  return `${type.group}/${type.version} ${type.kind} is deprecated${advice}`;
}

const FUTURE_WAIT_MS = 3_000;
const POLL_MS = 20;

/** Handles a GET of an object or one of its subresources. `render` selects the representation. */
export async function readObject(
  on: ResourceRequest,
  render = (context: RenderContext, object: StoredObject): Answer => renderObject(context, 200, object),
): Promise<Answer> {
  const { resource, name, namespace, request } = on;
  const context = renderContextOf(on);
  checkPathName(name);
  await reachRevision(resource.store, request.query.get("resourceVersion") ?? "");
  const stored = resource.store.get(keyOf({ namespace, name }));
  if (stored === undefined) throw missing(resource.type, name);
  // As in kube-apiserver, a GET calls the conversion webhook each time; only lists and watches use cached conversions.
  const refreshed = resource.refresh(stored);
  if (refreshed !== undefined) await refreshed;
  return render(context, resource.read(stored));
}

// For a ComponentStatus, Kubernetes uses the singular resource name in this error.
function missing(type: ServedType, name: string): StatusError {
  const ref = resourceRefOf(type, name);
  return notFound(type.kind === "ComponentStatus" ? { ...ref, resource: "componentstatus" } : ref);
}

/** Handles a list. */
export async function readList(on: ResourceRequest): Promise<Answer> {
  const { resource, namespace, request } = on;
  const context = renderContextOf(on, { isList: true });
  const options = parseListOptions(request.query, { isWatch: false, checkSyntax: checkSelectorSyntax });
  const list = prepareList(resource, { ...options, namespace });
  await reachRevision(resource.store, options.resourceVersion);
  const page = settled(list);
  return renderList(context, page instanceof Promise ? await page : page);
}

/** Handles a watch. */
export function readWatch(on: ResourceRequest): StreamAnswer {
  const { resource, namespace, request, warnings } = on;
  const context = renderContextOf(on, { isList: true, isWatch: true });
  const { watchedName } = request.target ?? {};
  const query = new URLSearchParams(request.query);
  if (watchedName !== undefined) query.set("fieldSelector", `metadata.name=${watchedName}`);
  const options = parseListOptions(query, { isWatch: true, checkSyntax: checkSelectorSyntax });
  const writer = eventWriterOf(context);
  return {
    kind: "stream",
    contentType: "application/json",
    warnings,
    open: prepareWatch({ resource, namespace, options, writer }),
  };
}

function eventWriterOf({ resource, representation, query }: RenderContext): EventWriter {
  const { as, metaVersion } = representation;
  if (as === "Table") return tableEventWriter(resource, { query, version: metaVersion });
  return as === "PartialObjectMetadata" ? partialEventWriter(resource, metaVersion) : jsonEventWriter(resource);
}

// Waits until the store reaches the requested revision; 504 if it does not, for example because the revision is from another server.
async function reachRevision(store: ResourceStore, resourceVersion: string): Promise<void> {
  if (resourceVersion === "" || resourceVersion === "0") return;
  if (!isUint64(resourceVersion)) throw plainError(invalidResourceVersionText(resourceVersion));
  const revision = Number(resourceVersion);
  const deadline = elapsedMs() + FUTURE_WAIT_MS;
  while (store.revision < revision) {
    if (elapsedMs() >= deadline) throw tooLargeResourceVersion(resourceVersion, String(store.revision));
    await sleep(POLL_MS);
  }
}

/** Handles a create. */
export async function writeCreate(on: ResourceRequest): Promise<Answer> {
  const render = renderContextOf(on);
  const context = writeContextOf(on, parseWriteOptions(on.request.query, "CreateOptions"));
  const body = renewable(decodeBody(on, context), () => decodeBody(on, context));
  return renderResult(render, await attemptWrite(context, on.name, () => createObject(context, body())));
}

/** Handles a PUT of an object, its status, or the finalizers of a namespace. */
export async function writeUpdate(on: ResourceRequest): Promise<Answer> {
  const { request, resource, name, subresource } = on;
  const render = renderContextOf(on);
  const context = writeContextOf(on, parseWriteOptions(request.query, "UpdateOptions"));
  const object = decodeBody(on, context);
  checkPlace(context, name, object);
  const next = renewable(object, () => decodeBody(on, context));
  const change = (): { object: JsonObject; isTracked: boolean } => ({ object: next(), isTracked: false });
  const canCreate = resource.type.strategy.createsOnUpdate && subresource === "";
  const result = await updateObject(context, {
    name,
    subresource,
    isPut: true,
    change,
    ...(canCreate ? { create: change } : {}),
  });
  return renderResult(render, result);
}

/** Handles a PATCH of an object or its status. */
export async function writePatch(on: ResourceRequest): Promise<Answer> {
  const { request, resource, name, subresource } = on;
  const render = renderContextOf(on);
  const patchType = patchTypeOf(resource.type, request.headers["content-type"]);
  const options = parseWriteOptions(request.query, "PatchOptions", { isApply: patchType === "apply" });
  const context = writeContextOf(on, options);
  const { body } = request;
  const result =
    patchType === "apply"
      ? applyObject(context, { name, subresource, body, force: options.force })
      : patchObject(context, { name, subresource, patchType, body });
  return renderResult(render, await result);
}

/** Handles a delete. */
export async function writeDelete(on: ResourceRequest): Promise<Answer> {
  const { resource, name } = on;
  const render = renderContextOf(on);
  const options = parseDeleteOptions(deleteBody(on), on.request.query);
  const result = await deleteObject(deleteContextOf(on, options), name, options);
  const answersObject = !result.isGone || resource.type.strategy.returnsDeletedObject;
  return answersObject ? renderObject(render, 200, result.object) : renderValue(render, 200, deletedStatus(on, result));
}

/** Handles a deletecollection. */
export async function writeDeleteCollection(on: ResourceRequest): Promise<Answer> {
  const { request } = on;
  const render = renderContextOf(on, { isList: true });
  const deletion = parseDeleteOptions(deleteBody(on), request.query);
  const list = parseListOptions(request.query, { isWatch: false, checkSyntax: checkSelectorSyntax });
  return renderList(render, await deleteCollection(deleteContextOf(on, deletion), { deletion, list }));
}

/** Decodes the object in a request body. `adjust` may change the parsed value in place before it is decoded. */
export function decodeBody(
  { request }: ResourceRequest,
  context: WriteContext,
  adjust: (body: JsonValue) => void = () => {},
): JsonObject {
  return decodeObject(context, request.body, () => {
    const parsed = parseObjectBody(request.body, request.headers["content-type"]);
    adjust(parsed.value);
    return parsed;
  });
}

function renderResult(render: RenderContext, { status, object }: WriteResult): Answer {
  return renderObject(render, status, object);
}

function deleteContextOf(on: ResourceRequest, { isDryRun, given }: DeleteOptions): WriteContext {
  return writeContextOf(on, { isDryRun, fieldManager: "", fieldValidation: "Ignore", force: false, given });
}

function deleteBody({ request }: ResourceRequest): JsonObject | undefined {
  if (request.body.length === 0) return undefined;
  try {
    const { value } = parseObjectBody(request.body, request.headers["content-type"]);
    if (isObject(value) || value === null) return value ?? undefined;
    throw new BodySyntaxError(typeMetaMisfit(value));
  } catch (error) {
    if (!(error instanceof BodySyntaxError || error instanceof NumberRangeError)) throw error;
    throw badRequest(`couldn't get version/kind; json parse error: ${error.message}`);
  }
}

function deletedStatus({ resource, name }: ResourceRequest, { object }: DeleteResult): JsonObject {
  const { group, plural } = resource.type;
  const uid = stringAt(objectAt(object.object, "metadata"), "uid") ?? "";
  return {
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Success",
    details: { name, ...(group === "" ? {} : { group }), kind: plural, uid },
  };
}
