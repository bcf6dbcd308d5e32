import { hash } from "node:crypto";
import { type JsonObject, type JsonValue, isJsonObject } from "@gen-operator/schema";
import { type ApiError, isApiError, isImmutableError } from "../base/errors.js";
import {
  type DecodedResource,
  type KubernetesObject,
  type ObjectBody,
  type ObjectMeta,
  type OwnerReference,
  type ResourceDefinition,
  describeObject,
  groupOf,
  isOwnedByFormer,
} from "../base/kubernetes-object.js";
import { CONTROLLER_LABEL } from "../base/primary-link.js";
import { NAMED_DIFFERENCES } from "./apply-matcher.js";
import { type FieldPath, type ManagedEntry, fieldsAt } from "./field-set.js";
import { genericDifferences, genericMatcher } from "./generic-matcher.js";
import { BEFORE_FIRST_APPLY, readWhole, withReleased } from "./managed-fields.js";
import { plainOf } from "./match.js";
import { mergeApplied } from "./merge.js";
import { type FieldsV1, schemaOf } from "./owned-fields.js";
import { retryOnConflict } from "./retry-on-conflict.js";
import type { Sender } from "./sender.js";
import {
  type ApplyResult,
  type ChangeOptions,
  type Write,
  type WriteCause,
  type WriteMethod,
  type WriteResult,
  type WriteTarget,
  createOf,
  updateOf,
} from "./write.js";

const matches = genericMatcher();

/** Writes objects with POST and PUT (GenericResourceUpdater in JOSDK). */
export class Update implements WriteMethod {
  readonly #sender: Sender;

  constructor(sender: Sender) {
    this.#sender = sender;
  }

  create(target: WriteTarget, content: ObjectBody, cause: WriteCause | undefined): Promise<WriteResult> {
    const desired = withStatement(content);
    return this.#send({ ...createOf(target, desired), desired, cause });
  }

  async change(
    target: WriteTarget,
    content: ObjectBody,
    live: DecodedResource,
    options: ChangeOptions,
  ): Promise<ApplyResult | undefined> {
    const desired = withStatement(content);
    const attempt = (before: DecodedResource): Promise<ApplyResult> => {
      if (before === live) return this.#attempt(target, desired, live, options);
      target.cache.put(before);
      // After a conflict, the change of another client may already match the desired object.
      return this.#attempt(target, desired, before, { ...options, isForced: false });
    };
    const isConflict = (error: unknown) => isApiError(error, 409);
    return retryOnConflict(live, attempt, { sender: this.#sender, target, maxAttempts: 5, isConflict });
  }

  async #attempt(
    target: WriteTarget,
    desired: ObjectBody,
    before: DecodedResource,
    { isForced, basis, released, cause }: ChangeOptions,
  ): Promise<ApplyResult> {
    const sender = this.#sender;
    if (before.object.metadata.deletionTimestamp !== undefined) return { kind: "terminating", entry: before };
    const stated = replacementOf(before.object, desired, target.definition, !statesContent(before.object));
    const body = withReleased(stated, before.object, released);
    const whole = updateOf(target, body);
    if (isForced !== true && this.#isAsDesired(whole, before.object)) {
      sender.noteMatch(whole, cause);
      return { kind: "unchanged", entry: before };
    }
    if (basis !== undefined && basis.version !== before.object.metadata.resourceVersion)
      return { kind: "unseen", entry: before };
    const unstated = await findUnstated(desired.metadata, { ...whole, before, cause }, sender);
    const replacement = { ...body, metadata: withoutKeys(body.metadata, unstated) };
    const write = { ...updateOf(target, replacement), desired, before, cause };
    const isAll = statesSame(desired, before.object) && sender.matcher.ownedFields(before, "object") === undefined;
    try {
      return await this.#send(write);
    } catch (error) {
      // Fields that the operator set before and no longer sets must be removed, so the write remains failed.
      if (!isImmutableError(error) || !isAll) throw error;
      return this.#sendWithUnstated(write, error);
    }
  }

  #isAsDesired(write: Write, live: KubernetesObject): boolean {
    const body = write.body as ObjectBody;
    if (matchesUpdate(write, body, live)) return true;
    const isKnown = this.#sender.matcher.mutations.isKnown(write, () => mutationOf(body, live));
    return isKnown && matchesUpdate(write, { ...live, metadata: body.metadata }, live);
  }

