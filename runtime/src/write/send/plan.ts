// What each way to write an object sends, and what it makes of the object. Nothing here makes a request.
import { applyJsonPatch, applyMergePatch, type JsonObject } from "@gen-operator/schema";
import type {
  Draft,
  KubernetesObject,
  ObjectMeta,
  ObjectRef,
  JsonPatchOperation,
} from "../../base/kubernetes-object.js";
import type { ResourceDefinition } from "../../base/resource-definition.js";
import type { DecodedResource } from "../../base/decoded-resource.js";
import { hasForeignChange } from "../../match/foreign-change.js";
import { jsonDiff } from "../../match/json-diff.js";
import { genericDifferences } from "../../match/matchers.js";
import { plainOf } from "../../match/json-value.js";
import { schemaOf } from "../../match/schema-node.js";
import type { WriteRequest } from "../../client/write-request.js";
import type { Application, WriteTarget } from "./apply-matcher.js";
import type { WriteCause } from "./postponed-write.js";

const VERSION_PATH = "/metadata/resourceVersion";

/** A write before it is decided whether it is made. */
export interface PlannedWrite extends Pick<WriteRequest, "verb" | "ref" | "body"> {
  readonly isStatus: boolean;
  /** The version of the object that the caller read. */
  readonly version: string | undefined;
  /** The version that is sent: the write fails with a conflict if the object has another one. */
  readonly lock: string | undefined;
  /** What the write is compared with instead of the live object. */
  readonly given?: KubernetesObject;
  /** What the write states, or what a patch makes of `live`; undefined if the patch does not fit. */
  desiredOf(live: KubernetesObject): object | undefined;
}

/** One write, and the state that it was made from. */
export interface Sending {
  readonly target: WriteTarget;
  readonly plan: PlannedWrite;
  readonly before: DecodedResource | undefined;
  readonly cause?: WriteCause | undefined;
  /** The desired fields, if the body states more. Default: the body of the plan */
  readonly content?: object;
  /** False: the event of the write causes a reconcile, as that of anybody's write does. Default: true */
  readonly isFiltered?: boolean;
  readonly isUrgent?: boolean;
}

/** A write of an object that exists. */
export type Change = Sending & {
  readonly before: DecodedResource;
  /** Paths of fields that belong to another controller, such as `spec.replicas`. */
  readonly released?: readonly string[] | undefined;
};

/** An object as a write states it. */
export type Stated = object & { readonly metadata: ObjectRef & Partial<ObjectMeta> };

/** How a JSON patch is stated: its operations, or a function that changes a copy of the object or returns a changed one. */
export type JsonPatchChange<Resource> = readonly JsonPatchOperation[] | ((draft: Draft<Resource>) => Resource | void);

/** Returns a planned apply of `desired` as the matcher compares it; undefined for any other write. */
export function applicationOf(
  target: WriteTarget,
  { verb, isStatus, body }: PlannedWrite,
  desired = body,
): Application | undefined {
  if (verb !== "apply") return undefined;
  const part = isStatus && target.definition.hasStatusSubresource ? "status" : "object";
  return { target, part, desired: desired as Application["desired"] };
}

/** Plans a creation: it is compared with nothing. */
export function planCreate(definition: ResourceDefinition, stated: Stated): PlannedWrite {
  return { ...planUpdate(definition, stated, false), verb: "create", version: undefined, lock: undefined };
}

/** Plans a PUT of an object or its status. */
export function planUpdate(definition: ResourceDefinition, stated: Stated, isStatus: boolean): PlannedWrite {
  const body = withEncodedData(definition, stated);
  const version = stated.metadata.resourceVersion;
  return { verb: "update", isStatus, ref: stated.metadata, body, version, lock: version, desiredOf: () => body };
}

/** Plans a server-side apply of an object or its status; what is owned tells whether it would change anything. */
export function planApply(definition: ResourceDefinition, stated: Stated, isStatus: boolean): PlannedWrite {
  const { metadata, status } = stated as Stated & { status?: unknown };
  const { name, namespace, uid, resourceVersion: version } = metadata;
  // A status is applied without whatever else the object states, so that nothing of that is taken over.
  const body = isStatus ? { metadata: { name, namespace, uid }, status } : withEncodedData(definition, stated);
  const lock = isStatus ? undefined : version;
  return { verb: "apply", isStatus, ref: stated.metadata, body, version, lock, desiredOf: () => body };
}

/** Plans a JSON merge patch of an object or its status. */
export function planMergePatch(stated: Stated, isStatus: boolean): PlannedWrite {
  const version = stated.metadata.resourceVersion;
  const plain = plainOf(stated) as JsonObject;
  const { name, namespace, resourceVersion: _version, ...metadata } = plain["metadata"] as JsonObject;
  const status = "status" in plain ? { status: plain["status"]! } : {};
  // What names the object, or locks it, changes nothing.
  const patch: JsonObject = isStatus ? status : { ...plain, metadata };
  return {
    verb: "mergePatch",
    isStatus,
    ref: stated.metadata,
    body: isStatus ? { metadata: { name, namespace }, ...status } : plain,
    version,
    lock: isStatus ? undefined : version,
    desiredOf: (live) => applyMergePatch(live as never, patch) as object,
  };
}

