// Breaking is what may refuse, drop or change the meaning of an object that the schema from before accepts, or what a reader of it takes
// for granted. The comparison walks every part of both normal forms, and reports each that differs: by a rule, or as unjudged.
import { deepEqual, type JsonValue } from "@gen-operator/schema";
import type { RawSchema } from "../model/project-model.js";
import type { AddChange, ChangeDetails } from "./change.js";
import {
  changeText,
  isWider,
  KEYWORD_RULES,
  READERS,
  READERS_TEXT,
  refusalOf,
  refusalText,
  type Site,
} from "./keyword-rules.js";
import {
  fieldJson,
  normalizeSchema,
  othersJson,
  schemaJson,
  type NormalField,
  type NormalSchema,
  type OtherFields,
} from "./normal-schema.js";

/** Compares two schemas of one version, part by part. */
export function compareSchemas(before: RawSchema, after: RawSchema, add: AddChange): void {
  compareNodes({ path: "", unit: "", isItem: false, add }, normalizeSchema(before), normalizeSchema(after));
}

/** Where a schema is. */
interface Node {
  readonly path: string;
  /** See `Site`. */
  readonly unit: string;
  readonly isItem: boolean;
  readonly add: AddChange;
}

/** Reports a part that differs: by `compare`, or as unjudged if that reports nothing. */
function judge(node: Node, message: string, compare: (add: AddChange) => void): void {
  let isJudged = false;
  compare((...change) => {
    isJudged = true;
    node.add(...change);
  });
  if (!isJudged)
    node.add("breaking", node.path, `${message}; no rule says what this does: judge it`, {
      consequence: "unjudged",
      check: "unhandled",
    });
}

/** Compares two schemas in normal form. */
function compareNodes(node: Node, before: NormalSchema, after: NormalSchema): void {
  const [typeBefore, typeAfter] = [before, after].map(({ keywords }) => keywords.get("type"));
  const isOtherType = typeBefore !== typeAfter;
  for (const keyword of new Set([...before.keywords.keys(), ...after.keywords.keys()])) {
    // Nothing else of a value of another type is comparable.
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
      "is an embedded resource now: every write of an object is refused if apiVersion, kind or metadata are missing or invalid in it",
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

/** Compares the fields of two schemas: each that one of them declares or requires. */
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
  /** What the field is in. */
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
    // What is missing is wrong with the object around it.
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
  if (unit === "") return "every write of an object without it is refused";
  const around = unit === path ? path : unit;
  return `new objects without it are refused; stored ones stay writable since Kubernetes 1.30 while ${around} stays the same`;
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
      return add("breaking", path, "removed; every write of an object with the field is refused", {
        ...FORBIDDEN,
        ...REMOVED,
      });
    case "checked": {
      let isOther = false;
      compareNodes({ ...field, add: (...change) => ((isOther = true), add(...change)) }, former, others.schema);
      if (!isOther)
        add("compatible", path, "removed; it is one of the other fields now, with the same schema", REMOVED);
      return;
    }
    default:
      return add("breaking", path, `removed; its values stay, without a type; ${READERS_TEXT}`, {
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
    if (!isOther) add("compatible", path, "added, with the schema that other fields had");
  } else if (others.kind === "dropped" || others.kind === "refused" || isOpen(schema)) {
    // That it is required has been said.
    if (!isRequired) add("compatible", path, "added");
  } else
    add(
      "breaking",
      path,
      `added to an object with unknown fields: values of another type are possible; ${refusalText(field)}`,
      { ...refusalOf(field), check: "unhandled" },
    );
}

/** Tells whether a schema takes and keeps every value. */
function isOpen({ keywords, fields, others }: NormalSchema): boolean {
  return keywords.size === 0 && fields.size === 0 && others.kind === "kept";
}

function compareItems(node: Node, before: NormalSchema, after: NormalSchema): void {
  const { path, unit } = node;
  const [items, now] = [before.items, after.items];
  if (items !== undefined && now !== undefined) {
    const isKeyed = [before, after].every(({ keywords }) => isMap(keywords.get("x-kubernetes-list-type")));
    const inner = `${path}[]`;
    // Items of a list without keys are not recognized: they are forgiven only if the whole list stays as it is.
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
    if (before.kind === "refused") say("compatible", "unknown fields are dropped now, and no longer refused");
    else if (before.kind === "checked")
      say("breaking", "is no longer a map (additionalProperties removed); the API server drops its values", DROPPED);
    else say("breaking", "unknown fields are dropped now", DROPPED);
  } else if (after.kind === "refused") {
    // The API server forgives nothing here (1.36).
    const message = "unknown fields are refused now (additionalProperties: false)";
    if (before.kind === "dropped")
      say("breaking", `${message} and no longer dropped`, { consequence: "newValuesRefused" });
    else say("breaking", `${message}; every write of an object with such a field is refused`, FORBIDDEN);
  } else if (after.kind === "checked") {
    if (before.kind === "refused") say("compatible", "is a map now");
    else if (before.kind === "dropped") say("compatible", "keeps unknown fields now if they fit additionalProperties");
    else say("breaking", `unknown fields must fit additionalProperties now; ${refusalText(node)}`, refusalOf(node));
  } else if (before.kind === "checked") say("breaking", `may have fields of any type now; ${READERS_TEXT}`, READERS);
  else if (!keeps(before)) say("compatible", "keeps unknown fields now");
}
