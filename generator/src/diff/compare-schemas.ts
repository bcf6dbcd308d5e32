// A change is breaking if the API server may reject, drop, or reinterpret values of an object that is valid under the former schema, or if readers of
// the object may rely on a property that no longer holds. The comparison walks both normal forms and reports every difference: by a rule, or as
// unjudged.
import { type JsonObject, type JsonValue, deepEqual, exactJson } from "@gen-operator/schema";
import type { RawSchema } from "../model/project-model.js";
import type { AddChange, Change, ChangeDetails } from "./change.js";
import {
  type Bound,
  type NormalField,
  type NormalRule,
  type NormalSchema,
  type OtherFields,
  fieldJson,
  isCheckedFormat,
  normalizeSchema,
  othersJson,
  schemaJson,
} from "./normal-schema.js";

/** Compares two schemas of the same version, part by part. */
export function compareSchemas(before: RawSchema, after: RawSchema, add: AddChange): void {
  compareNodes({ path: "", unit: "", isItem: false, add }, normalizeSchema(before), normalizeSchema(after));
}

/** The position of a schema in the comparison. */
interface Node {
  readonly path: string;
  /** See {@link Site.unit}. */
  readonly unit: string;
  readonly isItem: boolean;
  readonly add: AddChange;
}

/** Reports a changed part by `compare`, or as unjudged if `compare` reports nothing. */
function judge(node: Node, message: string, compare: (add: AddChange) => void): void {
  let isJudged = false;
  compare((...change) => {
    isJudged = true;
    node.add(...change);
  });
  if (!isJudged)
    node.add("breaking", node.path, `${message}; unknown effect: review it`, {
      consequence: "unjudged",
      check: "unhandled",
    });
}

/** Compares two schemas in normal form. */
function compareNodes(node: Node, before: NormalSchema, after: NormalSchema): void {
  const [typeBefore, typeAfter] = [before, after].map(({ keywords }) => keywords.get("type"));
  const isOtherType = typeBefore !== typeAfter;
  for (const keyword of new Set([...before.keywords.keys(), ...after.keywords.keys()])) {
    // If the type is incompatible, the other keywords are not comparable.
    if (isOtherType && keyword !== "type" && !isWider(typeBefore, typeAfter)) continue;
    compareKeyword(node, keyword, before, after);
  }
  if (isOtherType && !isWider(typeBefore, typeAfter)) return;
  compareFields(node, before, after);
  compareItems(node, before, after);
  if (!deepEqual(othersJson(before.others), othersJson(after.others)))
    judge(node, changeText("unknown fields", othersJson(before.others), othersJson(after.others)), (add) =>
      compareOthers({ ...node, add }, before.others, after.others),
    );
}

function compareKeyword(node: Node, keyword: string, before: NormalSchema, after: NormalSchema): void {
  const change = { before: before.keywords.get(keyword), after: after.keywords.get(keyword) };
  if (deepEqual(change.before, change.after)) return;
  judge(node, changeText(keyword, change.before, change.after), (add) => {
    const rule = KEYWORD_RULES.get(keyword);
    const { path, unit, isItem } = node;
    const site: Site = {
      ...{ path, unit, isItem, type: after.keywords.get("type") },
      add: (effect, message, details) => add(effect, path, message, { ...details, check: rule?.check ?? "unhandled" }),
    };
    if (keyword === EMBEDDED) compareEmbedded(site, after);
    else rule?.compare(change, site);
  });
}

const EMBEDDED = "x-kubernetes-embedded-resource";

function compareEmbedded(site: Site, after: NormalSchema): void {
  if (after.keywords.get(EMBEDDED) === true)
    site.add(
      "breaking",
      "is an embedded resource now: every write of an object is rejected if apiVersion, kind or metadata are missing or invalid in it",
      { consequence: "everyWriteRefused" },
    );
  else if (after.others.kind === "dropped")
    site.add(
      "breaking",
      "is no longer an embedded resource; the API server drops apiVersion, kind and metadata unless the schema declares them",
      { consequence: "valuesDropped" },
    );
  else site.add("compatible", "is no longer an embedded resource; apiVersion, kind and metadata are not checked");
}

