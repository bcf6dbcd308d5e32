// A write of the controller as a value: what it sends, and what it makes of the live object. Nothing here makes a request; see Sender.
import { isDeepStrictEqual } from "node:util";
import {
  type JsonObject,
  type JsonValue,
  applyJsonPatch,
  applyMergePatch,
  isJsonObject,
  memberOf,
} from "@gen-operator/schema";
import { type ChangedPaths, EXTERNAL_KIND, type PostponedWrite, type WrittenFor } from "../base/activity.js";
import { RetryAfterError } from "../base/errors.js";
import {
  type DecodedResource,
  type Draft,
  type FieldManagers,
  type JsonPatchOperation,
  type KubernetesObject,
  type ObjectBody,
  type ObjectRef,
  type ResourceDefinition,
  type WriteVerb,
  describeObject,
} from "../base/kubernetes-object.js";
import type { Logger } from "../base/logger.js";
import { CONTROLLER_LABEL } from "../base/primary-link.js";
import type { ResourceView } from "../cache/resource-view.js";
import type { WriteRequest } from "../client/api-client.js";
import { genericDifferences } from "./generic-matcher.js";
import { hasForeignChange, plainOf } from "./match.js";
import { schemaOf } from "./owned-fields.js";

const VERSION_PATH = "/metadata/resourceVersion";

/** What a write goes to: an object, or the status of one. */
export type WritePart = "object" | "status";

/** Paths of fields that belong to another controller, such as `spec.replicas`. */
export type ReleasedPaths = readonly string[];

/** One write of one object, and the state that it was computed from. */
export interface Write<Before extends DecodedResource | undefined = DecodedResource | undefined> {
  readonly target: WriteTarget;
  readonly verb: WriteVerb;
  readonly ref: ObjectRef;
  /** `status` also if the kind has no status subresource. */
  readonly part: WritePart;
  /** The object or the patch that is sent. */
  readonly body: object;
  /** What is compared, learned from the answer, and counted in write loops: the body without what only this request needs, such as a uid. */
  readonly desired: object;
  /** The live object in the cache; undefined for a creation. */
  readonly before: Before;
  /** The object that a JSON patch was computed from. */
  readonly given?: KubernetesObject;
  /** The version of the object that the caller read. */
  readonly version: string | undefined;
  /** The version that is sent: the write fails with a conflict if the object has another one. */
  readonly lock: string | undefined;
  readonly released?: ReleasedPaths | undefined;
  readonly cause?: WriteCause | undefined;
  /** False: the event of the write causes a reconcile, like the event of any other client's write. Default: true */
  readonly isFiltered?: boolean;
  /** Whether the write is sent even if its object is in a write loop. */
  readonly isUrgent?: boolean;
}

/** A kind that is written, and the view through which the controller sees its objects. */
export interface WriteTarget {
  readonly definition: ResourceDefinition;
  readonly cache: ResourceView;
}

/** For what a write is made, and who is notified of it. */
export interface WriteCause extends WrittenFor {
  /** Aborts the write when its step or its reconcile is aborted. */
  readonly signal?: AbortSignal | undefined;
  /** Gets a line for every write that changed something. */
  readonly logger?: Logger | undefined;
  /** Whether another client changed a secondary resource before: a status may follow that more often than a write may repeat. */
  readonly followsEvent?: boolean;
  /** Called for every write that changed an object. `pathsOf` takes the most paths to return, and costs as much as the match did. */
  readonly onChange?: ((pathsOf: ChangedPaths) => void) | undefined;
  /** Counted in write loops in place of the content, if that differs each time because of a time in it. Default: the content */
  readonly statement?: object | undefined;
  /** Names the write loops that the write may belong to, where some writes of an object have loops of their own. */
  readonly loop?: string | undefined;
  readonly onWritten?: ((write: OwnWrite) => void) | undefined;
  /** Called for an aborted write that the API server may still execute, and so create its object. */
  readonly onGivenUp?: (() => void) | undefined;
}

/** The cause of a write that is made for a primary. */
export type PrimaryCause = WriteCause & { readonly primary: KubernetesObject };

/** A write of a primary by its own controller. */
export interface OwnWrite {
  readonly part: WritePart;
  readonly fieldManager: string;
  /** Absent if the client of the user wrote the primary. */
  readonly answer?: DecodedResource;
}

