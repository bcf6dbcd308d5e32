// What each way to write an object sends, and when it would change nothing. Nothing here makes a request.
import type {
  JsonValue,
  KubernetesObject,
  ObjectMeta,
  ObjectRef,
  JsonPatchOperation,
  WriteVerb,
} from "../../base/kubernetes-object.js";
import type { ResourceDefinition } from "../../base/resource-definition.js";
import { hasForeignChange } from "../../match/foreign-change.js";
import { applyJsonPatch, applyMergePatch, jsonDiff } from "../../match/json-patch.js";
import { patchMatcher, updateMatcher, type Matcher } from "../../match/matchers.js";
import { plainOf } from "../../match/plain-json.js";
import { schemaOf } from "../../match/schema-node.js";
import type { Application, WriteTarget } from "./apply-matcher.js";
import { withEncodedData } from "./secret-data.js";

type JsonObject = { [key: string]: JsonValue };

const VERSION_PATH = "/metadata/resourceVersion";

/** A write before it is decided whether it is made. */
export interface PlannedWrite {
  readonly verb: WriteVerb;
  readonly isStatus: boolean;
  readonly ref: ObjectRef;
  readonly body: object;
  /** The version of the object that the caller read. */
  readonly version: string | undefined;
  /** The version that is sent: the write fails with a conflict if the object has another one. */
  readonly lock: string | undefined;
  /** What the write is compared with instead of the live object. */
  readonly given?: KubernetesObject;
  /** What the write states, or what a patch makes of `live`; undefined if the patch does not fit. */
  desiredOf(live: KubernetesObject): object | undefined;
  /** Absent where only the owned fields tell. */
  readonly matcher?: Matcher;
  /** The state after the write if nobody else changed anything; undefined if that cannot be told. */
  expectedOf?(before: KubernetesObject): object | undefined;
}

/** An object as a write states it. */
export type Stated = object & { readonly metadata: ObjectRef & Partial<ObjectMeta> };

/** How a JSON patch is stated: its operations, or a function that changes a copy of the object or returns a changed one. */
export type JsonPatchChange<Resource> = readonly JsonPatchOperation[] | ((draft: Resource) => Resource | void);

/** Returns a planned apply as the matcher compares it; undefined for any other write. */
export function applicationOf(target: WriteTarget, { verb, isStatus, body }: PlannedWrite): Application | undefined {
  if (verb !== "apply") return undefined;
  const part = isStatus && target.definition.hasStatusSubresource ? "status" : "object";
  return { target, part, desired: body as Application["desired"] };
}

/** Plans a creation: it is compared with nothing. */
export function planCreate(definition: ResourceDefinition, stated: Stated): PlannedWrite {
  const body = withEncodedData(definition, stated);
  return {
    verb: "create",
    isStatus: false,
    ref: refOf(stated),
    body,
    version: undefined,
    lock: undefined,
    desiredOf: () => body,
  };
}

/** Plans a PUT of an object or its status. */
export function planUpdate(definition: ResourceDefinition, stated: Stated, isStatus: boolean): PlannedWrite {
  const body = withEncodedData(definition, stated);
  const version = stated.metadata.resourceVersion;
  return {
    verb: "update",
    isStatus,
    ref: refOf(stated),
    body,
    version,
    lock: version,
    desiredOf: () => body,
    matcher: updateMatcher,
    expectedOf: (before) => expectedOfUpdate(before, body, { definition, isStatus }),
  };
}

/** Plans a server-side apply of an object or its status; what is owned tells whether it would change anything. */
export function planApply(definition: ResourceDefinition, stated: Stated, isStatus: boolean): PlannedWrite {
  const { metadata, status } = stated as Stated & { status?: unknown };
  const { name, namespace, uid, resourceVersion: version } = metadata;
  // A status is applied without whatever else the object states, so that nothing of that is taken over.
  const body = isStatus ? { metadata: { name, namespace, uid }, status } : withEncodedData(definition, stated);
  const lock = isStatus ? undefined : version;
  return { verb: "apply", isStatus, ref: refOf(stated), body, version, lock, desiredOf: () => body };
}

/** Plans a JSON merge patch of an object or its status; its metadata name the object. */
export function planMergePatch(definition: ResourceDefinition, stated: Stated, isStatus: boolean): PlannedWrite {
  const version = stated.metadata.resourceVersion;
  const plain = plainOf(stated) as JsonObject;
  const { name, namespace, resourceVersion: _version, ...metadata } = plain["metadata"] as JsonObject;
  const status = "status" in plain ? { status: plain["status"]! } : {};
  // What names the object, or locks it, changes nothing.
  const patch: JsonObject = isStatus ? status : { ...plain, metadata };
  const body = isStatus ? { metadata: { name, namespace }, ...status } : plain;
  const patched = (live: KubernetesObject) => applyMergePatch(live as never, patch) as object;
  return {
    verb: "mergePatch",
    isStatus,
    ref: refOf(stated),
    body,
    version,
    lock: isStatus ? undefined : version,
    desiredOf: patched,
    matcher: patchMatcher,
    expectedOf: (before) => withStatusApart(before, patched(before), { definition, isStatus }),
  };
}