const ABSENT: NormalField = { isRequired: false };

/** Compares the fields that either schema declares or requires. */
function compareFields(node: Node, before: NormalSchema, after: NormalSchema): void {
  for (const name of new Set([...before.fields.keys(), ...after.fields.keys()])) {
    const [former, current] = [before.fields.get(name) ?? ABSENT, after.fields.get(name) ?? ABSENT];
    if (deepEqual(fieldJson(former), fieldJson(current))) continue;
    const path = node.path === "" ? name : `${node.path}.${name}`;
    const unit = node.unit === node.path ? path : node.unit;
    judge({ ...node, path }, "differs", (add) => {
      const field = { ...node, path, unit, isItem: false, add };
      compareRequired(field, { node, former, current, after });
      if (former.schema !== undefined && current.schema !== undefined)
        compareNodes(field, former.schema, current.schema);
      else if (former.schema !== undefined) compareRemoved(field, former.schema, after);
      else if (current.schema !== undefined) compareAdded(field, current, before);
    });
  }
}

interface RequiredChange {
  /** The object that contains the field. */
  readonly node: Node;
  readonly former: NormalField;
  readonly current: NormalField;
  readonly after: NormalSchema;
}

const REQUIRED = { check: "required" } as const;

function compareRequired(field: Node, { node, former, current }: RequiredChange): void {
  const { path, add } = field;
  const hasDefault = current.schema?.keywords.has("default") === true;
  if (!former.isRequired && current.isRequired) {
    const isAdded = former.schema === undefined && current.schema !== undefined;
    // A missing required field is an error of the enclosing object.
    const details = { ...refusalOf(node), ...REQUIRED };
    if (hasDefault)
      add(
        "compatible",
        path,
        isAdded ? "added, and required with a default" : "is required now, and has a default",
        REQUIRED,
      );
    else
      add(
        "breaking",
        path,
        `${isAdded ? "added, and required without a default" : "is required now"}; ${missingText(node)}`,
        details,
      );
  }
  if (former.isRequired && !current.isRequired && current.schema !== undefined)
    if (hasDefault) add("compatible", path, "is optional now, and has a default", REQUIRED);
    else add("breaking", path, `is optional now; ${READERS_TEXT}`, { ...READERS, ...REQUIRED });
  else if (former.isRequired && !current.isRequired && former.schema === undefined)
    add("compatible", path, "is optional now", REQUIRED);
}

function missingText({ path, unit }: Node): string {
  if (unit === "") return "every write of an object without it is rejected";
  const around = unit === path ? path : unit;
  return `new objects without it are rejected; stored ones remain writable since Kubernetes 1.30 while ${around} is unchanged`;
}

const FORBIDDEN: ChangeDetails = { consequence: "everyWriteRefused" };
const REMOVED: ChangeDetails = { check: "existingFieldRemoval" };

function compareRemoved(field: Node, former: NormalSchema, { others }: NormalSchema): void {
  const { path, add } = field;
  switch (others.kind) {
    case "dropped":
      return add("breaking", path, "removed; the API server drops its values", {
        consequence: "valuesDropped",
        ...REMOVED,
      });
    case "refused":
      return add("breaking", path, "removed; every write of an object with the field is rejected", {
        ...FORBIDDEN,
        ...REMOVED,
      });
    case "checked": {
      let isOther = false;
      compareNodes({ ...field, add: (...change) => ((isOther = true), add(...change)) }, former, others.schema);
      if (!isOther) add("compatible", path, "removed; additionalProperties has the same schema", REMOVED);
      return;
    }
    default:
      return add("breaking", path, `removed; its values are kept, without a type; ${READERS_TEXT}`, {
        ...READERS,
        ...REMOVED,
      });
  }
}

