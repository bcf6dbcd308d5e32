import type { KubernetesObject } from "../base/kubernetes-object.js";
import { asciiString, findMember, forEachElement, forEachMember, isText, type Range } from "./json-scanner.js";

/** What the controller itself applied to an object, as the API server recorded it in `metadata.managedFields`. */
export interface OwnedFields {
  readonly apiVersion: string;
  /** The FieldsV1 of the entry as JSON text. */
  readonly fieldsV1: string;
}

/**
 * An object of the API server as the runtime keeps it: without `managedFields`, which are most of its size, but for the entries
 * of the controller itself.
 */
export interface DecodedResource<Resource extends KubernetesObject = KubernetesObject> {
  readonly object: Resource;
  /** What the controller applied; absent if it applied nothing. */
  readonly owned?: OwnedFields;
  /** What the controller applied through the `status` subresource. */
  readonly ownedStatus?: OwnedFields;
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

const COMMA = 0x2c;
const OPEN_BRACKET = 0x5b;

/**
 * Decodes the JSON object that begins at `start`; the bytes behind the managed fields are moved, so the buffer must not be used again.
 *
 * Cutting before parsing halves the time and the memory of an object: the keys of managed fields are unique strings.
 */
export function decodeResource<Resource extends KubernetesObject>(
  bytes: Buffer,
  { start = 0, end = bytes.length, fieldManager }: { start?: number; end?: number; fieldManager: string },
): DecodedResource<Resource> {
  const metadata = findMember(bytes, start, '"metadata"');
  const managed = metadata && findMember(bytes, metadata.value, '"managedFields"');
  if (managed === undefined || bytes[managed.value] !== OPEN_BRACKET)
    return { object: JSON.parse(bytes.toString("utf8", start, end)) as Resource };
  const owned: { owned?: OwnedFields; ownedStatus?: OwnedFields } = {};
  const manager = JSON.stringify(fieldManager);
  const managedEnd = forEachElement(bytes, managed.value, (entry) => readEntry(bytes, entry, { manager, owned }));
  const cut = withComma(bytes, { start: managed.key, end: managedEnd });
  bytes.copyWithin(cut.start, cut.end, end);
  const text = bytes.toString("utf8", start, end - (cut.end - cut.start));
  return { object: JSON.parse(text) as Resource, ...owned };
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

function readEntry(
  bytes: Buffer,
  entry: Range,
  { manager, owned }: { manager: string; owned: { owned?: OwnedFields; ownedStatus?: OwnedFields } },
): void {
  let isOwn = false;
  let isApply = false;
  let apiVersion = "";
  let fieldsV1 = "{}";
  let subresource = "";
  forEachMember(bytes, entry.start, (key, value) => {
    const text = () => bytes.toString("utf8", value.start, value.end);
    if (isText(bytes, key, '"manager"')) {
      isOwn = text() === manager;
      // The API server writes the manager first, so the fields of others are not looked at.
      return !isOwn;
    }
    if (isText(bytes, key, '"operation"')) isApply = text() === '"Apply"';
    else if (isText(bytes, key, '"apiVersion"')) apiVersion = JSON.parse(text()) as string;
    else if (isText(bytes, key, '"fieldsV1"')) fieldsV1 = text();
    else if (isText(bytes, key, '"subresource"')) subresource = JSON.parse(text()) as string;
    return false;
  });
  if (!isOwn || !isApply) return;
  if (subresource === "") owned.owned = { apiVersion, fieldsV1 };
  else if (subresource === "status") owned.ownedStatus = { apiVersion, fieldsV1 };
}