/** The result of a write that was sent or postponed; `unchanged`: the server stored nothing new. */
export type WriteResult<Resource extends KubernetesObject = KubernetesObject> =
  | { readonly kind: "created" | "updated" | "unchanged"; readonly entry: DecodedResource<Resource> }
  | { readonly kind: "postponed"; readonly postponed: PostponedWrite };

/**
 * The result of making an object as desired. Nothing is written while the object is being deleted (`terminating`), or if it is not the object, or
 * not the version, from which `desired` was computed (`unseen`).
 */
export type ApplyResult =
  | WriteResult
  | { readonly kind: "terminating"; readonly entry: DecodedResource }
  /** `isForeign`: it does not belong to the primary yet, and may be adopted. */
  | { readonly kind: "unseen"; readonly entry: DecodedResource; readonly isForeign?: boolean };

/** The version of the live object that `desired` read; undefined if it saw that there is none. */
export interface WriteBasis {
  readonly version: string | undefined;
}

/** How an object is made as desired. */
export interface ChangeOptions {
  /** Whether it is written without being compared: another client found it different. */
  readonly isForced?: boolean;
  /** Present if `desired` read the live object: then no other version is replaced. */
  readonly basis?: WriteBasis | undefined;
  /** These fields keep their value. */
  readonly released?: ReleasedPaths | undefined;
  readonly cause?: WriteCause | undefined;
}

/** A way to make objects as desired: server-side apply, or POST and PUT. */
export interface WriteMethod {
  /** Creates an object; fails with a conflict (409) if it exists. */
  create(target: WriteTarget, desired: ObjectBody, cause: WriteCause | undefined): Promise<WriteResult>;
  /** Makes an object as desired; undefined if it no longer exists, or another one has its name, and the watch has not shown that. */
  change(
    target: WriteTarget,
    desired: ObjectBody,
    live: DecodedResource,
    options: ChangeOptions,
  ): Promise<ApplyResult | undefined>;
}

/** The operations of a JSON patch, or a function that changes a copy of the object or returns a changed one. */
export type JsonPatchChange<Resource> = readonly JsonPatchOperation[] | ((draft: Draft<Resource>) => Resource | void);

/** Returns a POST of an object. */
export function createOf(target: WriteTarget, object: ObjectBody): Write {
  return { ...updateOf(target, object), verb: "create", version: undefined, lock: undefined };
}

/** Returns a PUT of an object or its status. */
export function updateOf(target: WriteTarget, object: ObjectBody, part: WritePart = "object"): Write {
  const body = withEncodedData(target.definition, object);
  const { metadata: ref } = object;
  const { resourceVersion: version } = ref;
  return { target, verb: "update", ref, part, body, desired: body, before: undefined, version, lock: version };
}

/** Returns a server-side apply of an object or its status. */
export function applyOf(target: WriteTarget, object: ObjectBody, part: WritePart = "object"): Write {
  const { metadata: ref, status } = object as ObjectBody & { status?: unknown };
  const { name, namespace, uid, resourceVersion: version } = ref;
  const isStatus = part === "status";
  // A status is applied without the other fields of the object, so that none of them changes its owner.
  const body = isStatus ? { metadata: { name, namespace, uid }, status } : withEncodedData(target.definition, object);
  const lock = isStatus ? undefined : version;
  return { target, verb: "apply", ref, part, body, desired: body, before: undefined, version, lock };
}

/** Returns a JSON merge patch of an object or its status. */
export function mergePatchOf(target: WriteTarget, patch: ObjectBody, part: WritePart = "object"): Write {
  const { metadata: ref } = patch;
  const { resourceVersion: version } = ref;
  const plain = plainOf(patch) as JsonObject;
  const isStatus = part === "status";
  const body = isStatus ? statusPatchOf(plain) : plain;
  const lock = isStatus ? undefined : version;
  return { target, verb: "mergePatch", ref, part, body, desired: body, before: undefined, version, lock };
}

function statusPatchOf(patch: JsonObject): object {
  const { name, namespace } = patch["metadata"] as JsonObject;
  return { metadata: { name, namespace }, ...("status" in patch ? { status: patch["status"] } : {}) };
}