function compareAdded(field: Node, { schema, isRequired }: NormalField, { others }: NormalSchema): void {
  const { path, add } = field;
  if (schema === undefined) return;
  if (others.kind === "checked") {
    let isOther = false;
    compareNodes({ ...field, add: (...change) => ((isOther = true), add(...change)) }, others.schema, schema);
    if (!isOther) add("compatible", path, "added, with the same schema as additionalProperties");
  } else if (others.kind === "dropped" || others.kind === "refused" || isOpen(schema)) {
    // compareRequired reports a field that is required.
    if (!isRequired) add("compatible", path, "added");
  } else
    add(
      "breaking",
      path,
      `added to an object with unknown fields: values of another type are possible; ${refusalText(field)}`,
      { ...refusalOf(field), check: "unhandled" },
    );
}

/** Returns whether a schema accepts and preserves every value. */
function isOpen({ keywords, fields, others }: NormalSchema): boolean {
  return keywords.size === 0 && fields.size === 0 && others.kind === "kept";
}

function compareItems(node: Node, before: NormalSchema, after: NormalSchema): void {
  const { path, unit } = node;
  const [items, now] = [before.items, after.items];
  if (items !== undefined && now !== undefined) {
    const isKeyed = [before, after].every(({ keywords }) => isMap(keywords.get("x-kubernetes-list-type")));
    const inner = `${path}[]`;
    // Items of a list without keys are not correlated, so they are only ratcheted if the whole list is unchanged.
    const isWithinList = unit !== path || !isKeyed;
    return compareNodes({ ...node, path: inner, unit: isWithinList ? unit : inner, isItem: true }, items, now);
  }
  const json = (schema: NormalSchema | undefined) => (schema === undefined ? undefined : schemaJson(schema));
  if (items !== undefined || now !== undefined)
    judge(node, changeText("items", json(items), json(now)), () => undefined);
}

function isMap(listType: JsonValue | undefined): boolean {
  return typeof listType === "object" && listType !== null && !Array.isArray(listType) && listType["type"] === "map";
}

const DROPPED: ChangeDetails = { consequence: "valuesDropped", check: "unhandled" };

function compareOthers(node: Node, before: OtherFields, after: OtherFields): void {
  const { path, add } = node;
  const say = (effect: "breaking" | "compatible", message: string, details: ChangeDetails = {}) =>
    add(effect, path, message, { ...details, check: "unhandled" });
  const keeps = ({ kind }: OtherFields) => kind === "kept" || kind === "any";
  if (before.kind === "checked" && after.kind === "checked") {
    const inner = `${path}.*`;
    const unit = node.unit === path ? inner : node.unit;
    return compareNodes({ ...node, path: inner, unit, isItem: false }, before.schema, after.schema);
  }
  if (after.kind === "dropped") {
    if (before.kind === "refused") say("compatible", "unknown fields are dropped now, and no longer rejected");
    else if (before.kind === "checked")
      say("breaking", "is no longer a map (additionalProperties removed); the API server drops its values", DROPPED);
    else say("breaking", "unknown fields are dropped now", DROPPED);
  } else if (after.kind === "refused") {
    // The API server does not ratchet this error (1.36).
    const message = "unknown fields are rejected now (additionalProperties: false)";
    if (before.kind === "dropped")
      say("breaking", `${message} and no longer dropped`, { consequence: "newValuesRefused" });
    else say("breaking", `${message}; every write of an object with such a field is rejected`, FORBIDDEN);
  } else if (after.kind === "checked") {
    if (before.kind === "refused") say("compatible", "is a map now");
    else if (before.kind === "dropped")
      say("compatible", "keeps unknown fields now if they match additionalProperties");
    else say("breaking", `unknown fields must match additionalProperties now; ${refusalText(node)}`, refusalOf(node));
  } else if (before.kind === "checked") say("breaking", `may have fields of any type now; ${READERS_TEXT}`, READERS);
  else if (!keeps(before)) say("compatible", "keeps unknown fields now");
}

// The consequences of changed keywords. A keyword without a rule, or whose rule reports nothing, is reported as unjudged.