  // The API server mutates some values in ways that only a schema describes. Without a schema, the same object would be sent in every reconcile.
  async #send(write: Write): Promise<WriteResult> {
    const sent = await this.#sender.send(write);
    if (sent.kind === "postponed") return sent;
    const { mutations } = this.#sender.matcher;
    const { target, ref } = write;
    const [body, stored] = [write.body as ObjectBody, sent.entry.object];
    const desired = { ...body, metadata: stored.metadata };
    const differences = genericDifferences({ ...target, desired, live: stored });
    if (differences.length === 0) mutations.forget(target.cache, ref);
    else mutations.learn(write, mutationOf(body, stored), differences.slice(0, NAMED_DIFFERENCES));
    return sent;
  }

  /** Sends a PUT again, with the fields of the live object that it lacks. Throws `error` if this changes nothing or is also rejected. */
  async #sendWithUnstated(write: Write<DecodedResource>, error: ApiError): Promise<WriteResult> {
    const { target, before, cause } = write;
    const { definition } = target;
    const stated = write.body as ObjectBody;
    const { metadata, ...content } = stated;
    const { metadata: _1, status: _2, ...live } = before.object as KubernetesObject & { status?: unknown };
    const place = { schema: schemaOf(definition), mine: undefined, others: [] };
    const merged = mergeApplied(plainOf(live) as JsonObject, plainOf(content) as JsonObject, place);
    const kept = { ...merged, metadata };
    const left = genericDifferences({ definition, desired: kept, live: stated as KubernetesObject });
    if (left.length === 0) throw error;
    const sent = await this.#send({ ...write, body: kept }).catch((again: unknown) => {
      throw isApiError(again, 422) ? error : again;
    });
    const paths = left
      .map(({ path }) => path)
      .sort()
      .slice(0, NAMED_DIFFERENCES);
    const text = `kept ${paths.join(", ")} of ${describeObject(definition, metadata)}, which are not desired and immutable`;
    if (sent.kind !== "postponed") cause?.logger?.info({ dependent: cause.dependent }, text);
    return sent;
  }
}

function matchesUpdate({ target }: Write, desired: ObjectBody, live: KubernetesObject): boolean {
  return matches({ ...target, verb: "update", isStatus: false, desired, live });
}

function mutationOf(sent: object, stored: object) {
  return { sent: contentOf(sent), stored: contentOf(stored) };
}

function contentOf(object: object): string {
  const { apiVersion: _1, kind: _2, metadata: _3, status: _4, ...content } = object as Record<string, unknown>;
  return JSON.stringify(content);
}

/**
 * Returns the body of a PUT: the desired object, with the metadata of the live one merged in. If the desired object consists only of metadata, the
 * content of the live object is kept, unless our last PUT set it.
 */
export function replacementOf(
  live: KubernetesObject,
  desired: ObjectBody,
  { hasStatusSubresource }: Pick<ResourceDefinition, "hasStatusSubresource">,
  keepsContent = true,
): ObjectBody {
  const { metadata: wanted, ...content } = desired;
  const { metadata: known, apiVersion: _1, kind: _2, ...rest } = live as KubernetesObject & { status?: unknown };
  const isLink = keepsContent && Object.keys(content).length === 0;
  const status = !hasStatusSubresource && rest.status !== undefined && { status: rest.status };
  return { ...(isLink ? rest : status), ...content, metadata: mergedMetadata(known, wanted) };
}

/** Returns the metadata of a live object, with the desired metadata merged in. */
export function mergedMetadata(live: ObjectMeta, desired: Partial<ObjectMeta>): ObjectMeta {
  const { ownerReferences: wanted = [] } = desired;
  // A recreated owner has a new UID, and an object cannot have two controller references.
  const isReplaced = (owner: OwnerReference) => wanted.some((each) => isNamesake(owner, each));
  const kept = live.ownerReferences?.filter((owner) => !isReplaced(owner)) ?? [];
  const owners = new Map<string, OwnerReference>([...kept, ...wanted].map((owner) => [owner.uid, owner]));
  const labels = { ...live.labels, ...desired.labels };
  const annotations = { ...live.annotations, ...desired.annotations };
  const finalizers = [...new Set([...(live.finalizers ?? []), ...(desired.finalizers ?? [])])];
  return {
    ...live,
    ...(Object.keys(labels).length > 0 && { labels }),
    ...(Object.keys(annotations).length > 0 && { annotations }),
    ...(finalizers.length > 0 && { finalizers }),
    ...(owners.size > 0 && { ownerReferences: [...owners.values()] }),
  };
}