/** Returns a JSON patch of an object or its status; it is compared with `given`, the object that the caller read. */
export function jsonPatchOf<Resource extends KubernetesObject>(
  target: WriteTarget,
  given: Resource,
  change: JsonPatchChange<Resource>,
  part: WritePart = "object",
): Write {
  const stated = typeof change === "function" ? operationsOf(given, change, part) : change;
  // A test of a list that holds null ends in a panic of the API server (1.36), and no answer; the version is tested in its place.
  const body = stated.filter(({ op, value }) => op !== "test" || !/[[,]null[\],]/.test(JSON.stringify(value)));
  const { metadata: ref } = given;
  const { resourceVersion: version } = ref;
  const lock = body.find(({ op, path }) => op === "replace" && path === VERSION_PATH)?.value as string | undefined;
  const before = undefined;
  const write: Write = { target, verb: "jsonPatch", ref, part, body, desired: body, before, given, version, lock };
  return body.length === stated.length ? write : locked(write);
}

/** Returns a write that fails with a conflict if the object has another version than the one that the caller read. */
export function locked<Each extends Write>(write: Each): Each {
  const { verb, body, version } = write;
  if (version === undefined) return write;
  if (verb === "jsonPatch") return { ...withBody(write, [lockOn(version), ...operationsIn(write)]), lock: version };
  const metadata = Object.assign({}, (body as ObjectBody).metadata, { resourceVersion: version });
  return { ...withBody(write, { ...body, metadata }), lock: version };
}

function lockOn(version: string): JsonPatchOperation {
  return { op: "replace", path: VERSION_PATH, value: version };
}

function operationsIn({ body }: Write): readonly JsonPatchOperation[] {
  return body as readonly JsonPatchOperation[];
}

/** Returns a write with another body, which is also the desired state unless that was another one than the body before. */
export function withBody<Each extends Write>(write: Each, body: object): Each {
  return { ...write, body, desired: write.desired === write.body ? body : write.desired };
}

/** Returns the part of the stored object that a write goes to: without a status subresource, a status is a field like any other. */
export function storedPart({ target, part }: Pick<Write, "target" | "part">): WritePart {
  return part === "status" && target.definition.hasStatusSubresource ? "status" : "object";
}

/** Returns the request of a write. */
export function requestOf(
  write: Write,
  { fieldManager, fieldManagers }: { readonly fieldManager: string; readonly fieldManagers: FieldManagers },
): WriteRequest {
  const { verb, ref, body, cause } = write;
  const subresource = storedPart(write) === "status" ? "status" : undefined;
  return { verb, ref, body, subresource, fieldManager, fieldManagers, signal: cause?.signal };
}

/** Returns the object that a write sends, or that a patch makes of `live`, without locks; undefined if the patch does not apply to it. */
export function desiredOf(write: Write, live: KubernetesObject): object | undefined {
  switch (write.verb) {
    case "create":
    case "update":
    case "apply":
      return write.body;
    case "mergePatch":
      return applyMergePatch(live as never, mergedPart(write.body as JsonObject)) as object;
    case "jsonPatch":
      try {
        return applyJsonPatch(live as never, withoutLock(write)) as object;
      } catch {
        // The API server returns the error of such a patch.
        return undefined;
      }
  }
}

// The name of the object, and a version that locks it, are no changes.
function mergedPart(patch: JsonObject): JsonObject {
  const { name: _1, namespace: _2, resourceVersion: _3, ...metadata } = patch["metadata"] as JsonObject;
  return { ...patch, metadata };
}

function withoutLock(write: Write): JsonPatchOperation[] {
  const [first, ...rest] = operationsIn(write);
  const isLock = write.version !== undefined && isDeepStrictEqual(first, lockOn(write.version));
  return isLock ? rest : [...operationsIn(write)];
}

/** Tells whether the change from `before` to `after` is that of a PUT or a patch, and of nothing else. */
export function isExplained(write: Write, before: KubernetesObject, after: KubernetesObject): boolean {
  const { definition } = write.target;
  const desired = desiredOf(write, before);
  if (desired === undefined || before.metadata.resourceVersion === after.metadata.resourceVersion) return false;
  const made = write.verb === "update" ? replaced(before, desired as ObjectBody, definition) : desired;
  // Of a kind with a status subresource a write changes either the status or everything else.
  const [content, { status }] = (write.part === "status" ? [before, made] : [made, before]) as unknown as [
    JsonObject,
    JsonObject,
  ];
  const { status: _status, ...rest } = content;
  const expected = !definition.hasStatusSubresource ? made : status === undefined ? rest : { ...rest, status };
  return !hasForeignChange(expected as KubernetesObject, after, { owned: [], schema: schemaOf(definition) });
}

