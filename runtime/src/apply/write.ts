// A write of the controller as a value: the request, and its effect on the live object. Nothing in this file sends requests; see Sender.
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

/** The target of a write: the object or its status. */
export type WritePart = "object" | "status";

/** Paths of fields that belong to another controller, such as `spec.replicas`. */
export type ReleasedPaths = readonly string[];

/** A write of one object, with the state from which it was computed. */
export interface Write<Before extends DecodedResource | undefined = DecodedResource | undefined> {
  readonly target: WriteTarget;
  readonly verb: WriteVerb;
  readonly ref: ObjectRef;
  /** `status` even if the kind has no status subresource. */
  readonly part: WritePart;
  /** The object or patch that is sent. */
  readonly body: object;
  /**
   * The content that is compared, used to learn from the response, and tracked in write loops: the body without parts that only this request needs,
   * such as a UID.
   */
  readonly desired: object;
  /** The live object from the cache; undefined for a creation. */
  readonly before: Before;
  /** The object from which a JSON patch was computed. */
  readonly given?: KubernetesObject;
  /** The resourceVersion that the caller read. */
  readonly version: string | undefined;
  /** The resourceVersion that is sent. The write fails with a conflict if the object has another one. */
  readonly lock: string | undefined;
  readonly released?: ReleasedPaths | undefined;
  readonly cause?: WriteCause | undefined;
  /** Whether the event of the write is filtered. If false, it triggers a reconcile, like the event of any other client's write. Default: true */
  readonly isFiltered?: boolean;
  /** Whether to send the write even if its object is in a write loop. */
  readonly isUrgent?: boolean;
}

/** A kind with the view through which the controller reads its objects. */
export interface WriteTarget {
  readonly definition: ResourceDefinition;
  readonly cache: ResourceView;
}

/** The reason for a write, and the callbacks to notify. */
export interface WriteCause extends WrittenFor {
  /** Aborts the write. Aborted together with its step or reconcile. */
  readonly signal?: AbortSignal | undefined;
  /** Receives a line for each write that changed something. */
  readonly logger?: Logger | undefined;
  /**
   * Whether a change of a secondary by another client triggered the reconcile. A status may be written more often for this reason than other writes
   * may repeat.
   */
  readonly followsEvent?: boolean;
  /** Called for each write that changed an object. The parameter of `pathsOf` is the maximum number of paths; a call is as expensive as matching. */
  readonly onChange?: ((pathsOf: ChangedPaths) => void) | undefined;
  /** Tracked in write loops instead of the content, if the content contains a time and so differs each time. Default: the content */
  readonly statement?: object | undefined;
  /** Name of the write loops that the write may belong to, if some writes of an object have loops of their own. */
  readonly loop?: string | undefined;
  readonly onWritten?: ((write: OwnWrite) => void) | undefined;
  /** Called for an aborted write that the API server may still execute and that may create an object. */
  readonly onGivenUp?: (() => void) | undefined;
}

/** The cause of a write on behalf of a primary. */
export type PrimaryCause = WriteCause & { readonly primary: KubernetesObject };

/** A write of a primary by its own controller. */
export interface OwnWrite {
  readonly part: WritePart;
  readonly fieldManager: string;
  /** Absent if user code wrote the primary through its client. */
  readonly answer?: DecodedResource;
}

/** The result of a write that was sent or postponed. `unchanged`: the API server stored nothing new. */
export type WriteResult<Resource extends KubernetesObject = KubernetesObject> =
  | { readonly kind: "created" | "updated" | "unchanged"; readonly entry: DecodedResource<Resource> }
  | { readonly kind: "postponed"; readonly postponed: PostponedWrite };

/**
 * The result of applying a desired object. Nothing is written if the object is being deleted (`terminating`), or if it is another object or has
 * another resourceVersion than the one from which `desired` was computed (`unseen`).
 */
export type ApplyResult =
  | WriteResult
  | { readonly kind: "terminating"; readonly entry: DecodedResource }
  /** `isForeign`: the object does not belong to the primary yet and may be adopted. */
  | { readonly kind: "unseen"; readonly entry: DecodedResource; readonly isForeign?: boolean };