function withoutKeys(metadata: ObjectBody["metadata"], keys: StatedKeys): ObjectBody["metadata"] {
  const { labels, annotations, finalizers, ownerReferences } = metadata;
  const except = (map: { [key: string]: string } | undefined, names: readonly string[] = []) =>
    map && Object.fromEntries(Object.entries(map).filter(([name]) => !names.includes(name)));
  return {
    ...metadata,
    labels: except(labels, keys.labels),
    annotations: except(annotations, keys.annotations),
    finalizers: finalizers?.filter((name) => keys.finalizers?.includes(name) !== true),
    ownerReferences: ownerReferences?.filter(({ uid }) => keys.owners?.includes(uid) !== true),
  };
}

function isNamesake(a: OwnerReference, b: OwnerReference): boolean {
  return a.uid !== b.uid && a.name === b.name && a.kind === b.kind && groupOf(a.apiVersion) === groupOf(b.apiVersion);
}

// A PUT removes content that it does not contain. But it is sent only if something differs, and a field that is no longer desired looks like one that
// the API server or another client has set. So objects that are written with PUT have an annotation that describes the last desired object.

/** Annotation with the metadata keys of the last PUT and a digest of the fields of its content. */
export const LAST_STATED = "gen-operator.dev/last-stated";

/** Keys in the parts of the metadata that several clients share. */
interface StatedKeys {
  readonly labels?: readonly string[];
  readonly annotations?: readonly string[];
  readonly finalizers?: readonly string[];
  /** The UIDs of owners. */
  readonly owners?: readonly string[];
}

/** Returns a desired object with the annotation added. */
export function withStatement(desired: ObjectBody): ObjectBody {
  const { metadata } = desired;
  const { [LAST_STATED]: _, ...annotations } = metadata.annotations ?? {};
  const value = JSON.stringify({ digest: digestOf(desired), ...keysOf({ ...metadata, annotations }) });
  return { ...desired, metadata: { ...metadata, annotations: { ...annotations, [LAST_STATED]: value } } };
}

/** Returns whether the last PUT of an object contained more than metadata. */
function statesContent({ metadata }: Pick<KubernetesObject, "metadata">): boolean {
  const { digest } = parseStatement(metadata.annotations?.[LAST_STATED]);
  return digest !== undefined && digest !== digestOf({ metadata });
}

/** Returns whether the last PUT of an object, if there was one, had the same fields in its content. */
function statesSame(desired: ObjectBody, { metadata }: Pick<KubernetesObject, "metadata">): boolean {
  const { digest = digestOf(desired) } = parseStatement(metadata.annotations?.[LAST_STATED]);
  return digest === digestOf(desired);
}

/**
 * Returns the metadata keys that an earlier PUT or apply set and that are no longer desired. Any client that may write the object can also write the
 * annotation, so keys that another field manager owns are never removed. This requires a read of the managed fields.
 */
async function findUnstated(
  desired: ObjectBody["metadata"],
  write: Write<DecodedResource>,
  sender: Sender,
): Promise<StatedKeys> {
  const { before: live } = write;
  const { formerFieldManagers: formers } = sender;
  const applied = sender.matcher.ownedFields(live, "object");
  const stated = [parseKeys(live.object.metadata.annotations?.[LAST_STATED]), applied && keysIn(applied.fieldsV1)];
  const wanted = keysOf(desired);
  const unstated = (...keys: readonly (StatedKeys | undefined)[]) =>
    withoutStated(mergeKeys([...stated, ...keys].flatMap((each) => each ?? [])), wanted, keysOf(live.object.metadata));
  // After a PUT, the former field manager still owns labels and annotations that did not change, so its entry is considered only before the first
  // PUT.
  const isTaken = live.object.metadata.annotations?.[LAST_STATED] === undefined && isOwnedByFormer(live, formers);
  if (!isTaken && Object.keys(unstated()).length === 0) return {};
  const state = await readWhole(sender, write);
  if (state === undefined) return {};
  const ofFormer = ({ manager = "", subresource }: ManagedEntry) =>
    subresource === undefined && formers.includes(manager);
  const taken = isTaken ? state.entries.filter(ofFormer).map(({ fieldsV1 = {} }) => keysOfFields(fieldsV1)) : [];
  const found = unstated(...taken);
  // The label contains the former name of the controller until the object is written under the new one.
  const label = live.object.metadata.labels?.[CONTROLLER_LABEL];
  const own = [sender.fieldManager, ...formers, BEFORE_FIRST_APPLY, label];
  const others = state.entries.filter(({ manager }) => !own.includes(manager));
  const isFree = (path: FieldPath) => others.every(({ fieldsV1 = {} }) => fieldsAt(fieldsV1, path) === undefined);
  return keepKeys(found, (name, key) => isFree(fieldOf(name, key)));
}