// A PUT keeps what the API server itself writes into the metadata.
function replaced(before: KubernetesObject, body: ObjectBody, { apiVersion, kind }: ResourceDefinition): object {
  const { labels, annotations, finalizers, ownerReferences } = body.metadata;
  const metadata = { ...before.metadata, labels, annotations, finalizers, ownerReferences };
  return plainOf({ ...body, apiVersion, kind, metadata }) as object;
}

/** Returns the paths that a PUT or a patch changes, such as `spec.replicas`. */
export function changedPathsOf(write: Write): string[] {
  const { verb, before, target } = write;
  if (verb === "jsonPatch") {
    const isChange = ({ op, path }: JsonPatchOperation) => op !== "test" && path !== VERSION_PATH;
    const changes = operationsIn(write).filter(isChange);
    return changes.map(({ path }) => path.slice(1).replaceAll("/", "."));
  }
  const live = before?.object;
  const desired = live && desiredOf(write, live);
  if (desired === undefined) return [];
  return genericDifferences({ definition: target.definition, desired, live: live! }).map(({ path }) => path);
}

function operationsOf<Resource extends KubernetesObject>(
  given: Resource,
  change: (draft: Draft<Resource>) => Resource | void,
  part: WritePart,
): JsonPatchOperation[] {
  const draft = structuredClone(given) as Draft<Resource>;
  const changed = plainOf(change(draft) ?? draft) as JsonObject;
  const before = given as unknown as JsonObject;
  // The status subresource accepts no other field: its change would only make the patch fail.
  if (part === "object") return jsonDiff(before, changed);
  return jsonDiff({ status: before["status"] }, { status: changed["status"] });
}

/** Returns a Secret with its `stringData` in `data`, as it is stored: the API server would record `stringData` as owned (1.36). */
export function withEncodedData<Desired extends object>(definition: ResourceDefinition, desired: Desired): Desired {
  if (definition.kind !== "Secret" || definition.apiVersion !== "v1" || !("stringData" in desired)) return desired;
  const { stringData, ...rest } = desired as { stringData?: { [key: string]: string } | null; data?: object };
  const encoded = Object.entries(stringData ?? {}).map(([key, text]) => [key, Buffer.from(text).toString("base64")]);
  if (encoded.length === 0) return rest as unknown as Desired;
  return { ...rest, data: { ...rest.data, ...Object.fromEntries(encoded) } } as unknown as Desired;
}

/** Returns an object without a status that the API server ignores, since it is written through its subresource only. */
export function withoutStatus<Desired extends object>(definition: ResourceDefinition, desired: Desired): Desired {
  if (!definition.hasStatusSubresource || !("status" in desired)) return desired;
  const { status: _, ...rest } = desired;
  return rest as unknown as Desired;
}

/** Throws if a desired object sets a released field. */
export function checkReleased({ definition }: WriteTarget, desired: ObjectBody, released: ReleasedPaths = []): void {
  const stated = released.find((path) => valueAt(desired, path) !== undefined);
  if (stated === undefined) return;
  throw new Error(
    `${describeObject(definition, desired.metadata)} cannot be written: ${stated} is released to another controller, and desired() sets it; ` +
      `remove it from what desired() returns, or from released`,
  );
}

/** Returns the value of a field such as `spec.replicas`. */
export function valueAt(object: object, path: string): JsonValue | undefined {
  let value: unknown = object;
  for (const name of path.split("."))
    value = (value as { readonly [name: string]: unknown } | null | undefined)?.[name];
  return value as JsonValue | undefined;
}

/** Returns the JSON patch from one state of an object to another, which fails if the object was recreated under its name. */
export function patchBetween(uid: string | undefined, before: object, after: object): JsonPatchOperation[] {
  return [uidTest(uid), ...jsonDiff(before, plainOf(after) as JsonObject)];
}

