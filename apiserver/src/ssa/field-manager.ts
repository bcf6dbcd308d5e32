// Entry point of server-side apply: computes the object and its managedFields after a write.
import { quote } from "../errors/go-format.js";
import { type StatusError, applyConflict, badRequest, plainError } from "../errors/status-error.js";
import {
  type JsonObject,
  type JsonValue,
  canonicalJson,
  clone,
  compareText,
  deepEqual,
  isObject,
  objectAt,
  stringAt,
} from "../json.js";
import { FieldSet, decodeFieldsV1, encodeFieldsV1 } from "./field-set.js";
import { type MergeType, checkValue, compareValuesOf, fieldSetOf, typedErrorText } from "./typed-value.js";
import {
  type ApplyOutcome,
  type OwnedFields,
  type OwnedWrite,
  type OwnerConflict,
  type Owners,
  UnfitVersion,
  applyOwned,
  updateOwned,
} from "./updater.js";

/** A write and its field manager. */
export interface ManagedWrite {
  /** The stored object; undefined for a create. */
  live: JsonObject | undefined;
  manager: string;
  apiVersion: string;
  /** "" for the main resource. */
  subresource: string;
  mergeType: MergeType;
  /** Fields that the endpoint ignores, such as `FieldSet.of(".status")`. */
  resetFields: FieldSet;
  /** Ignores them also for managers that use other versions. Default: false */
  resetsAllVersions?: boolean | undefined;
  /** Current time in RFC 3339, in seconds. */
  now: string;
  /** Returns the merge type of another version; undefined if it is not served. Default: all versions have the same schema */
  mergeTypeOf?: ((apiVersion: string) => MergeType | undefined) | undefined;
  /** Converts a value to another version; throws an UnfitVersion on failure. Default: all versions have the same form */
  convert?: ((value: JsonObject, apiVersion: string) => JsonObject) | undefined;
  /** The zero value of a new object of the kind, whose fields get no owner. Default: {} */
  zero?: JsonObject | undefined;
}

/** A server-side apply. */
interface ManagedApply extends ManagedWrite {
  config: JsonObject;
  force: boolean;
  /** Finishes the merged object, possibly in place: defaulting and conversions. */
  finish: (merged: JsonObject) => JsonObject;
}

/** A create or update that is not an apply. */
interface ManagedUpdate extends ManagedWrite {
  object: JsonObject;
}

const SELF = "current-operation";
const BEFORE_FIRST_APPLY = "before-first-apply";

// Fields set by the server, and fields that identify the object, are never owned; labels and annotations are.
const NEVER_OWNED = FieldSet.of(
  ".apiVersion",
  ".kind",
  ".metadata",
  ...["name", "namespace", "creationTimestamp", "selfLink", "uid"].map((name) => `.metadata.${name}`),
  ...["clusterName", "generation", "managedFields", "resourceVersion"].map((name) => `.metadata.${name}`),
);

/** Applies a configuration; returns the merged object with its managedFields. Throws a StatusError if the configuration is invalid or conflicts. */
export function applyManaged(write: ManagedApply): JsonObject {
  const { config, live, manager, now } = write;
  const given = objectAt(config, "metadata")?.["managedFields"];
  if (given !== undefined && given !== null) throw badRequest("metadata.managedFields must be nil");
  checkConfig(write);

  const liveBare = withoutManagedFields(live);
  const identity = identityOf(identityOfWrite(write, "Apply"));
  const before = stateBeforeApply(write, liveBare);
  const owned = ownedWrite(write, { live: liveBare, owners: before.owners, manager: identity });
  const outcome = applyOrThrow(write, owned);

  const object = outcome.object === undefined ? clone(liveBare) : write.finish(clone(outcome.object));
  if (manager === KUBECTL) syncLastApplied(object, config);
  const times = new Map(before.times);
  if (outcome.object !== undefined) times.set(identity, now);
  return withManagedFields(object, { owners: stripped(outcome.owners, before.owners), times });
}