/** Plans a JSON patch of an object or its status; it is compared with the object that the caller gives. */
export function planJsonPatch<Resource extends KubernetesObject>(
  definition: ResourceDefinition,
  given: Resource,
  { change, isStatus }: { change: JsonPatchChange<Resource>; isStatus: boolean },
): PlannedWrite {
  const operations = typeof change === "function" ? operationsOf(given, change, isStatus) : change;
  const patched = (live: KubernetesObject) => {
    try {
      return applyJsonPatch(live as never, operations) as object;
    } catch {
      // The server will say what is wrong with it.
      return undefined;
    }
  };
  return {
    verb: "jsonPatch",
    isStatus,
    ref: refOf(given),
    body: operations,
    version: given.metadata.resourceVersion,
    lock: operations.find(({ op, path }) => op === "replace" && path === VERSION_PATH)?.value as string | undefined,
    given,
    desiredOf: patched,
    matcher: patchMatcher,
    expectedOf: (before) => {
      const after = patched(before);
      return after && withStatusApart(before, after, { definition, isStatus });
    },
  };
}

/** Returns a write that fails with a conflict if the object has another version than the one that the caller read. */
export function locked(plan: PlannedWrite): PlannedWrite {
  const { verb, body, version } = plan;
  if (version === undefined) return plan;
  if (verb === "jsonPatch")
    return { ...plan, lock: version, body: [lockingOperation(version), ...(body as JsonPatchOperation[])] };
  const metadata = { ...(body as Stated).metadata, resourceVersion: version };
  return { ...plan, lock: version, body: { ...body, metadata } };
}

/** Returns the operation with which a JSON patch fails with a conflict if the object has another version. */
export function lockingOperation(version: string): JsonPatchOperation {
  return { op: "replace", path: VERSION_PATH, value: version };
}

/** Tells whether the change from one state to another is that of a write, and of nothing else. */
export function isExplained(
  { expectedOf }: PlannedWrite,
  { before, after, definition }: { before: KubernetesObject; after: KubernetesObject; definition: ResourceDefinition },
): boolean {
  if (before.metadata.resourceVersion === after.metadata.resourceVersion) return false;
  const expected = expectedOf?.(before);
  const schema = schemaOf(definition);
  return expected !== undefined && !hasForeignChange(expected as KubernetesObject, after, { owned: [], schema });
}

/** Returns the JSON patch that a function makes of an object, or of its status. */
export function operationsOf<Resource extends KubernetesObject>(
  given: Resource,
  change: (draft: Resource) => Resource | void,
  isStatus = false,
): JsonPatchOperation[] {
  const draft = structuredClone(given);
  const changed = plainOf(change(draft) ?? draft) as JsonObject;
  const before = given as unknown as JsonObject;
  // The server takes nothing but the status there; anything else of the draft would only make the patch fail.
  if (isStatus) return jsonDiff(statusOnly(before), statusOnly(changed));
  return jsonDiff(before, changed);
}

function statusOnly({ status }: JsonObject): JsonObject {
  return status === undefined ? {} : { status };
}

function expectedOfUpdate(
  before: KubernetesObject,
  body: object,
  { definition, isStatus }: { definition: ResourceDefinition; isStatus: boolean },
): object {
  if (isStatus && definition.hasStatusSubresource) return { ...before, status: (body as JsonObject)["status"] };
  const { apiVersion, kind } = definition;
  const { labels, annotations, finalizers, ownerReferences } = (body as Stated).metadata;
  const stated = plainOf({ labels, annotations, finalizers, ownerReferences }) as object;
  const {
    labels: _labels,
    annotations: _annotations,
    finalizers: _finalizers,
    ownerReferences: _ownerReferences,
    ...kept
  } = before.metadata;
  const after = { ...(plainOf(body) as object), apiVersion, kind, metadata: { ...kept, ...stated } };
  return withStatusApart(before, after, { definition, isStatus });
}

// Of a kind with a status subresource a write changes either the status or everything else.
function withStatusApart(
  before: KubernetesObject,
  after: object,
  { definition, isStatus }: { definition: ResourceDefinition; isStatus: boolean },
): object {
  if (!definition.hasStatusSubresource) return after;
  const [content, { status }] = (isStatus ? [before, after] : [after, before]) as unknown as [JsonObject, JsonObject];
  const { status: _status, ...rest } = content;
  return status === undefined ? rest : { ...rest, status };
}

function refOf({ metadata: { name, namespace } }: Stated): ObjectRef {
  return namespace === undefined ? { name } : { name, namespace };
}

/** Returns the operation with which a JSON patch fails if the object was made anew under its name. */
export function uidTest(uid: string | undefined): JsonPatchOperation {
  return { op: "test", path: "/metadata/uid", value: uid ?? "" };
}
