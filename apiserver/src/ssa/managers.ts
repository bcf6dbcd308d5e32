// metadata.managedFields as owners and back.
import { type JsonObject, type JsonValue, compareText, isObject, stringAt } from "../json.js";
import { FieldSet, decodeFieldsV1, encodeFieldsV1 } from "./field-set.js";
import type { OwnedFields, Owners } from "./updater.js";

/** The owners of an object and when each of them last changed something. */
export interface ManagedState {
  readonly owners: Owners;
  /** RFC 3339 by identity; a manager may have none. */
  readonly times: ReadonlyMap<string, string>;
}

/** What tells managers apart. */
export interface ManagerIdentity {
  readonly manager: string;
  readonly operation: "Apply" | "Update";
  /** Only part of the identity of an Update. */
  readonly apiVersion: string;
  readonly subresource: string;
}

/** The state of an object that nobody manages. */
export const UNMANAGED: ManagedState = { owners: new Map(), times: new Map() };

/** Gives the text by which a manager is known; an applier is one whatever version it speaks. */
export function identityOf({ manager, operation, apiVersion, subresource }: ManagerIdentity): string {
  return JSON.stringify({
    manager: manager === "" ? undefined : manager,
    operation,
    apiVersion: operation === "Update" ? apiVersion : undefined,
    subresource: subresource === "" ? undefined : subresource,
  });
}

/** Reads an identity back; the apiVersion of an applier is "". */
export function parseIdentity(identity: string): ManagerIdentity {
  const parsed = JSON.parse(identity) as Partial<ManagerIdentity>;
  const { manager = "", operation = "Update", apiVersion = "", subresource = "" } = parsed;
  return { manager, operation, apiVersion, subresource };
}

/** Reads metadata.managedFields; gives undefined if any entry of it cannot be read, for then none counts. */
export function decodeManagedFields(managedFields: JsonValue | undefined): ManagedState | undefined {
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

/** Writes metadata.managedFields, sorted: appliers first, then by time, manager, version and subresource. */
export function encodeManagedFields({ owners, times }: ManagedState): JsonObject[] {
  return [...owners]
    .map(([identity, owned]) => encodeEntry({ identity: parseIdentity(identity), owned, time: times.get(identity) }))
    .sort(compareEncoded);
}

/** Compares two entries of metadata.managedFields by their place in it. */
function compareEncoded(a: JsonObject, b: JsonObject): number {
  const textOf = (entry: JsonObject, key: string): string => stringAt(entry, key) ?? "";
  return (
    compareText(textOf(a, "operation"), textOf(b, "operation")) ||
    secondsOf(stringAt(a, "time")) - secondsOf(stringAt(b, "time")) ||
    ["manager", "apiVersion", "subresource"].reduce((sum, key) => sum || compareText(textOf(a, key), textOf(b, key)), 0)
  );
}

/** Tells RFC 3339 times apart by the second; no time is the first. */
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
    // Whatever is wrong inside fieldsV1, the entry is unreadable.
    return undefined;
  }
}

const MAX_UPDATERS = 10;
const BUCKET = "ancient-changes";

/** Merges the oldest updaters of a version into one when there are too many; appliers are never merged. */
export function capUpdaters(state: ManagedState): ManagedState {
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

// What a write of a Scale does to the managers of its object. Kubernetes shows them to the Scale as managers of a Scale: who updated the number in
// the object's version is then another one, who keeps the number alone and has no time.

/** Returns managedFields as they are after a write of the number at `path`, e.g. `.spec.replicas`. */
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