/** Returns the metadata fields that the last PUT of an object set, including the annotation itself. */
export function fieldsOfStatement({ metadata }: Pick<KubernetesObject, "metadata">): FieldPath[] {
  const text = metadata.annotations?.[LAST_STATED];
  if (text === undefined) return [];
  const keys = parseKeys(text);
  const fields = NAMES.flatMap((name) => (keys[name] ?? []).map((key) => fieldOf(name, key)));
  return [fieldOf("annotations", LAST_STATED), ...fields];
}

const PATHS = {
  labels: { root: "f:labels", element: (key: string) => `f:${key}` },
  annotations: { root: "f:annotations", element: (key: string) => `f:${key}` },
  finalizers: { root: "f:finalizers", element: (key: string) => `v:${JSON.stringify(key)}` },
  owners: { root: "f:ownerReferences", element: (uid: string) => `k:${JSON.stringify({ uid })}` },
} as const;
const NAMES = Object.keys(PATHS) as (keyof StatedKeys)[];

function fieldOf(name: keyof StatedKeys, key: string): FieldPath {
  return ["f:metadata", PATHS[name].root, PATHS[name].element(key)];
}

function keysOf({ labels, annotations, finalizers, ownerReferences }: Partial<ObjectMeta>): StatedKeys {
  const { [LAST_STATED]: _, ...others } = annotations ?? {};
  const keys = {
    labels: Object.keys(labels ?? {}),
    annotations: Object.keys(others),
    finalizers: finalizers ?? [],
    owners: (ownerReferences ?? []).map(({ uid }) => uid),
  };
  return keepKeys(keys, () => true);
}

// Returns the keys for which `isKept` returns true, sorted and without empty lists.
function keepKeys(keys: StatedKeys, isKept: (name: keyof StatedKeys, key: string) => boolean): StatedKeys {
  const kept = NAMES.flatMap((name) => {
    const list = [...(keys[name] ?? [])].filter((key) => isKept(name, key)).sort();
    return list.length === 0 ? [] : [[name, list]];
  });
  return Object.fromEntries(kept) as StatedKeys;
}

function withoutStated(before: StatedKeys, desired: StatedKeys, live: StatedKeys): StatedKeys {
  return keepKeys(before, (name, key) => desired[name]?.includes(key) !== true && live[name]?.includes(key) === true);
}

function mergeKeys(all: readonly StatedKeys[]): StatedKeys {
  return Object.fromEntries(NAMES.map((name) => [name, [...new Set(all.flatMap((keys) => keys[name] ?? []))]]));
}

// Any client may have written the annotation.
function parseStatement(text = "{}"): JsonObject {
  try {
    const parsed = JSON.parse(text) as JsonValue;
    return isJsonObject(parsed) ? parsed : {};
  } catch {
    return {};
  }
}

function parseKeys(text: string | undefined): StatedKeys {
  const parsed = parseStatement(text);
  const lists = NAMES.flatMap((name) => {
    const list = parsed[name];
    return Array.isArray(list) ? [[name, list.filter((key) => typeof key === "string")]] : [];
  });
  return Object.fromEntries(lists) as StatedKeys;
}

function keysIn(fieldsV1: string): StatedKeys {
  return keysOfFields(JSON.parse(fieldsV1) as FieldsV1);
}

function keysOfFields(fields: FieldsV1): StatedKeys {
  const metadata = fieldsAt(fields, ["f:metadata"]) ?? {};
  const elements = (name: keyof StatedKeys) =>
    Object.keys(metadata[PATHS[name].root] ?? {}).filter((each) => each !== ".");
  return {
    labels: elements("labels").map((each) => each.slice(2)),
    annotations: elements("annotations").map((each) => each.slice(2)),
    finalizers: elements("finalizers").map((each) => JSON.parse(each.slice(2)) as string),
    owners: elements("owners").map((each) => (JSON.parse(each.slice(2)) as { uid: string }).uid),
  };
}

// The digest excludes values outside of lists: they are compared with the live object anyway, and may be secret.
function digestOf(desired: ObjectBody): string {
  const { metadata: _1, status: _2, apiVersion: _3, kind: _4, ...content } = plainOf(desired) as JsonObject;
  return hash("sha256", JSON.stringify(shapeOf(content, false)), "base64url").slice(0, 22);
}

function shapeOf(value: JsonValue, isInList: boolean): JsonValue {
  if (Array.isArray(value)) return value.map((item) => shapeOf(item, true));
  if (!isJsonObject(value)) return isInList ? value : 0;
  const members = Object.entries(value).filter(([, member]) => member !== null);
  const shapes = members.map(([name, member]) => [name, shapeOf(member, isInList)] as const);
  return Object.fromEntries(shapes.sort(([a], [b]) => (a < b ? -1 : 1)));
}