/** The resourceVersion of the live object that `desired` has read; undefined if it saw that there is none. */
export interface WriteBasis {
  readonly version: string | undefined;
}

/** How to apply a desired object. */
export interface ChangeOptions {
  /** Whether to write without comparing, because the matcher of the user found a difference. */
  readonly isForced?: boolean;
  /** Set if `desired` has read the live object. No other version is then overwritten. */
  readonly basis?: WriteBasis | undefined;
  /** These fields keep their live values. */
  readonly released?: ReleasedPaths | undefined;
  readonly cause?: WriteCause | undefined;
}

/** A method to write desired objects: server-side apply, or POST and PUT. */
export interface WriteMethod {
  /** Creates an object. Fails with a conflict (409) if it already exists. */
  create(target: WriteTarget, desired: ObjectBody, cause: WriteCause | undefined): Promise<WriteResult>;
  /**
   * Changes an object to the desired state. Returns undefined if it no longer exists or another object has its name, and the watch has not delivered
   * that yet.
   */
  change(
    target: WriteTarget,
    desired: ObjectBody,
    live: DecodedResource,
    options: ChangeOptions,
  ): Promise<ApplyResult | undefined>;
}

/** The operations of a JSON patch, or a function that modifies a copy of the object or returns a modified one. */
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
  // A status is applied without the other fields of the object, so that their ownership does not change.
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

/** Returns a JSON patch of an object or its status. It is compared with `given`, the object that the caller read. */
export function jsonPatchOf<Resource extends KubernetesObject>(
  target: WriteTarget,
  given: Resource,
  change: JsonPatchChange<Resource>,
  part: WritePart = "object",
): Write {
  const stated = typeof change === "function" ? operationsOf(given, change, part) : change;
  // A test of a list that contains null causes a panic in the API server (1.36) and no response. The resourceVersion is tested instead.
  const body = stated.filter(({ op, value }) => op !== "test" || !/[[,]null[\],]/.test(JSON.stringify(value)));
  const { metadata: ref } = given;
  const { resourceVersion: version } = ref;
  const lock = body.find(({ op, path }) => op === "replace" && path === VERSION_PATH)?.value as string | undefined;
  const before = undefined;
  const write: Write = { target, verb: "jsonPatch", ref, part, body, desired: body, before, given, version, lock };
  return body.length === stated.length ? write : locked(write);
}

/** Returns a write that fails with a conflict if the object has another resourceVersion than the one that the caller read. */
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

/** Returns a write with another body. If the desired content was the previous body, it is replaced, too. */
export function withBody<Each extends Write>(write: Each, body: object): Each {
  return { ...write, body, desired: write.desired === write.body ? body : write.desired };
}

/** Returns the part of the stored object that a write affects: without a status subresource, the status is a field like any other. */
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

/**
 * Returns the object that a write sends or, for a patch, the result of applying it to `live`, without locks. Undefined if the patch does not apply.
 */
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

// The name of the object and a resourceVersion that serves as a lock are not changes.
function mergedPart(patch: JsonObject): JsonObject {
  const { name: _1, namespace: _2, resourceVersion: _3, ...metadata } = patch["metadata"] as JsonObject;
  return { ...patch, metadata };
}

function withoutLock(write: Write): JsonPatchOperation[] {
  const [first, ...rest] = operationsIn(write);
  const isLock = write.version !== undefined && isDeepStrictEqual(first, lockOn(write.version));
  return isLock ? rest : [...operationsIn(write)];
}