/** The position of a schema, and how its changes are reported. */
interface Site {
  readonly path: string;
  /**
   * Path of the nearest enclosing value that validation ratcheting compares with the stored object. For items of a list without keys, this is the
   * whole list. "" is the whole object, which every write changes.
   */
  readonly unit: string;
  /** Type of the values after the change. */
  readonly type: JsonValue | undefined;
  /** True if the values are items of a list, where the API server rejects null instead of dropping it. */
  readonly isItem: boolean;
  add(effect: Change["effect"], message: string, details?: Omit<ChangeDetails, "check">): void;
}

/** The former and the current value of a keyword, in normal form. One of them may be absent. */
interface KeywordChange {
  readonly before: JsonValue | undefined;
  readonly after: JsonValue | undefined;
}

type KeywordRule = (change: KeywordChange, site: Site) => void;

/** Describes the consequence for objects that violate a schema. */
function refusalText({ path, unit }: Pick<Site, "path" | "unit">): string {
  if (unit === "") return "every write of an object that violates it is rejected";
  const until = unit === path ? "" : ` while ${unit} is unchanged`;
  return `new values are rejected; stored ones remain writable since Kubernetes 1.30${until}`;
}

/** Returns the consequence of a schema that stored objects may violate. */
function refusalOf({ unit }: Pick<Site, "unit">): ChangeDetails {
  return { consequence: unit === "" ? "everyWriteRefused" : "newValuesRefused" };
}

/** Consequence for clients of a field that may now be absent, null, or of another type. */
const READERS_TEXT = "readers' types change";
/** The same consequence as a field of the change. */
const READERS = { consequence: "readersTypesChange" } as const;

/** Reports that values are rejected which were valid. */
function refuse(site: Site, message: string): void {
  site.add("breaking", `${message}; ${refusalText(site)}`, refusalOf(site));
}

const compareType: KeywordRule = ({ before, after }, site) => {
  const message = `type ${wordOf(before)} → ${wordOf(after)}`;
  if (isWider(before, after)) return site.add("breaking", `${message}; ${READERS_TEXT}`, READERS);
  const narrower = before === undefined || isWider(after, before);
  refuse(site, narrower ? message : `${message}; ${READERS_TEXT}`);
};

function wordOf(type: JsonValue | undefined): string {
  return type === undefined ? "any" : String(type);
}

/** Returns whether all values of type `before` are also values of type `after`. */
function isWider(before: JsonValue | undefined, after: JsonValue | undefined): boolean {
  if (after === undefined) return true;
  if (after === "number") return before === "integer";
  return after === "int-or-string" && (before === "integer" || before === "string");
}

const compareNullable: KeywordRule = ({ after }, site) => {
  if (after === true) site.add("breaking", `may be null now; ${READERS_TEXT}`, READERS);
  else if (site.isItem) refuse(site, "may no longer be null");
  else
    site.add("breaking", "may no longer be null; the API server drops null values", { consequence: "valuesDropped" });
};

const compareEnum: KeywordRule = ({ before, after }, site) => {
  if (!Array.isArray(before) || !Array.isArray(after)) {
    if (Array.isArray(after)) refuse(site, `only these values now: ${after.map(text).join(", ")}`);
    else if (Array.isArray(before)) site.add("compatible", "any value now, enum removed");
    return;
  }
  const [former, current] = [before.map(text), after.map(text)];
  const [removed, added] = [without(former, current), without(current, former)];
  if (removed.length > 0) refuse(site, `enum without ${removed.join(", ")}`);
  if (added.length > 0)
    site.add("compatible", `enum with ${added.join(", ")}; code that handles every value has to handle it`);
};

const compareFormat: KeywordRule = ({ before, after }, site) => {
  const message = changeText("format", before, after);
  const isChecked = (format: JsonValue | undefined) => typeof format === "string" && isCheckedFormat(format, site.type);
  if (!isChecked(after)) {
    const note = after === undefined || !isChecked(before) ? "" : "; the API server does not check it";
    return site.add("compatible", `${message}${note}`);
  }
  // These formats are the widest, and are assumed if no format is set.
  const isLoosened = after === "int64" || after === "double";
  if (isLoosened) site.add("compatible", message);
  else refuse(site, message);
};