/** Tracks a create or update; returns the object with its managedFields. If the request contains managedFields, they replace the stored ones. */
export function updateManaged(write: ManagedUpdate): JsonObject {
  const { live, object, now } = write;
  const bare = withoutManagedFields(object);
  const before = stateBeforeUpdate(write);
  // Without managedFields, updates are not tracked until the first apply.
  if (live !== undefined && before.owners.size === 0) return bare;
  const liveBare = withoutManagedFields(live ?? write.zero);
  // A write is never rejected because of its managedFields; they are dropped instead.
  if (!fitsType(write, bare) || !fitsType(write, liveBare)) return bare;
  const recorded = recordUpdateIfFit(write, { before, liveBare, object: bare, manager: write.manager, now });
  return recorded === undefined ? bare : withManagedFields(bare, capUpdaters(recorded));
}

/**
 * Restores the old times in managedFields if nothing else has changed.
 *
 * Otherwise a no-op would be stored as a change because of the new time.
 */
export function restoreUnchangedTimes(live: JsonObject, object: JsonObject): JsonObject {
  const before = objectAt(live, "metadata")?.["managedFields"];
  const after = objectAt(object, "metadata")?.["managedFields"];
  if (!Array.isArray(before) || !Array.isArray(after) || before.length !== after.length) return object;
  if (!before.every((entry, index) => deepEqual(withoutTime(entry), withoutTime(after[index])))) return object;
  if (!deepEqual(withoutVersion(live), withoutVersion(object))) return object;
  return { ...object, metadata: { ...objectAt(object, "metadata"), managedFields: before } };
}

function applyOrThrow(write: ManagedApply, owned: OwnedWrite): Extract<ApplyOutcome, { kind: "applied" }> {
  const { config, force, manager, apiVersion, mergeType: type } = write;
  const outcome = applyOrUnfit(owned, config, { force });
  if (outcome.kind === "applied") return outcome;
  const { live } = owned;
  const conflicts =
    manager === KUBECTL ? withoutLastApplied(outcome.conflicts, { live, apiVersion, type }) : outcome.conflicts;
  const forced = conflicts.length === 0 ? applyOwned(owned, config, { force: true }) : undefined;
  if (forced?.kind !== "applied") throw applyConflictOf(conflicts);
  return forced;
}

function applyOrUnfit(owned: OwnedWrite, config: JsonObject, options: { force: boolean }): ApplyOutcome {
  try {
    return applyOwned(owned, config, options);
  } catch (error) {
    throw error instanceof UnfitVersion ? plainError(error.message) : error;
  }
}

/** Throws if an applied configuration does not match its schema. */
export function checkApplied(mergeType: MergeType, config: JsonObject): void {
  const errors = checkValue(mergeType, config, { allowsDuplicates: false });
  if (errors.length > 0) throw plainError(`failed to create typed patch object ${objectText(config, errors)}`);
}

function checkConfig({ config, live, mergeType }: ManagedApply): void {
  const liveErrors =
    live === undefined ? [] : checkValue(mergeType, withoutManagedFields(live), { allowsDuplicates: true });
  if (live !== undefined && liveErrors.length > 0 && !isManaged(live))
    throw plainError(
      `failed to create manager for existing fields: failed to convert new object ${objectText(live, liveErrors, " to smd typed")}`,
    );
  checkApplied(mergeType, config);
  if (live !== undefined && liveErrors.length > 0)
    throw plainError(`failed to create typed live object ${objectText(live, liveErrors)}`);
}

function isManaged(live: JsonObject): boolean {
  return (decodeManagedFields(objectAt(live, "metadata")?.["managedFields"]) ?? UNMANAGED).owners.size > 0;
}

function objectText(object: JsonObject, errors: string[], step = ""): string {
  const metadata = objectAt(object, "metadata");
  const [namespace, name] = [stringAt(metadata, "namespace") ?? "", stringAt(metadata, "name") ?? ""];
  const apiVersion = stringAt(object, "apiVersion") ?? "";
  const groupVersion = apiVersion.includes("/") ? apiVersion : `/${apiVersion}`;
  const kind = stringAt(object, "kind") ?? "";
  return `(${namespace}/${name}; ${groupVersion}, Kind=${kind})${step}: ${typedErrorText(errors)}`;
}

function stateBeforeApply(write: ManagedApply, liveBare: JsonObject): ManagedState {
  const { live, now } = write;
  if (live === undefined) return UNMANAGED;
  const decoded = decodeManagedFields(objectAt(live, "metadata")?.["managedFields"]) ?? UNMANAGED;
  if (decoded.owners.size > 0) return decoded;
  // The applier must not become the owner of existing fields that have no owner.
  const update = { before: UNMANAGED, liveBare: write.zero ?? {}, object: liveBare, manager: BEFORE_FIRST_APPLY, now };
  return capUpdaters(recordUpdate(write, update));
}

