// What an update has to leave as it was, and how Kubernetes shows what is otherwise.
import { invalidError, type FieldError } from "../../errors/field-error.js";
import { deepEqual, isObject, memberOf, objectAt, type JsonObject, type JsonValue } from "../../json.js";
import { wasGivenEmpty } from "../normal-form.js";
import { textAt } from "../read-path.js";
import { goSelector } from "./field-rules.js";

/** Demands that a value is what it was; both as Kubernetes shows them. */
export function checkKept(field: string, now: JsonValue, before: JsonValue): FieldError[] {
  return deepEqual(now, before) ? [] : [invalidError(field, now, "field is immutable")];
}

/** Demands that the text at a path below an object is what it was, of which none is "". */
export function checkTextKept(path: string, now: JsonObject, before: JsonObject): FieldError[] {
  return checkKept(path, textAt(now, path), textAt(before, path));
}

/** Demands that a selector of labels in a field is what it was. */
export function checkSelectorKept(field: string, now: JsonObject, before: JsonObject): FieldError[] {
  const shown = (object: JsonObject) => {
    const selector = objectAt(object, field);
    return selector === undefined ? null : goSelector(selector);
  };
  return checkKept(field, shown(now), shown(before));
}

/** A Go struct whose fields have no names in JSON: what each of them is when it is absent, or what structs it holds. */
export interface GoStruct {
  readonly [field: string]: "" | 0 | false | null | GoPart;
}

/** Structs in a field: one that is always there, one behind a pointer, or a list of them. */
export interface GoPart {
  readonly kind: "always" | "pointer" | "list";
  readonly struct: GoStruct;
}

/** Shows an object as Go prints the struct that it is decoded into. */
export function goForm(struct: GoStruct, object: JsonObject | undefined): JsonObject {
  return Object.fromEntries(
    Object.entries(struct).map(([field, shape]) => {
      const name = jsonNameOf(field);
      const value = memberOf(object, name);
      if (typeof shape !== "object" || shape === null) return [field, value ?? shape];
      return [field, shape.kind === "list" && wasGivenEmpty(object, name) ? [] : formOfPart(shape, value)];
    }),
  );
}

function formOfPart({ kind, struct }: GoPart, value: JsonValue | undefined): JsonValue {
  if (kind === "list") return Array.isArray(value) ? value.filter(isObject).map((item) => goForm(struct, item)) : null;
  const object = isObject(value) ? value : undefined;
  return object === undefined && kind === "pointer" ? null : goForm(struct, object);
}

// `APIVersion` is apiVersion, `UID` is uid.
function jsonNameOf(field: string): string {
  return field.replace(/^[A-Z]+(?![a-z])|^[A-Z]/, (start) => start.toLowerCase());
}

const REFERENCE: GoStruct = {
  Kind: "",
  Namespace: "",
  Name: "",
  UID: "",
  APIVersion: "",
  ResourceVersion: "",
  FieldPath: "",
};

/** Shows a reference to an object. */
export function goReference(reference: JsonObject | undefined): JsonObject {
  return goForm(REFERENCE, reference);
}