const compareMultipleOf: KeywordRule = ({ before, after }, site) => {
  const message = changeText("multipleOf", before, after);
  const isLoosened =
    after === undefined || (typeof before === "number" && typeof after === "number" && isMultiple(before, after));
  if (isLoosened) site.add("compatible", message);
  else refuse(site, message);
};

function isMultiple(value: number, factor: number): boolean {
  const quotient = value / factor;
  return Math.abs(quotient - Math.round(quotient)) < 1e-9;
}

function compareBound(keyword: string, isLower: boolean): KeywordRule {
  const words = (bound: JsonValue | undefined) => {
    if (bound === undefined) return "none";
    const { limit, isExclusive } = bound as Bound;
    return `${limit}${isExclusive ? " (exclusive)" : ""}`;
  };
  return ({ before, after }, site) => {
    const message = `${keyword} ${words(before)} → ${words(after)}`;
    if (isWithin(before as Bound | undefined, after as Bound | undefined, isLower)) site.add("compatible", message);
    else refuse(site, message);
  };
}

/** Returns whether all values within bound `before` are also within bound `after`. */
function isWithin(before: Bound | undefined, after: Bound | undefined, isLower: boolean): boolean {
  if (after === undefined) return true;
  if (before === undefined) return false;
  if (before.limit !== after.limit) return isLower ? after.limit < before.limit : after.limit > before.limit;
  return before.isExclusive || !after.isExclusive;
}

function compareCount(keyword: string, isLower: boolean): KeywordRule {
  return ({ before, after }, site) => {
    const message = `${keyword} ${text(before)} → ${text(after)}`;
    const isTighter =
      typeof after === "number" && (typeof before !== "number" || (isLower ? after > before : after < before));
    if (isTighter) refuse(site, message);
    else site.add("compatible", message);
  };
}

/** A keyword that cannot be compared in parts. */
function compareWhole(keyword: string): KeywordRule {
  return ({ before, after }, site) => {
    const message = changeText(keyword, before, after);
    if (after === undefined) site.add("compatible", message);
    else refuse(site, message);
  };
}

/** Adding branches loosens `anyOf`; removing branches loosens `allOf`. */
function compareBranches(keyword: "anyOf" | "allOf"): KeywordRule {
  return ({ before, after }, site) => {
    const [former, current] = [before, after].map((value) => (Array.isArray(value) ? value.map(text) : [])) as [
      string[],
      string[],
    ];
    const [removed, added] = [without(former, current), without(current, former)];
    const isLoosened =
      current.length === 0 || (former.length > 0 && (keyword === "anyOf" ? removed : added).length === 0);
    const message = changeText(keyword, before, after);
    if (isLoosened) site.add("compatible", message);
    else refuse(site, message);
  };
}

const compareDefault: KeywordRule = ({ before, after }, site) => {
  if (before === undefined)
    site.add("compatible", `default added: ${text(after)}; it also applies to stored objects that lack the field`);
  else if (after === undefined)
    site.add("breaking", `default removed: ${text(before)}; new objects may lack the field; ${READERS_TEXT}`, READERS);
  else
    site.add(
      "breaking",
      `default ${text(before)} → ${text(after)}; stored objects keep ${text(before)}, new ones without the field get ${text(after)}`,
      { consequence: "behaviorChanges" },
    );
};

// The list type determines how server-side apply merges a list and tracks field ownership.
const compareListType: KeywordRule = ({ before, after }, site) => {
  const type = (value: JsonValue | undefined) => ((value as JsonObject | undefined)?.["type"] ?? "atomic") as string;
  const words = (value: JsonValue | undefined) => {
    const keys = ((value as JsonObject | undefined)?.["keys"] ?? []) as string[];
    return keys.length === 0 ? type(value) : `${type(value)} by ${keys.join(", ")}`;
  };
  const message = `list-type ${words(before)} → ${words(after)}; server-side apply merges it differently`;
  if (type(after) === "atomic") site.add("breaking", message, { consequence: "behaviorChanges" });
  else
    site.add(
      "breaking",
      `${message}, and lists with a repeated ${type(after) === "set" ? "value" : "key"} are rejected: ${refusalText(site)}`,
      refusalOf(site),
    );
};