function stateBeforeUpdate({ live, object, subresource }: ManagedUpdate): ManagedState {
  if (live === undefined) return UNMANAGED;
  const liveState = decodeManagedFields(objectAt(live, "metadata")?.["managedFields"]) ?? UNMANAGED;
  if (subresource !== "") return liveState;
  const given = objectAt(object, "metadata")?.["managedFields"];
  if (isReset(given)) return UNMANAGED;
  const givenState = decodeManagedFields(given);
  // A client that does not send managedFields must not remove them.
  return givenState === undefined || givenState.owners.size === 0 ? liveState : givenState;
}

function isReset(managedFields: JsonValue | undefined): boolean {
  if (!Array.isArray(managedFields) || managedFields.length > 1) return false;
  const [only] = managedFields;
  return only === undefined || (isObject(only) && Object.keys(only).length === 0);
}

function recordUpdateIfFit(write: ManagedWrite, recording: Recording): ManagedState | undefined {
  try {
    return recordUpdate(write, recording);
  } catch (error) {
    if (error instanceof UnfitVersion) return undefined;
    throw error;
  }
}

interface Recording {
  before: ManagedState;
  liveBare: JsonObject;
  object: JsonObject;
  manager: string;
  now: string;
}

function recordUpdate(write: ManagedWrite, { before, liveBare, object, manager, now }: Recording): ManagedState {
  // The update is tracked under a temporary manager, so that only the fields that it changes are added to the manager's entry.
  const owned = ownedWrite(write, { live: liveBare, owners: before.owners, manager: SELF });
  const owners = new Map(stripped(updateOwned(owned, object), before.owners));
  const times = new Map(before.times);
  const changed = owners.get(SELF);
  if (changed !== undefined) {
    const identity = identityOf({ ...identityOfWrite(write, "Update"), manager });
    const previous = owners.get(identity);
    owners.delete(SELF);
    owners.set(identity, previous === undefined ? changed : { ...changed, set: changed.set.union(previous.set) });
    // As in Kubernetes, entries of the scale subresource have no time.
    if (write.subresource !== "scale") times.set(identity, now);
  }
  return { owners, times };
}

function ownedWrite(write: ManagedWrite, on: Pick<OwnedWrite, "live" | "owners" | "manager">): OwnedWrite {
  const { apiVersion, mergeType, mergeTypeOf, resetFields, resetsAllVersions, convert } = write;
  const { live, owners, manager } = on;
  const typeOf = (version: string): MergeType | undefined =>
    version === apiVersion || mergeTypeOf === undefined ? mergeType : mergeTypeOf(version);
  return { live, owners, manager, apiVersion, typeOf, resetFields, resetsAllVersions, convert };
}

function identityOfWrite(
  { manager, apiVersion, subresource }: ManagedWrite,
  operation: "Apply" | "Update",
): ManagerIdentity {
  return { manager: manager === "" ? "unknown" : manager, operation, apiVersion, subresource };
}

function fitsType({ mergeType }: ManagedWrite, object: JsonObject): boolean {
  return checkValue(mergeType, object, { allowsDuplicates: true }).length === 0;
}

// Reuse an unchanged set, so that its cached encoding stays valid.
function stripped(owners: Owners, before: Owners): Owners {
  const result = new Map<string, NonNullable<ReturnType<Owners["get"]>>>();
  for (const [identity, owned] of owners) {
    const { apiVersion, isApplied } = owned;
    const left = owned.set.difference(NEVER_OWNED);
    const old = before.get(identity)?.set;
    const set = old !== undefined && left !== old && left.equals(old) ? old : left;
    if (!set.isEmpty) result.set(identity, set === owned.set ? owned : { set, apiVersion, isApplied });
  }
  return result;
}

function withoutManagedFields(object: JsonObject | undefined): JsonObject {
  if (object === undefined) return {};
  const metadata = objectAt(object, "metadata");
  if (metadata === undefined || !Object.hasOwn(metadata, "managedFields")) return object;
  const { managedFields: _, ...rest } = metadata;
  return { ...object, metadata: rest };
}

