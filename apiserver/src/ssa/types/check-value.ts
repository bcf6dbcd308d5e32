// Checks that an object fits its merge type. The texts are those of Kubernetes, Go's way of printing values included.
import { quote } from "../../errors/quote.js";
import type { JsonObject, JsonValue } from "../../json.js";
import { fieldElement, pathElementText, type PathElement } from "../fields/path-element.js";
import { identifyItem } from "../merge/list-item.js";
import { deducedType, definiteShape, shapeFor, type ListShape, type MapShape, type MergeType } from "./type-model.js";

/** Lists what does not fit, each as `.path: message`; `allowsDuplicates` for objects that are already stored. */
export function checkValue(type: MergeType, value: JsonValue, options: { allowsDuplicates: boolean }): string[] {
  const errors: string[] = [];
  checkAt({ type, parent: undefined, element: "", errors, allowsDuplicates: options.allowsDuplicates }, value);
  return errors;
}

/** Joins what checkValue found, the way Kubernetes does. */
export function typedErrorText(errors: readonly string[]): string {
  return errors.length === 1 ? (errors[0] as string) : `errors:\n${errors.map((error) => `  ${error}`).join("\n")}`;
}

interface Check {
  readonly type: MergeType;
  /** Where the value is: paths are only spelled out for errors. */
  readonly parent: Check | undefined;
  readonly element: PathElement;
  readonly errors: string[];
  readonly allowsDuplicates: boolean;
}

function below(parent: Check, type: MergeType, element: PathElement): Check {
  return { type, parent, element, errors: parent.errors, allowsDuplicates: parent.allowsDuplicates };
}

function pathOf({ parent, element }: Check): string {
  return parent === undefined ? "" : pathOf(parent) + pathElementText(element);
}

function checkAt(check: Check, value: JsonValue): void {
  // null fits every type.
  if (value === null) return;
  const { type } = check;
  switch (definiteShape(type, shapeFor(type, value))) {
    case "map":
      if (typeof value !== "object" || Array.isArray(value)) report(check, `expected map, got &{${goText(value)}}`);
      else checkMap(check, type.map as MapShape, value);
      return;
    case "list":
      if (!Array.isArray(value)) report(check, `expected list, got &{${goText(value)}}`);
      else checkList(check, type.list as ListShape, value);
      return;
    case "scalar":
      checkScalar(check, value);
  }
}

function checkScalar(check: Check, value: Exclude<JsonValue, null>): void {
  const kind = check.type.scalar;
  if (kind === "untyped") {
    if (typeof value === "object") report(check, `expected any scalar, got &{${goText(value)}}`);
  } else if (kind === "numeric") {
    if (typeof value !== "number") report(check, `expected numeric (int or float), got ${goType(value)}`);
  } else if (typeof value !== kind && kind === "boolean") {
    report(check, `expected boolean, got &{${goText(value)}}`);
  } else if (typeof value !== kind) {
    report(check, `expected ${kind}, got &value.valueUnstructured{Value:${goSyntax(value)}}`);
  }
}

function checkList(check: Check, list: ListShape, items: JsonValue[]): void {
  const seen = new Set<string>();
  const item = list.item();
  for (const [index, value] of items.entries()) {
    let element = `i:${index}`;
    if (!list.isAtomic) {
      const identity = identifyItem(list, value);
      if ("problem" in identity) return report(check, `element ${index}: ${identity.problem}`);
      element = identity.element;
      if (seen.has(element) && !check.allowsDuplicates) {
        report(check, `duplicate entries for key ${pathElementText(element)}`);
      }
      seen.add(element);
    }
    if (isTrivial(item, value)) continue;
    checkAt(below(check, item, element), value);
  }
}

function checkMap(check: Check, map: MapShape, object: JsonObject): void {
  for (const name of Object.keys(object)) {
    const value = object[name] as JsonValue;
    const field = map.fields.get(name);
    const type = (field?.type ?? map.rest)?.();
    if (type !== undefined && isTrivial(type, value)) continue;
    const inner = below(check, type ?? deducedType, field?.element ?? fieldElement(name));
    if (type === undefined) report(inner, "field not declared in schema");
    else checkAt(inner, value);
  }
}

/** Spares the bookkeeping for what is certainly right. */
function isTrivial(type: MergeType, value: JsonValue): boolean {
  if (value === null || type.isDeduced === true) return true;
  if (typeof value === "object") return false;
  const kind = type.scalar;
  return kind === "untyped" || kind === typeof value || (kind === "numeric" && typeof value === "number");
}

function report(check: Check, message: string): void {
  const path = pathOf(check);
  check.errors.push(path === "" ? message : `${path}: ${message}`);
}

function goType(value: Exclude<JsonValue, null>): string {
  if (typeof value === "string") return "string";
  if (typeof value === "boolean") return "bool";
  return Array.isArray(value) ? "[]interface {}" : "map[string]interface {}";
}

function goText(value: JsonValue): string {
  if (value === null) return "<nil>";
  if (typeof value !== "object") return String(value);
  if (Array.isArray(value)) return `[${value.map(goText).join(" ")}]`;
  return `map[${Object.keys(value)
    .sort()
    .map((name) => `${name}:${goText(value[name] as JsonValue)}`)
    .join(" ")}]`;
}

function goSyntax(value: JsonValue): string {
  if (value === null) return "interface {}(nil)";
  if (typeof value === "string") return quote(value);
  if (typeof value !== "object") return String(value);
  if (Array.isArray(value)) return `[]interface {}{${value.map(goSyntax).join(", ")}}`;
  return `map[string]interface {}{${Object.keys(value)
    .sort()
    .map((name) => `${quote(name)}:${goSyntax(value[name] as JsonValue)}`)
    .join(", ")}}`;
}
