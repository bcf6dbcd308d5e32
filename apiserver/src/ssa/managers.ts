// metadata.managedFields as owners and back.
import { compareText, isObject, stringAt, type JsonObject, type JsonValue } from "../json.js";
import { decodeFieldsV1, encodeFieldsV1 } from "./fields/fields-v1.js";
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
export function compareEncoded(a: JsonObject, b: JsonObject): number {
  const textOf = (entry: JsonObject, key: string): string => stringAt(entry, key) ?? "";
  return (
    compareText(textOf(a, "operation"), textOf(b, "operation")) ||
    secondsOf(stringAt(a, "time")) - secondsOf(stringAt(b, "time")) ||
    ["manager", "apiVersion", "subresource"].reduce((sum, key) => sum || compareText(textOf(a, key), textOf(b, key)), 0)
  );
}

/** Tells RFC 3339 times apart by the second; no time is the first. */
export function secondsOf(time: string | undefined): number {
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