function withManagedFields(object: JsonObject, state: ManagedState): JsonObject {
  const managedFields = encodeManagedFields(state);
  if (managedFields.length === 0) return object;
  return { ...object, metadata: { ...objectAt(object, "metadata"), managedFields } };
}

function withoutTime(entry: JsonValue | undefined): JsonValue | undefined {
  return isObject(entry) ? { ...entry, time: null } : entry;
}

function withoutVersion(object: JsonObject): JsonObject {
  const { resourceVersion: _, managedFields: __, ...metadata } = objectAt(object, "metadata") ?? {};
  return { ...object, metadata };
}

// Client-side apply stores the applied configuration in an annotation. When `kubectl apply --server-side` meets such an object, the fields in the
// annotation count as kubectl's own, and the annotation is updated.

/** The only manager that this applies to. */
const KUBECTL = "kubectl";

const ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration";
const MAX_ANNOTATIONS_BYTES = 256 * 1024;

/** Removes conflicts on the fields in the last-applied annotation, which kubectl may change. */
function withoutLastApplied(
  conflicts: readonly OwnerConflict[],
  { live, apiVersion, type }: { live: JsonObject; apiVersion: string; type: MergeType },
): OwnerConflict[] {
  const covered = coveredFields(live, apiVersion, type);
  if (covered === undefined) return [...conflicts];
  return conflicts
    .map(({ manager, fields }) => ({ manager, fields: fields.difference(covered) }))
    .filter(({ fields }) => !fields.isEmpty);
}

/** Updates the last-applied annotation if the object has it; removes it if the annotations become too large. */
function syncLastApplied(object: JsonObject, config: JsonObject): void {
  const annotations = objectAt(objectAt(object, "metadata"), "annotations");
  if (annotations === undefined || !stringAt(annotations, ANNOTATION)) return;
  annotations[ANNOTATION] = lastAppliedOf(config);
  const size = Object.entries(annotations).reduce((sum, [key, value]) => sum + bytesOf(key) + bytesOf(value), 0);
  if (size > MAX_ANNOTATIONS_BYTES) delete annotations[ANNOTATION];
}

function coveredFields(live: JsonObject, apiVersion: string, type: MergeType): FieldSet | undefined {
  const text = stringAt(objectAt(objectAt(live, "metadata"), "annotations"), ANNOTATION);
  const applied = text === undefined ? undefined : parseObject(text);
  if (applied?.["apiVersion"] !== apiVersion) return undefined;
  if (checkValue(type, applied, { allowsDuplicates: false }).length > 0) return undefined;
  const { modified, added, removed } = compareValuesOf(type, applied, live);
  return fieldSetOf(type, applied).difference(modified).difference(added).difference(removed);
}

function parseObject(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    // Users can edit the annotation. If it is not valid JSON, it is ignored.
    return undefined;
  }
}

function lastAppliedOf(config: JsonObject): string {
  const applied = clone(config);
  const metadata = objectAt(applied, "metadata");
  const annotations = objectAt(metadata, "annotations");
  if (annotations !== undefined && metadata !== undefined) {
    delete annotations[ANNOTATION];
    if (Object.keys(annotations).length === 0) delete metadata["annotations"];
  }
  return `${canonicalJson(applied)}\n`;
}

function bytesOf(value: JsonValue): number {
  return typeof value === "string" ? Buffer.byteLength(value) : 0;
}

/** Builds the 409 Status of an apply that conflicts with other managers. */
function applyConflictOf(conflicts: readonly OwnerConflict[]): StatusError {
  const sorted = [...conflicts].sort((a, b) => compareText(a.manager, b.manager));
  const groups = sorted.map(({ manager, fields }) => ({ manager: managerText(manager), paths: fields.paths() }));
  const causes = groups.flatMap(({ manager, paths }) =>
    paths.map((field) => ({ reason: "FieldManagerConflict", message: `conflict with ${manager}`, field })),
  );
  const [only] = causes;
  if (causes.length === 1 && only !== undefined) {
    return applyConflict(`Apply failed with 1 conflict: ${only.message}: ${only.field}`, causes);
  }
  const lines = groups.flatMap(({ manager, paths }) => [
    `conflicts with ${manager}:`,
    ...paths.map((path) => `- ${path}`),
  ]);
  return applyConflict(`Apply failed with ${causes.length} conflicts: ${lines.join("\n")}`, causes);
}