const compareMapType: KeywordRule = ({ before, after }, site) =>
  site.add(
    "breaking",
    `map-type ${String(before ?? "granular")} → ${String(after ?? "granular")}; server-side apply merges it differently`,
    { consequence: "behaviorChanges" },
  );

// A transition rule, which uses oldSelf, restricts updates; any other rule restricts values.
const compareRules: KeywordRule = ({ before, after }, site) => {
  const keyed = (value: JsonValue | undefined) =>
    new Map(
      (Array.isArray(value) ? (value as NormalRule[]) : []).map((rule) => [
        `${rule.rule}${rule["optionalOldSelf"] === true ? " on creation, too" : ""}`,
        rule,
      ]),
    );
  const [former, current] = [keyed(before), keyed(after)];
  for (const [key, { rule }] of current)
    if (!former.has(key)) {
      if (/^(self == oldSelf|oldSelf == self)$/.test(rule))
        site.add("breaking", `is immutable now (${rule}); writes that change it are rejected`, {
          consequence: "newValuesRefused",
        });
      else if (/\boldSelf\b/.test(rule))
        site.add("breaking", `validation rule for changes added: ${key}; writes that violate it are rejected`, {
          consequence: "newValuesRefused",
        });
      else refuse(site, `validation rule added: ${key}`);
    }
  for (const [key, rule] of former) {
    const now = current.get(key);
    if (now === undefined) site.add("compatible", `validation rule removed: ${key}`);
    else if (text(now) !== text(rule))
      site.add("compatible", `validation rule has another message, reason or fieldPath: ${key}`);
  }
};

/** Names of the checks of crdify, by keyword. */
const CRDIFY_CHECKS: ReadonlyMap<string, string> = new Map([
  ...["allOf", "anyOf", "default", "enum", "format", "maximum", "maxItems", "maxLength", "maxProperties"].map(same),
  ...["minimum", "minItems", "minLength", "minProperties", "not", "nullable", "oneOf", "pattern", "type"].map(same),
  ["x-kubernetes-validations", "xvalidations"],
]);

function same(keyword: string): [string, string] {
  return [keyword, keyword];
}

/** Rules by keyword, each with the name of crdify's check. */
const KEYWORD_RULES: ReadonlyMap<string, { readonly check: string; readonly compare: KeywordRule }> = new Map(
  Object.entries<KeywordRule>({
    type: compareType,
    nullable: compareNullable,
    enum: compareEnum,
    format: compareFormat,
    multipleOf: compareMultipleOf,
    minimum: compareBound("minimum", true),
    maximum: compareBound("maximum", false),
    minLength: compareCount("minLength", true),
    minItems: compareCount("minItems", true),
    minProperties: compareCount("minProperties", true),
    maxLength: compareCount("maxLength", false),
    maxItems: compareCount("maxItems", false),
    maxProperties: compareCount("maxProperties", false),
    pattern: compareWhole("pattern"),
    oneOf: compareWhole("oneOf"),
    not: compareWhole("not"),
    anyOf: compareBranches("anyOf"),
    allOf: compareBranches("allOf"),
    default: compareDefault,
    "x-kubernetes-list-type": compareListType,
    "x-kubernetes-map-type": compareMapType,
    "x-kubernetes-validations": compareRules,
  }).map(([keyword, compare]) => [keyword, { check: CRDIFY_CHECKS.get(keyword) ?? "unhandled", compare }]),
);

/** Describes a change of a keyword. */
export function changeText(keyword: string, before: JsonValue | undefined, after: JsonValue | undefined): string {
  if (after === undefined) return `${keyword} removed: ${text(before)}`;
  if (before === undefined) return `${keyword} added: ${text(after)}`;
  return `${keyword} ${text(before)} → ${text(after)}`;
}

/** Formats a value for a message. */
export function text(value: JsonValue | undefined): string {
  return value === undefined ? "none" : exactJson(value);
}

function without(values: readonly string[], others: readonly string[]): string[] {
  return values.filter((value) => !others.includes(value));
}
