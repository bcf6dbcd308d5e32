// What a change of a keyword of a schema means. A keyword without a rule here, or whose rule finds nothing to say, is reported as unjudged.
import type { JsonObject, JsonValue } from "@gen-operator/schema";
import type { ChangeDetails, Change } from "./change.js";
import { isCheckedFormat, type Bound, type NormalRule } from "./normal-schema.js";

/** Where a schema is, and how changes of it are reported. */
export interface Site {
  readonly path: string;
  /**
   * The nearest value around the schema that the API server compares with the stored one to forgive what is wrong in it (ratcheting):
   * an item of a list without keys is compared with its whole list. "" is the whole object, which every write changes.
   */
  readonly unit: string;
  /** The type of the values after the change. */
  readonly type: JsonValue | undefined;
  /** Whether values are items of a list: there the API server refuses null, which it drops elsewhere. */
  readonly isItem: boolean;
  add(effect: Change["effect"], message: string, details?: Omit<ChangeDetails, "check">): void;
}

/** The former value of a keyword and the present one, in normal form; one of the two may be absent. */
export interface KeywordChange {
  readonly before: JsonValue | undefined;
  readonly after: JsonValue | undefined;
}

type KeywordRule = (change: KeywordChange, site: Site) => void;

/** Says what happens to objects that break a schema. */
export function refusalText({ path, unit }: Pick<Site, "path" | "unit">): string {
  if (unit === "") return "every write of an object that breaks it is refused";
  const until = unit === path ? "" : ` while ${unit} stays the same`;
  return `new values are refused; stored ones stay writable since Kubernetes 1.30${until}`;
}

/** Returns the consequence of a schema that some stored objects break. */
export function refusalOf({ unit }: Pick<Site, "unit">): ChangeDetails {
  return { consequence: unit === "" ? "everyWriteRefused" : "newValuesRefused" };
}

/** What a field that may be absent, null or of another type means to those who read it. */
export const READERS_TEXT = "readers' types change";
/** The consequence of it. */
export const READERS = { consequence: "readersTypesChange" } as const;

/** Reports that values are refused which were valid. */
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

/** Tells whether values of a type are values of another one, too. */
export function isWider(before: JsonValue | undefined, after: JsonValue | undefined): boolean {
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
    else if (Array.isArray(before)) site.add("compatible", "any value now, where there was an enum");
    return;
  }
  const [former, current] = [before.map(text), after.map(text)];
  const [removed, added] = [without(former, current), without(current, former)];
  if (removed.length > 0) refuse(site, `enum without ${removed.join(", ")}`);
  if (added.length > 0)
    site.add("compatible", `enum with ${added.join(", ")}; code that tells all values apart has one more`);
};

const compareFormat: KeywordRule = ({ before, after }, site) => {
  const message = changeText("format", before, after);
  const isChecked = (format: JsonValue | undefined) => typeof format === "string" && isCheckedFormat(format, site.type);
  if (!isChecked(after)) {
    const note = after === undefined || !isChecked(before) ? "" : "; the API server does not check it";
    return site.add("compatible", `${message}${note}`);
  }
  // What the API server assumes without a format is the wider one.
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

/** Tells whether what is within a bound is within another one, too. */
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

/** A keyword that is met or not as a whole. */
function compareWhole(keyword: string): KeywordRule {
  return ({ before, after }, site) => {
    const message = changeText(keyword, before, after);
    if (after === undefined) site.add("compatible", message);
    else refuse(site, message);
  };
}

/** A value that meets one branch meets `anyOf`; one that meets `allOf` meets fewer branches, too. */
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
    site.add("compatible", `default added: ${text(after)}; it also fills in stored objects that lack the field`);
  else if (after === undefined)
    site.add("breaking", `default removed: ${text(before)}; new objects may lack the field; ${READERS_TEXT}`, READERS);
  else
    site.add(
      "breaking",
      `default ${text(before)} → ${text(after)}; stored objects keep ${text(before)}, new ones that leave the field out get ${text(after)}`,
      { consequence: "behaviorChanges" },
    );
};

// How server-side apply merges a list decides which manager owns what.
const compareListType: KeywordRule = ({ before, after }, site) => {
  const type = (value: JsonValue | undefined) => ((value as JsonObject | undefined)?.["type"] ?? "atomic") as string;
  const words = (value: JsonValue | undefined) => {
    const keys = ((value as JsonObject | undefined)?.["keys"] ?? []) as string[];
    return keys.length === 0 ? type(value) : `${type(value)} by ${keys.join(", ")}`;
  };
  const message = `list-type ${words(before)} → ${words(after)}; server-side apply merges it in another way`;
  if (type(after) === "atomic") site.add("breaking", message, { consequence: "behaviorChanges" });
  else
    site.add(
      "breaking",
      `${message}, and lists with a repeated ${type(after) === "set" ? "value" : "key"} are refused: ${refusalText(site)}`,
      refusalOf(site),
    );
};

const compareMapType: KeywordRule = ({ before, after }, site) =>
  site.add(
    "breaking",
    `map-type ${String(before ?? "granular")} → ${String(after ?? "granular")}; server-side apply merges it in another way`,
    { consequence: "behaviorChanges" },
  );

// A rule about the value before refuses changes, and another one values.
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
        site.add("breaking", `is immutable now (${rule}); writes that change it are refused`, {
          consequence: "newValuesRefused",
        });
      else if (/\boldSelf\b/.test(rule))
        site.add("breaking", `validation rule for changes added: ${key}; writes that break it are refused`, {
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

/** The keywords that crdify checks, and the names of the checks where they differ. */
const CRDIFY_CHECKS: ReadonlyMap<string, string> = new Map([
  ...["allOf", "anyOf", "default", "enum", "format", "maximum", "maxItems", "maxLength", "maxProperties"].map(same),
  ...["minimum", "minItems", "minLength", "minProperties", "not", "nullable", "oneOf", "pattern", "type"].map(same),
  ["x-kubernetes-validations", "xvalidations"],
]);

function same(keyword: string): [string, string] {
  return [keyword, keyword];
}

/** The rules, by keyword, with the name of the check of crdify. */
export const KEYWORD_RULES: ReadonlyMap<string, { readonly check: string; readonly compare: KeywordRule }> = new Map(
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

/** Returns a change of a keyword in words. */
export function changeText(keyword: string, before: JsonValue | undefined, after: JsonValue | undefined): string {
  if (after === undefined) return `${keyword} removed: ${text(before)}`;
  if (before === undefined) return `${keyword} added: ${text(after)}`;
  return `${keyword} ${text(before)} → ${text(after)}`;
}

/** Returns a value in words. */
export function text(value: JsonValue | undefined): string {
  return value === undefined ? "none" : JSON.stringify(value);
}

function without(values: readonly string[], others: readonly string[]): string[] {
  return values.filter((value) => !others.includes(value));
}