/** Plans a JSON patch of an object or its status; it is compared with the object that the caller gives. */
export function planJsonPatch<Resource extends KubernetesObject>(
  given: Resource,
  change: JsonPatchChange<Resource>,
  isStatus: boolean,
): PlannedWrite {
  const stated = typeof change === "function" ? operationsOf(given, change, isStatus) : change;
  // A test of a list that holds null ends in a panic of the API server (1.36), and no answer; the version is tested in its place.
  const operations = stated.filter(({ op, value }) => op !== "test" || !/[[,]null[\],]/.test(JSON.stringify(value)));
  const plan: PlannedWrite = {
    verb: "jsonPatch",
    isStatus,
    ref: given.metadata,
    body: operations,
    version: given.metadata.resourceVersion,
    lock: operations.find(({ op, path }) => op === "replace" && path === VERSION_PATH)?.value as string | undefined,
    given,
    desiredOf(live) {
      try {
        return applyJsonPatch(live as never, operations) as object;
      } catch {
        // The server will say what is wrong with it.
        return undefined;
      }
    },
  };
  return operations.length === stated.length ? plan : locked(plan);
}

/** Returns a write that fails with a conflict if the object has another version than the one that the caller read. */
export function locked(plan: PlannedWrite): PlannedWrite {
  const { verb, body, version } = plan;
  if (version === undefined) return plan;
  const lock: JsonPatchOperation = { op: "replace", path: VERSION_PATH, value: version };
  if (verb === "jsonPatch") return { ...plan, lock: version, body: [lock, ...(body as JsonPatchOperation[])] };
  const metadata = Object.assign({}, (body as Stated).metadata, { resourceVersion: version });
  return { ...plan, lock: version, body: { ...body, metadata } };
}

/** Tells whether the change from one state to another is that of a PUT or a patch, and of nothing else. */
export function isExplained(
  { verb, isStatus, desiredOf }: PlannedWrite,
  { before, after, definition }: { before: KubernetesObject; after: KubernetesObject; definition: ResourceDefinition },
): boolean {
  const desired = desiredOf(before);
  if (desired === undefined || before.metadata.resourceVersion === after.metadata.resourceVersion) return false;
  const made = verb === "update" ? replaced(before, desired as Stated, definition) : desired;
  // Of a kind with a status subresource a write changes either the status or everything else.
  const [content, { status }] = (isStatus ? [before, made] : [made, before]) as unknown as [JsonObject, JsonObject];
  const { status: _status, ...rest } = content;
  const expected = !definition.hasStatusSubresource ? made : status === undefined ? rest : { ...rest, status };
  return !hasForeignChange(expected as KubernetesObject, after, { owned: [], schema: schemaOf(definition) });
}

// A PUT keeps what the API server itself writes into the metadata.
function replaced(before: KubernetesObject, body: Stated, { apiVersion, kind }: ResourceDefinition): object {
  const { labels, annotations, finalizers, ownerReferences } = body.metadata;
  const metadata = { ...before.metadata, labels, annotations, finalizers, ownerReferences };
  return plainOf({ ...body, apiVersion, kind, metadata }) as object;
}

/** Returns the paths that a PUT or a patch changes, such as `spec.replicas`. */
export function plannedPaths(plan: PlannedWrite, definition: ResourceDefinition, live?: KubernetesObject): string[] {
  const { verb, body, desiredOf } = plan;
  if (verb === "jsonPatch") {
    const isChange = ({ op, path }: JsonPatchOperation) => op !== "test" && path !== VERSION_PATH;
    return (body as JsonPatchOperation[]).filter(isChange).map(({ path }) => path.slice(1).replaceAll("/", "."));
  }
  const desired = live && desiredOf(live);
  return desired === undefined ? [] : genericDifferences({ definition, desired, live: live! }).map(({ path }) => path);
}

// Of a function, which changes a copy of the object.
function operationsOf<Resource extends KubernetesObject>(
  given: Resource,
  change: (draft: Draft<Resource>) => Resource | void,
  isStatus: boolean,
): JsonPatchOperation[] {
  const draft = structuredClone(given) as Draft<Resource>;
  const changed = plainOf(change(draft) ?? draft) as JsonObject;
  const before = given as unknown as JsonObject;
  // The server takes nothing but the status there; anything else of the draft would only make the patch fail.
  return isStatus ? jsonDiff({ status: before["status"] }, { status: changed["status"] }) : jsonDiff(before, changed);
}

/** Returns a Secret with its `stringData` in `data`, as it is stored: the server would record `stringData` as owned (1.36), where nothing is. */
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

/** Returns the JSON patch from one state of an object to another, which fails if the object was made anew under its name. */
export function patchBetween(uid: string | undefined, before: object, after: object): JsonPatchOperation[] {
  return [uidTest(uid), ...jsonDiff(before, plainOf(after) as JsonObject)];
}

/** Returns the operation with which a JSON patch fails if the object was made anew under its name. */
export function uidTest(uid: string | undefined): JsonPatchOperation {
  return { op: "test", path: "/metadata/uid", value: uid ?? "" };
}
