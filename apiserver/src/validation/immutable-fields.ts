// Validation of immutable fields, with values formatted as kube-apiserver does in error messages.
import { wasGivenEmpty } from "../builtin/normal-form.js";
import { textAt } from "../builtin/read-path.js";
import { type FieldError, invalidError } from "../errors/field-error.js";
import { type JsonObject, type JsonValue, deepEqual, isObject, memberOf, objectAt } from "../json.js";
import { goSelector } from "./fields.js";

/** Validates that a value is unchanged. Both values are formatted as in the error message. */
export function checkKept(field: string, now: JsonValue, before: JsonValue): FieldError[] {
  return deepEqual(withoutEmpty(now), withoutEmpty(before)) ? [] : [invalidError(field, now, "field is immutable")];
}

// Kubernetes does not distinguish an empty list from an absent one here.
function withoutEmpty(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.length === 0 ? null : value.map(withoutEmpty);
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, withoutEmpty(member)]));
}

/** Like checkKept, for a string at a path; an absent string equals "". */
export function checkTextKept(path: string, now: JsonObject, before: JsonObject): FieldError[] {
  return checkKept(path, textAt(now, path), textAt(before, path));
}

/** Like checkKept, for a label selector. */
export function checkSelectorKept(field: string, now: JsonObject, before: JsonObject): FieldError[] {
  const shown = (object: JsonObject) => {
    const selector = objectAt(object, field);
    return selector === undefined ? null : goSelector(selector);
  };
  return checkKept(field, shown(now), shown(before));
}

/** Fields of a Go struct without JSON tags, with the zero value or the nested struct of each. */
export interface GoStruct {
  readonly [field: string]: "" | 0 | false | null | readonly [] | GoPart;
}

/** A nested struct: embedded, behind a pointer, or in a list. `[]` stands for a list of other values. */
export interface GoPart {
  readonly kind: "always" | "pointer" | "list";
  readonly struct: GoStruct;
}

/** Formats an object as Go prints the struct that it is decoded into. */
export function goForm(struct: GoStruct, object: JsonObject | undefined): JsonObject {
  return Object.fromEntries(
    Object.entries(struct).map(([field, shape]) => {
      const name = JSON_NAMES[field] ?? jsonNameOf(field);
      const value = memberOf(object, name);
      const isList = Array.isArray(shape) || (isPart(shape) && shape.kind === "list");
      const isEmpty = (value ?? null) === null || (Array.isArray(value) && value.length === 0);
      if (isList && isEmpty) return [field, wasGivenEmpty(object, name) ? [] : null];
      return [field, isPart(shape) ? formOfPart(shape, value) : (value ?? (shape as JsonValue))];
    }),
  );
}

function isPart(shape: GoStruct[string] | undefined): shape is GoPart {
  return typeof shape === "object" && shape !== null && !Array.isArray(shape);
}

function formOfPart({ kind, struct }: GoPart, value: JsonValue | undefined): JsonValue {
  if (kind === "list") return Array.isArray(value) ? value.filter(isObject).map((item) => goForm(struct, item)) : null;
  const object = isObject(value) ? value : undefined;
  return object === undefined && kind === "pointer" ? null : goForm(struct, object);
}

// Go fields whose JSON names do not follow the naming rule.
const JSON_NAMES: { readonly [field: string]: string } = {
  CephFS: "cephfs",
  PDName: "pdName",
  EndpointsName: "endpoints",
  CephMonitors: "monitors",
  RBDImage: "image",
  RBDPool: "pool",
  RadosUser: "user",
  ISCSIInterface: "iscsiInterface",
  DiscoveryCHAPAuth: "chapAuthDiscovery",
  SessionCHAPAuth: "chapAuthSession",
  DataDiskURI: "diskURI",
  StorageOS: "storageos",
  WWIDs: "wwids",
};

// `APIVersion` is apiVersion, `UID` is uid.
function jsonNameOf(field: string): string {
  return field.replace(/^[A-Z]+(?![a-z])|^[A-Z]/, (start) => start.toLowerCase());
}

/** ObjectReference. */
export const REFERENCE: GoStruct = {
  Kind: "",
  Namespace: "",
  Name: "",
  UID: "",
  APIVersion: "",
  ResourceVersion: "",
  FieldPath: "",
};

/** Formats an ObjectReference. */
export function goReference(reference: JsonObject | undefined): JsonObject {
  return goForm(REFERENCE, reference);
}