/** Returns the operation with which a JSON patch fails if the object was recreated under its name. */
export function uidTest(uid: string | undefined): JsonPatchOperation {
  return { op: "test", path: "/metadata/uid", value: uid ?? "" };
}

/** Returns a sentence about what is postponed, and why. */
export function describePostponed({ kind, object, loop, paths, managers, writes }: PostponedWrite): string {
  const what = paths.length === 0 ? "" : ` (${paths.join(", ")})`;
  const who =
    managers.length === 0
      ? "another client, primary, or admission policy"
      : managers.map((name) => `"${name}"`).join(" and ");
  const why =
    loop === "unsettled"
      ? "its desired content changes on every reconcile"
      : kind === EXTERNAL_KIND
        ? "the external service or another client reverts it each time"
        : paths.length === 0
          ? // Either looks the same to a watch that selects the label.
            `it is deleted or loses its label ${CONTROLLER_LABEL} each time`
          : `${who} reverts it each time`;
  return `${kind} ${object}${what} was written ${writes} times, but ${why}; backing off`;
}

/** Creates the error of a step that cannot go on without a write that is postponed. */
export function createPostponedError(postponed: PostponedWrite): RetryAfterError {
  const { retryAfterMs } = postponed;
  const message = `${describePostponed(postponed)}, next in ${Math.ceil(retryAfterMs / 1000)} s`;
  return Object.assign(new RetryAfterError(message, retryAfterMs), { postponed });
}

/** Returns the write that an error is about, if it was postponed. */
export function findPostponed(error: unknown): PostponedWrite | undefined {
  return (error as { readonly postponed?: PostponedWrite }).postponed;
}

/**
 * Returns the JSON patch that turns one value into another. Lists are changed as a whole unless something is only appended, and with a test:
 * the patch fails rather than revert what another client has done there meanwhile.
 */
export function jsonDiff(before: object, after: object): JsonPatchOperation[] {
  return diffValues(before as JsonValue, after as JsonValue, "");
}

function diffValues(before: JsonValue, after: JsonValue, path: string): JsonPatchOperation[] {
  if (isDeepStrictEqual(before, after)) return [];
  if (isJsonObject(before) && isJsonObject(after)) return diffObjects(before, after, path);
  if (Array.isArray(before) && Array.isArray(after)) return diffLists(before, after, path);
  return [{ op: "replace", path, value: after }];
}

function diffObjects(before: JsonObject, after: JsonObject, path: string): JsonPatchOperation[] {
  const operations: JsonPatchOperation[] = [];
  for (const name of Object.keys(before))
    if (before[name] !== undefined && memberOf(after, name) === undefined)
      operations.push({ op: "remove", path: `${path}/${escapePointer(name)}` });
  for (const [name, value] of Object.entries(after)) {
    const memberPath = `${path}/${escapePointer(name)}`;
    if (value === undefined) continue;
    const known = memberOf(before, name);
    if (known !== undefined) operations.push(...diffValues(known, value, memberPath));
    else {
      // Fails if another client has set a list or map there meanwhile, which would be lost.
      if (typeof value === "object" && value !== null) operations.push({ op: "test", path: memberPath, value: null });
      operations.push({ op: "add", path: memberPath, value });
    }
  }
  return operations;
}

function diffLists(before: JsonValue[], after: JsonValue[], path: string): JsonPatchOperation[] {
  const isAppended = before.every((item, index) => isDeepStrictEqual(item, after[index]));
  if (isAppended) return after.slice(before.length).map((value) => ({ op: "add", path: `${path}/-`, value }));
  return [
    { op: "test", path, value: before },
    { op: "replace", path, value: after },
  ];
}

/** Returns the JSON pointer (RFC 6901) of a path. */
export function pointerOf(path: readonly (string | number)[]): string {
  return path.map((step) => `/${escapePointer(String(step))}`).join("");
}

/** Returns the operations of a JSON patch that remove a field, and fail if it, or `member` of it, has another value. */
export function removeIf(path: string, value: unknown, member = ""): JsonPatchOperation[] {
  return [
    { op: "test", path: `${path}${member}`, value },
    { op: "remove", path },
  ];
}

function escapePointer(name: string): string {
  return name.replaceAll("~", "~0").replaceAll("/", "~1");
}
