// Breaking is what may refuse, drop or change the meaning of an object that the schema from before accepts, or what a reader of it takes
// for granted. The schemas are structural, so they are trees.
import type { RawSchema } from "../model/project-model.js";
import { isIntOrString, isRecord, ownSchema, schemasOf } from "../model/schema/raw-schema.js";
import type { AddChange } from "./change.js";

/** Compares two schemas of one version, field by field. */
export function compareSchemas(before: RawSchema, after: RawSchema, add: AddChange): void {
  compareAt("", [withoutOwn(before), withoutOwn(after)], add);
}

// Every object has these, whatever the schema says of them.
function withoutOwn(schema: RawSchema): RawSchema {
  const {
    apiVersion: _apiVersion,
    kind: _kind,
    metadata,
    ...properties
  } = Object.fromEntries(schemasOf(schema, "properties"));
  const isLimited =
    metadata !== undefined && Object.keys(metadata).some((keyword) => keyword !== "type" && keyword !== "description");
  return { ...schema, properties: isLimited ? { ...properties, metadata } : properties };
}

function compareAt(path: string, [before, after]: readonly [RawSchema, RawSchema], add: AddChange): void {
  const [typeBefore, typeAfter] = [typeOf(before), typeOf(after)];
  if (typeBefore !== typeAfter) {
    const wider = isWider(typeBefore, typeAfter);
    add(wider ? "compatible" : "breaking", path, `type ${typeBefore ?? "any"} → ${typeAfter ?? "any"}`);
    if (!wider) return;
  }
  compareValues(before, after, (effect, message) => add(effect, path, message));
  compareFields(path, [before, after], add);
  const [items, itemsAfter] = [ownSchema(before, "items"), ownSchema(after, "items")];
  if (items !== undefined && itemsAfter !== undefined) compareAt(`${path}[]`, [items, itemsAfter], add);
  const [values, valuesAfter] = [ownSchema(before, "additionalProperties"), ownSchema(after, "additionalProperties")];
  if (values !== undefined && valuesAfter !== undefined) compareAt(`${path}.*`, [values, valuesAfter], add);
}

function compareFields(path: string, [before, after]: readonly [RawSchema, RawSchema], add: AddChange): void {
  const [former, current] = [schemasOf(before, "properties"), schemasOf(after, "properties")];
  const [required, requiredAfter] = [namesIn(before, "required"), namesIn(after, "required")];
  const isOpen = after["x-kubernetes-preserve-unknown-fields"] === true || after["additionalProperties"] !== undefined;
  for (const [name, field] of former) {
    const at = path === "" ? name : `${path}.${name}`;
    const now = current.get(name);
    if (now === undefined) {
      add(
        "breaking",
        at,
        isOpen ? "removed; its values stay, without a type" : "removed; the API server drops its values",
      );
      continue;
    }
    if (!required.has(name) && requiredAfter.has(name))
      if (now["default"] === undefined) add("breaking", at, "is required now; objects without it are refused");
      else add("compatible", at, "is required now, and has a default");
    if (required.has(name) && !requiredAfter.has(name)) add("compatible", at, "is optional now");
    compareAt(at, [field, now], add);
  }
  for (const [name, field] of current) {
    if (former.has(name)) continue;
    const at = path === "" ? name : `${path}.${name}`;
    if (requiredAfter.has(name) && field["default"] === undefined)
      add("breaking", at, "added, and required without a default; objects without it are refused");
    else add("compatible", at, "added");
  }
}

type AddValueChange = (effect: "breaking" | "compatible", message: string) => void;

function compareValues(before: RawSchema, after: RawSchema, add: AddValueChange): void {
  compareEnums(before["enum"], after["enum"], add);
  for (const keyword of ["pattern", "format", "multipleOf", "uniqueItems"] as const)
    compareChecks(keyword, [before[keyword], after[keyword]], add);
  for (const keyword of ["minimum", "minLength", "minItems", "minProperties"] as const)
    compareLimits(keyword, [before[keyword], after[keyword]], { isLower: true, add });
  for (const keyword of ["maximum", "maxLength", "maxItems", "maxProperties"] as const)
    compareLimits(keyword, [before[keyword], after[keyword]], { isLower: false, add });
  for (const keyword of ["exclusiveMinimum", "exclusiveMaximum"] as const)
    if ((before[keyword] === true) !== (after[keyword] === true))
      add(
        after[keyword] === true ? "breaking" : "compatible",
        `${keyword} ${text(before[keyword])} → ${text(after[keyword])}`,
      );
  compareDefaults(before["default"], after["default"], add);
  compareMerging(before, after, add);
  if ((before["nullable"] === true) !== (after["nullable"] === true))
    add(
      after["nullable"] === true ? "compatible" : "breaking",
      after["nullable"] === true ? "may be null now" : "may no longer be null",
    );
  const keeps = (schema: RawSchema) => schema["x-kubernetes-preserve-unknown-fields"] === true;
  if (keeps(before) !== keeps(after))
    add(
      keeps(after) ? "compatible" : "breaking",
      keeps(after) ? "keeps unknown fields now" : "unknown fields are dropped now",
    );
  for (const keyword of ["oneOf", "anyOf", "allOf", "not"] as const)
    compareChecks(keyword, [before[keyword], after[keyword]], add);
  const [rules, rulesAfter] = [rulesOf(before), rulesOf(after)];
  for (const rule of rulesAfter) if (!rules.has(rule)) add("breaking", addedRuleText(rule));
  for (const rule of rules) if (!rulesAfter.has(rule)) add("compatible", `validation rule removed: ${rule}`);
}

