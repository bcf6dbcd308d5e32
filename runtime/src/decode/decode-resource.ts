import { keyOf, type KubernetesObject, type ObjectKey } from "../base/kubernetes-object.js";
import type { DecodedResource, OwnedFields } from "../base/decoded-resource.js";
import { asciiString, findMember } from "./json-scanner.js";
import { scanHead, textWithoutCut, type OwnedRange } from "./object-head.js";

/** Reads the key and the version of the JSON object that begins at `start`: what is known already need not be decoded. */
export function peekIdentity(bytes: Buffer, start = 0): { key: ObjectKey; version: string } | undefined {
  const metadata = findMember(bytes, start, '"metadata"');
  if (metadata === undefined) return undefined;
  const name = stringMember(bytes, metadata, '"name"');
  const version = stringMember(bytes, metadata, '"resourceVersion"');
  if (name === undefined || version === undefined) return undefined;
  return { key: keyOf({ name, namespace: stringMember(bytes, metadata, '"namespace"') }), version };
}

function stringMember(bytes: Buffer, start: number, quotedKey: string): string | undefined {
  const value = findMember(bytes, start, quotedKey);
  return value === undefined ? undefined : asciiString(bytes, value);
}

/** Decodes an object, with what `fieldManagers` applied. To cut the other managed fields before parsing halves time and memory. */
export function decodeResource<Resource extends KubernetesObject>(
  bytes: Buffer,
  { start = 0, end = bytes.length, fieldManagers }: { start?: number; end?: number; fieldManagers: Iterable<string> },
): DecodedResource<Resource> {
  const head = scanHead(bytes, start, { fieldManagers });
  const range = { start, end, encoding: "utf8" } as const;
  const text = head === undefined ? bytes.toString("utf8", start, end) : textWithoutCut(bytes, head, range);
  const object = JSON.parse(text) as Resource;
  const owned = head?.owned.map((range) => ownedFieldsOf(range, fieldsV1Of(bytes, range, "utf8"))) ?? [];
  return owned.length === 0 ? { object } : { object, owned };
}

/** Returns an entry of the managed fields. */
export function ownedFieldsOf({ fieldManager, subresource, apiVersion }: OwnedRange, fieldsV1: string): OwnedFields {
  return { fieldManager, subresource, apiVersion, fieldsV1 };
}

/** Reads the fields that a controller applied. */
export function fieldsV1Of(bytes: Buffer, { fieldsStart, fieldsEnd }: OwnedRange, encoding: "latin1" | "utf8"): string {
  return fieldsEnd === fieldsStart ? "{}" : bytes.toString(encoding, fieldsStart, fieldsEnd);
}