function managerText(identity: string): string {
  const { manager, operation, apiVersion, subresource } = parseIdentity(identity);
  const on = subresource === "" ? "" : ` with subresource ${quote(subresource)}`;
  return `${quote(manager)}${on}${operation === "Update" ? ` using ${apiVersion}` : ""}`;
}

// Decoding and encoding of metadata.managedFields.

/** The owners of an object, and the times of their last change. */
interface ManagedState {
  readonly owners: Owners;
  /** RFC 3339, by identity; a manager may have none. */
  readonly times: ReadonlyMap<string, string>;
}

/** The identity of an entry in managedFields. */
interface ManagerIdentity {
  readonly manager: string;
  readonly operation: "Apply" | "Update";
  /** Ignored for Apply. */
  readonly apiVersion: string;
  readonly subresource: string;
}

/** State of an object without managedFields. */
const UNMANAGED: ManagedState = { owners: new Map(), times: new Map() };

/** Encodes the identity of a manager; the version of an applier is not part of it. */
function identityOf({ manager, operation, apiVersion, subresource }: ManagerIdentity): string {
  return JSON.stringify({
    manager: manager === "" ? undefined : manager,
    operation,
    apiVersion: operation === "Update" ? apiVersion : undefined,
    subresource: subresource === "" ? undefined : subresource,
  });
}

/** Decodes an identity; the apiVersion of an applier is "". */
function parseIdentity(identity: string): ManagerIdentity {
  const parsed = JSON.parse(identity) as Partial<ManagerIdentity>;
  const { manager = "", operation = "Update", apiVersion = "", subresource = "" } = parsed;
  return { manager, operation, apiVersion, subresource };
}

/** Decodes metadata.managedFields; undefined if any entry is invalid, as Kubernetes then ignores all of them. */
function decodeManagedFields(managedFields: JsonValue | undefined): ManagedState | undefined {
  if (managedFields === undefined || managedFields === null) return UNMANAGED;
  if (!Array.isArray(managedFields)) return undefined;
  const owners = new Map<string, OwnedFields>();
  const times = new Map<string, string>();
  for (const entry of managedFields) {
    const decoded = decodeEntry(entry);
    if (decoded === undefined) return undefined;
    owners.set(decoded.identity, decoded.owned);
    if (decoded.time !== undefined) times.set(decoded.identity, decoded.time);
  }
  return { owners, times };
}

/** Encodes metadata.managedFields, sorted by operation (Apply first), time, manager, version, and subresource. */
function encodeManagedFields({ owners, times }: ManagedState): JsonObject[] {
  return [...owners]
    .map(([identity, owned]) => encodeEntry({ identity: parseIdentity(identity), owned, time: times.get(identity) }))
    .sort(compareEncoded);
}

/** Orders two entries of metadata.managedFields. */
function compareEncoded(a: JsonObject, b: JsonObject): number {
  const textOf = (entry: JsonObject, key: string): string => stringAt(entry, key) ?? "";
  return (
    compareText(textOf(a, "operation"), textOf(b, "operation")) ||
    secondsOf(stringAt(a, "time")) - secondsOf(stringAt(b, "time")) ||
    ["manager", "apiVersion", "subresource"].reduce((sum, key) => sum || compareText(textOf(a, key), textOf(b, key)), 0)
  );
}

/** Converts an RFC 3339 time to seconds; an absent or invalid time is 0. */
function secondsOf(time: string | undefined): number {
  const milliseconds = time === undefined ? 0 : Date.parse(time);
  return Number.isNaN(milliseconds) ? 0 : Math.floor(milliseconds / 1000);
}

interface Entry {
  readonly identity: ManagerIdentity;
  readonly owned: OwnedFields;
  readonly time: string | undefined;
}

function encodeEntry({ identity: { manager, operation, subresource }, owned, time }: Entry): JsonObject {
  const entry: JsonObject = {};
  if (manager !== "") entry["manager"] = manager;
  entry["operation"] = operation;
  entry["apiVersion"] = owned.apiVersion;
  if (time !== undefined) entry["time"] = time;
  entry["fieldsType"] = "FieldsV1";
  entry["fieldsV1"] = encodeFieldsV1(owned.set);
  if (subresource !== "") entry["subresource"] = subresource;
  return entry;
}