/** Returns whether the change from `before` to `after` is exactly the effect of a PUT or a patch. */
export function isExplained(write: Write, before: KubernetesObject, after: KubernetesObject): boolean {
  const { definition } = write.target;
  const desired = desiredOf(write, before);
  if (desired === undefined || before.metadata.resourceVersion === after.metadata.resourceVersion) return false;
  const made = write.verb === "update" ? replaced(before, desired as ObjectBody, definition) : desired;
  // If the kind has a status subresource, a write changes either the status or everything else.
  const [content, { status }] = (write.part === "status" ? [before, made] : [made, before]) as unknown as [
    JsonObject,
    JsonObject,
  ];
  const { status: _status, ...rest } = content;
  const expected = !definition.hasStatusSubresource ? made : status === undefined ? rest : { ...rest, status };
  return !hasForeignChange(expected as KubernetesObject, after, { owned: [], schema: schemaOf(definition) });
}

// A PUT keeps the metadata that the API server manages.
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
  // The status subresource accepts no other fields. Changing them would only make the patch fail.
  if (part === "object") return jsonDiff(before, changed);
  return jsonDiff({ status: before["status"] }, { status: changed["status"] });
}

/**
 * Returns a Secret with `stringData` merged into `data`, as it is stored. Otherwise, the API server (1.36) would record ownership of `stringData`.
 */
export function withEncodedData<Desired extends object>(definition: ResourceDefinition, desired: Desired): Desired {
  if (definition.kind !== "Secret" || definition.apiVersion !== "v1" || !("stringData" in desired)) return desired;
  const { stringData, ...rest } = desired as { stringData?: { [key: string]: string } | null; data?: object };
  const encoded = Object.entries(stringData ?? {}).map(([key, text]) => [key, Buffer.from(text).toString("base64")]);
  if (encoded.length === 0) return rest as unknown as Desired;
  return { ...rest, data: { ...rest.data, ...Object.fromEntries(encoded) } } as unknown as Desired;
}

/** Returns an object without the status if the kind has a status subresource, because the API server ignores the status in other writes. */
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

/** Returns the JSON patch from one state of an object to another. It fails if the object has been recreated under the same name. */
export function patchBetween(uid: string | undefined, before: object, after: object): JsonPatchOperation[] {
  return [uidTest(uid), ...jsonDiff(before, plainOf(after) as JsonObject)];
}

/** Returns an operation that makes a JSON patch fail if the object has been recreated under the same name. */
export function uidTest(uid: string | undefined): JsonPatchOperation {
  return { op: "test", path: "/metadata/uid", value: uid ?? "" };
}

/** Describes a postponed write and its reason. */
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
          ? // A watch with a label selector cannot distinguish the two.
            `it is deleted or loses its label ${CONTROLLER_LABEL} each time`
          : `${who} reverts it each time`;
  return `${kind} ${object}${what} was written ${writes} times, but ${why}; backing off`;
}

/** Creates the error of a step that needs a postponed write to continue. */
export function createPostponedError(postponed: PostponedWrite): RetryAfterError {
  const { retryAfterMs } = postponed;
  const message = `${describePostponed(postponed)}, next in ${Math.ceil(retryAfterMs / 1000)} s`;
  return Object.assign(new RetryAfterError(message, retryAfterMs), { postponed });
}

/** Returns the postponed write that caused an error, if any. */
export function findPostponed(error: unknown): PostponedWrite | undefined {
  return (error as { readonly postponed?: PostponedWrite }).postponed;
}

/**
 * Returns the JSON patch that turns one value into another. Lists are replaced as a whole, unless items are only appended, and together with a test:
 * the patch fails rather than revert a change that another client has made in the meantime.
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
      // Fails if another client has set a list or map there in the meantime, which would be lost otherwise.
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

/** Returns a path as a JSON pointer (RFC 6901). */
export function pointerOf(path: readonly (string | number)[]): string {
  return path.map((step) => `/${escapePointer(String(step))}`).join("");
}

/** Returns JSON patch operations that remove a field, and fail if the field, or its `member`, has another value. */
export function removeIf(path: string, value: unknown, member = ""): JsonPatchOperation[] {
  return [
    { op: "test", path: `${path}${member}`, value },
    { op: "remove", path },
  ];
}

function escapePointer(name: string): string {
  return name.replaceAll("~", "~0").replaceAll("/", "~1");
}
