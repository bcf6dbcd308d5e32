import { keyOf, type KubernetesObject, type ObjectKey } from "../base/kubernetes-object.js";
import {
  asciiString,
  endOfValue,
  findMember,
  forEachMember,
  isText,
  walkElements,
  walkMembers,
} from "./json-scanner.js";

/** What a controller applied to an object, as the API server recorded it in `metadata.managedFields`. */
export interface OwnedFields {
  readonly fieldManager: string;
  /** The subresource through which it was applied; empty if it was the object itself. */
  readonly subresource: string;
  readonly apiVersion: string;
  /** The FieldsV1 of the entry as JSON text. */
  readonly fieldsV1: string;
}

/**
 * An object of the API server as the runtime keeps it: without `managedFields`, which are most of its size, but for what the
 * controllers of this operator applied.
 */
export interface DecodedResource<Resource extends KubernetesObject = KubernetesObject> {
  readonly object: Resource;
  /** What the controllers of this operator applied; absent if they applied nothing. */
  readonly owned?: readonly OwnedFields[];
}

/** Returns what a controller applied to an object, or through a subresource of it; undefined if it applied nothing. */
export function ownedBy(
  { owned }: DecodedResource,
  fieldManager: string,
  subresource: "" | "status" = "",
): OwnedFields | undefined {
  return owned?.find((fields) => fields.fieldManager === fieldManager && fields.subresource === subresource);
}

/** Returns the version of an object; "0", which is older than any, if it has none. */
export function versionOf({ object }: DecodedResource): string {
  return object.metadata.resourceVersion ?? "0";
}

/**
 * Reads the resource version of the JSON object that begins at `start` without decoding it; undefined if it has none.
 *
 * Every own write is seen twice, in its answer and in the watch: whichever comes second need not be decoded.
 */
export function peekResourceVersion(bytes: Buffer, start = 0): string | undefined {
  const metadata = findMember(bytes, start, '"metadata"');
  const version = metadata && findMember(bytes, metadata.value, '"resourceVersion"');
  return version && asciiString(bytes, version.value);
}

/** Returns the uid of an object, if there is one. */
export function uidOf(entry: DecodedResource | undefined): string | undefined {
  return entry?.object.metadata.uid;
}

/**
 * Reads the key and the version of the JSON object that begins at `start` without decoding it; undefined if it lacks one of them.
 *
 * Most of what a whole state brings again is known already.
 */
export function peekIdentity(bytes: Buffer, start = 0): { key: ObjectKey; version: string } | undefined {
  const metadata = findMember(bytes, start, '"metadata"');
  if (metadata === undefined) return undefined;
  let name: string | undefined;
  let namespace: string | undefined;
  let version: string | undefined;
  forEachMember(bytes, metadata.value, (key, value) => {
    if (isText(bytes, key, '"name"')) name = asciiString(bytes, value.start);
    else if (isText(bytes, key, '"namespace"')) namespace = asciiString(bytes, value.start);
    else if (isText(bytes, key, '"resourceVersion"')) version = asciiString(bytes, value.start);
    // The namespace stands before the version, if there is one.
    return name !== undefined && version !== undefined;
  });
  return name === undefined || version === undefined ? undefined : { key: keyOf({ name, namespace }), version };
}

const COMMA = 0x2c;
const OPEN_BRACKET = 0x5b;

/**
 * Decodes the JSON object that begins at `start`; the bytes behind the managed fields are moved, so the buffer must not be used again.
 *
 * Of the managed fields only what `fieldManagers` applied is kept. Cutting before parsing halves the time and the memory of an object:
 * the keys of managed fields are unique strings.
 */
export function decodeResource<Resource extends KubernetesObject>(
  bytes: Buffer,
  { start = 0, end = bytes.length, fieldManagers }: { start?: number; end?: number; fieldManagers: Iterable<string> },
): DecodedResource<Resource> {
  const metadata = findMember(bytes, start, '"metadata"');
  const managed = metadata && findMember(bytes, metadata.value, '"managedFields"');
  if (managed === undefined || bytes[managed.value] !== OPEN_BRACKET)
    return { object: JSON.parse(bytes.toString("utf8", start, end)) as Resource };
  const owned: OwnedFields[] = [];
  const managedEnd = readOwnedFields(bytes, managed.value, { fieldManagers, owned });
  const cut = withComma(bytes, { start: managed.key, end: managedEnd });
  bytes.copyWithin(cut.start, cut.end, end);
  const text = bytes.toString("utf8", start, end - (cut.end - cut.start));
  const object = JSON.parse(text) as Resource;
  return owned.length === 0 ? { object } : { object, owned };
}

/** Adds what `fieldManagers` applied, according to the managed fields that begin at `start`; returns the index behind them. */
export function readOwnedFields(
  bytes: Buffer,
  start: number,
  { fieldManagers, owned }: { fieldManagers: Iterable<string>; owned: OwnedFields[] },
): number {
  if (bytes[start] !== OPEN_BRACKET) return endOfValue(bytes, start);
  return walkElements(bytes, start, (entry) => readEntry(bytes, entry, { fieldManagers, owned }));
}

// The member goes with the comma that separates it from the one before, or else from the one behind.
function withComma(bytes: Buffer, { start, end }: { start: number; end: number }): { start: number; end: number } {
  let before = start - 1;
  while (bytes[before]! <= 0x20) before--;
  if (bytes[before] === COMMA) return { start: before, end };
  let behind = end;
  while (bytes[behind]! <= 0x20) behind++;
  return bytes[behind] === COMMA ? { start, end: behind + 1 } : { start, end };
}

// Adds what one of these managers applied to the object or its status; returns the index behind the entry.
function readEntry(
  bytes: Buffer,
  start: number,
  { fieldManagers, owned }: { fieldManagers: Iterable<string>; owned: OwnedFields[] },
): number {
  let fieldManager: string | undefined;
  let isApply = false;
  let apiVersion = "";
  let fieldsV1 = "{}";
  let subresource = "";
  const end = walkMembers(bytes, start, (key, value) => {
    const valueEnd = endOfValue(bytes, value);
    const text = () => bytes.toString("utf8", value, valueEnd);
    if (isText(bytes, key, '"manager"')) {
      const range = { start: value, end: valueEnd };
      for (const name of fieldManagers) if (isText(bytes, range, quotedBytesOf(name))) fieldManager = name;
      // The API server writes the manager first, so the fields of others are not looked at.
      if (fieldManager === undefined) return undefined;
    } else if (isText(bytes, key, '"operation"')) isApply = text() === '"Apply"';
    else if (isText(bytes, key, '"apiVersion"')) apiVersion = JSON.parse(text()) as string;
    else if (isText(bytes, key, '"fieldsV1"')) fieldsV1 = text();
    else if (isText(bytes, key, '"subresource"')) subresource = JSON.parse(text()) as string;
    return valueEnd;
  });
  const isKept = fieldManager !== undefined && isApply && (subresource === "" || subresource === "status");
  if (isKept) owned.push({ fieldManager: fieldManager!, subresource, apiVersion, fieldsV1 });
  return end ?? endOfValue(bytes, start);
}

const quotedNames = new Map<string, string>();

// The bytes of a name in JSON, as characters; an operator has few field managers, and each is looked for in every object.
function quotedBytesOf(name: string): string {
  let quoted = quotedNames.get(name);
  if (quoted === undefined) quotedNames.set(name, (quoted = Buffer.from(JSON.stringify(name)).toString("latin1")));
  return quoted;
}