function decodeEntry(entry: JsonValue): { identity: string; owned: OwnedFields; time?: string } | undefined {
  if (!isObject(entry)) return undefined;
  const { manager = "", operation, apiVersion, fieldsType, fieldsV1, time, subresource = "" } = entry;
  if (operation !== "Apply" && operation !== "Update") return undefined;
  if (typeof apiVersion !== "string" || apiVersion === "" || fieldsType !== "FieldsV1") return undefined;
  if (typeof manager !== "string" || typeof subresource !== "string") return undefined;
  try {
    const set = decodeFieldsV1(isObject(fieldsV1) ? fieldsV1 : {});
    const identity = identityOf({ manager, operation, apiVersion, subresource });
    const owned = { set, apiVersion, isApplied: operation === "Apply" };
    return typeof time === "string" ? { identity, owned, time } : { identity, owned };
  } catch {
    // Any error in fieldsV1 makes the entry invalid.
    return undefined;
  }
}

const MAX_UPDATERS = 10;
const BUCKET = "ancient-changes";

/** Merges the oldest updaters of a version if there are more than ten; appliers are never merged. */
function capUpdaters(state: ManagedState): ManagedState {
  const owners = new Map(state.owners);
  const times = new Map(state.times);
  const updaters = [...owners].filter(([, owned]) => !owned.isApplied).map(([identity]) => identity);
  let count = updaters.length;
  if (count <= MAX_UPDATERS) return state;

  updaters.sort((a, b) => secondsOf(times.get(a)) - secondsOf(times.get(b)) || compareText(a, b));
  const firstOfVersion = new Map<string, string>();
  for (const identity of updaters) {
    if (count <= MAX_UPDATERS) break;
    const { apiVersion } = owners.get(identity) as OwnedFields;
    const first = firstOfVersion.get(apiVersion);
    if (first === undefined) {
      firstOfVersion.set(apiVersion, identity);
      continue;
    }
    const bucket = identityOf({ manager: BUCKET, operation: "Update", apiVersion, subresource: "" });
    mergeInto({ owners, times, bucket }, [first, identity]);
    firstOfVersion.set(apiVersion, bucket);
    count--;
  }
  return { owners, times };
}

interface Merging {
  owners: Map<string, OwnedFields>;
  times: Map<string, string>;
  bucket: string;
}

function mergeInto({ owners, times, bucket }: Merging, identities: readonly string[]): void {
  const time = times.get(identities.at(-1) as string);
  for (const identity of identities) {
    const owned = owners.get(identity);
    if (owned === undefined || identity === bucket) continue;
    const merged = owners.get(bucket);
    owners.delete(identity);
    times.delete(identity);
    owners.set(bucket, merged === undefined ? owned : { ...merged, set: merged.set.union(owned.set) });
  }
  if (time !== undefined) times.set(bucket, time);
}

// Managed fields of writes to the scale subresource. Kubernetes maps them to managers of a Scale: an updater of the replicas in the object's version
// is split into a separate entry that owns only the replicas and has no time.

/** Returns managedFields after a write of the replicas at `path`, such as `.spec.replicas`, to the scale subresource. */
export function throughScale(managedFields: JsonValue[], path: string): JsonValue[] {
  const number = FieldSet.of(path);
  return managedFields
    .filter(isObject)
    .flatMap((entry) => splitEntry(entry, number))
    .sort(compareEncoded);
}

function splitEntry(entry: JsonObject, number: FieldSet): JsonObject[] {
  const { time: _, ...timeless } = entry;
  if (entry["operation"] === "Apply") return [entry["subresource"] === "scale" ? timeless : entry];
  const set = decodeFieldsV1(isObject(entry["fieldsV1"]) ? entry["fieldsV1"] : {});
  if (set.intersection(number).isEmpty) return [entry];
  const rest = set.difference(number);
  const ofNumber = { ...timeless, fieldsV1: encodeFieldsV1(number) };
  return rest.isEmpty ? [ofNumber] : [{ ...entry, fieldsV1: encodeFieldsV1(rest) }, ofNumber];
}