// A rule about the value before refuses changes, and no object as it is.
function addedRuleText(rule: string): string {
  if (/^\s*(self == oldSelf|oldSelf == self)\s*$/.test(rule))
    return `is immutable now (${rule.trim()}); writes that change it are refused`;
  return /\boldSelf\b/.test(rule)
    ? `validation rule for changes added: ${rule}; objects as they are stay valid`
    : `validation rule added: ${rule}`;
}

function compareEnums(before: unknown, after: unknown, add: AddValueChange): void {
  if (!Array.isArray(before) || !Array.isArray(after)) {
    if (Array.isArray(after)) add("breaking", `only these values now: ${after.map(text).join(", ")}`);
    if (Array.isArray(before)) add("compatible", "any value now, where there was an enum");
    return;
  }
  const [former, current] = [before.map(text), after.map(text)];
  const removed = former.filter((value) => !current.includes(value));
  const added = current.filter((value) => !former.includes(value));
  if (removed.length > 0) add("breaking", `enum without ${removed.join(", ")}; objects with it are refused`);
  if (added.length > 0)
    add("compatible", `enum with ${added.join(", ")}; code that tells all values apart has one more`);
}

function compareChecks(keyword: string, [before, after]: readonly [unknown, unknown], add: AddValueChange): void {
  if (text(before) === text(after)) return;
  if (after === undefined) add("compatible", `${keyword} removed`);
  else if (before === undefined) add("breaking", `${keyword} added: ${text(after)}`);
  else add("breaking", `${keyword} ${text(before)} → ${text(after)}`);
}

interface LimitOptions {
  readonly isLower: boolean;
  readonly add: AddValueChange;
}

function compareLimits(
  keyword: string,
  [before, after]: readonly [unknown, unknown],
  { isLower, add }: LimitOptions,
): void {
  if (before === after) return;
  const isTighter =
    typeof after === "number" && (typeof before !== "number" || (isLower ? after > before : after < before));
  add(isTighter ? "breaking" : "compatible", `${keyword} ${text(before)} → ${text(after)}`);
}

function compareDefaults(before: unknown, after: unknown, add: AddValueChange): void {
  if (text(before) === text(after)) return;
  if (before === undefined) add("compatible", `default added: ${text(after)}; it also fills in objects that exist`);
  else if (after === undefined) add("breaking", `default removed: ${text(before)}; the field may be absent now`);
  else add("breaking", `default ${text(before)} → ${text(after)}; objects that never stated the field change`);
}

// How server-side apply merges decides who owns what.
function compareMerging(before: RawSchema, after: RawSchema, add: AddValueChange): void {
  for (const keyword of ["x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type"] as const)
    if (text(before[keyword]) !== text(after[keyword]))
      add(
        "breaking",
        `${keyword.slice("x-kubernetes-".length)} ${text(before[keyword])} → ${text(after[keyword])}; server-side apply merges it in another way`,
      );
}

function typeOf(schema: RawSchema): string | undefined {
  if (isIntOrString(schema)) return "int-or-string";
  return typeof schema["type"] === "string" ? schema["type"] : undefined;
}

function isWider(before: string | undefined, after: string | undefined): boolean {
  if (after === undefined) return true;
  if (after === "number") return before === "integer";
  return after === "int-or-string" && (before === "integer" || before === "string");
}

function namesIn(schema: RawSchema, keyword: string): ReadonlySet<string> {
  const names = schema[keyword];
  return new Set(Array.isArray(names) ? names.filter((name) => typeof name === "string") : []);
}

function rulesOf(schema: RawSchema): ReadonlySet<string> {
  const rules = schema["x-kubernetes-validations"];
  if (!Array.isArray(rules)) return new Set();
  return new Set(
    rules.flatMap((each: unknown) => (isRecord(each) && typeof each["rule"] === "string" ? [each["rule"]] : [])),
  );
}

function text(value: unknown): string {
  return value === undefined ? "none" : JSON.stringify(value);
}
