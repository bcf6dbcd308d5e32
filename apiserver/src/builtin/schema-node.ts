import { readFileSync } from "node:fs";
import { canonicalQuantity } from "@gen-operator/schema";
import { type JsonObject, type JsonValue, arrayAt, isObject, memberOf, objectAt, stringAt } from "../json.js";
import { packageFile } from "../package-file.js";
import { builtinSchemas, connectSchemas, resolveSchema } from "./schemas.js";

/** A member that a struct declares. */
export interface Property {
  readonly node: SchemaNode;
  /** Whether an explicit "", 0, false or [] is told from an absent one. */
  readonly keepsZero: boolean;
}

const named = new Map<string, SchemaNode>();

/** Gives the node of a named built-in schema. */
export function schemaNode(name: string): SchemaNode {
  let node = named.get(name);
  if (node === undefined)
    named.set(
      name,
      (node = new SchemaNode((connectSchemas[name] ?? memberOf(builtinSchemas(), name)) as JsonObject, name)),
    );
  return node;
}

function nodeOf(reference: JsonObject): SchemaNode {
  const { name, schema } = resolveSchema(reference);
  return name === undefined ? new SchemaNode(schema) : schemaNode(name);
}

// A schema in a definition, where there may be a list or a boolean as well.
const SCHEMA = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";
const SCHEMA_CHOICE = /\.JSONSchemaPropsOr(Array|Bool|StringArray)$/;

const RAW = /\.(RawExtension|FieldsV1)$/;

/** What a schema says of a value. Every value of every write is held against one, so what follows from the schema is read once. */
export class SchemaNode {
  /** For example `io.k8s.api.core.v1.Container`; undefined for a schema that stands in another. */
  readonly name: string | undefined;
  readonly schema: JsonObject;
  readonly type: string | undefined;
  readonly isBytes: boolean;
  readonly isIntOrString: boolean;
  /** Whether whatever is there is kept as it is. */
  readonly isRaw: boolean;
  /** How values are written that are text, or a number, of a form of their own. */
  readonly text: TextType | undefined;
  readonly facts: TypeFacts;
  readonly #values: JsonObject | undefined;
  readonly #items: JsonObject | undefined;
  readonly #isChoice: boolean;
  #valueNode: SchemaNode | undefined;
  #itemNode: SchemaNode | undefined;
  #properties: ReadonlyMap<string, Property> | undefined;
  #defaults: (readonly [key: string, value: JsonValue])[] | undefined;
  #goTarget: string | undefined;

  constructor(schema: JsonObject, name?: string) {
    this.name = name;
    this.schema = schema;
    this.type = stringAt(schema, "type");
    this.isBytes = schema["format"] === "byte";
    this.isIntOrString = isIntOrString(name);
    this.isRaw = RAW.test(name ?? "");
    this.text = textTypeOf(name);
    this.facts = typeFactsOf(name);
    this.#values = objectAt(schema, "additionalProperties");
    this.#items = objectAt(schema, "items");
    this.#isChoice = SCHEMA_CHOICE.test(name ?? "");
  }

  /** Of the values of a map; undefined if it is none. */
  get values(): SchemaNode | undefined {
    return (this.#valueNode ??= this.#values && nodeOf(this.#values));
  }

  /** Of the items of a list; undefined if it is none. */
  get items(): SchemaNode | undefined {
    return (this.#itemNode ??= this.#items && nodeOf(this.#items));
  }

  /** Of an object where a value may be a schema of a definition, or something else; undefined anywhere else. */
  get choice(): SchemaNode | undefined {
    return this.#isChoice ? schemaNode(SCHEMA) : undefined;
  }

  /** What a struct declares; empty for what declares nothing. */
  get properties(): ReadonlyMap<string, Property> {
    return (this.#properties ??= new Map(
      propertiesOf(this.schema).map(([key, reference]) => [
        key,
        { node: nodeOf(reference), keepsZero: this.facts.keepsZero?.includes(key) === true },
      ]),
    ));
  }

  /** The defaults of a struct's members, in the order in which they are set; not to be changed. */
  get defaults(): readonly (readonly [key: string, value: JsonValue])[] {
    return (this.#defaults ??= defaultsOf(this));
  }

  /** Gives the node of a member of a struct or map. */
  child(key: string): SchemaNode | undefined {
    return this.properties.get(key)?.node ?? this.values;
  }

  /** The Go type that the schema was generated from, as far as it tells. */
  get goTarget(): string {
    return (this.#goTarget ??= goTargetOf(this));
  }
}

function propertiesOf(schema: JsonObject): [key: string, reference: JsonObject][] {
  return Object.entries(objectAt(schema, "properties") ?? {}).filter((entry): entry is [string, JsonObject] =>
    isObject(entry[1]),
  );
}

function defaultsOf({ schema, facts }: SchemaNode): [key: string, value: JsonValue][] {
  const required = arrayAt(schema, "required") ?? [];
  const isShown = (key: string): boolean => required.includes(key) || facts.dropsEmpty?.includes(key) !== true;
  const standard = propertiesOf(schema).flatMap(([key, reference]): [string, JsonValue][] => {
    const value = memberOf(reference, "default");
    return value !== undefined && isShown(key) ? [[key, value]] : [];
  });
  return [...Object.entries(facts.defaults ?? {}), ...standard];
}

function goTargetOf({ name, schema, type, values, items, isBytes }: SchemaNode): string {
  if (name !== undefined) return `${name.split(".").at(-2)}.${shortName(name)}`;
  if (values !== undefined) return isQuantity(values.name) ? "v1.ResourceList" : `map[string]${values.goTarget}`;
  switch (type) {
    case "array":
      return `[]${items?.goTarget ?? OPEN}`;
    case "boolean":
      return "bool";
    case "integer":
      return stringAt(schema, "format") ?? "int64";
    case "number":
      return "float64";
    case "string":
      return isBytes ? "[]uint8" : "string";
    default:
      return OPEN;
  }
}

const OPEN = "map[string]interface {}";

/** Gives the last part of the name of a schema, which is the name of its Go type. */
export function shortName(schemaName: string): string {
  return schemaName.slice(schemaName.lastIndexOf(".") + 1);
}

const zeros = new Map<string, JsonObject>();

/**
 * Returns what an object of a built-in kind shows when nothing in it is set, such as `spec: {…}` and `status: {}`.
 *
 * A create is recorded as a change of this object, so what it shows has no owner.
 */
export function zeroObjectOf(schemaName: string): JsonObject {
  let zero = zeros.get(schemaName);
  if (zero === undefined) zeros.set(schemaName, (zero = zeroOf(schemaName, builtinSchemas()[schemaName] ?? {})));
  return zero;
}

function zeroOf(name: string | undefined, schema: JsonObject): JsonObject {
  const zero: JsonObject = {};
  const { dropsEmpty = [], nullIfUnset = [] } = typeFactsOf(name);
  const required = new Set(Array.isArray(schema["required"]) ? schema["required"] : []);
  for (const [key, node] of Object.entries(objectAt(schema, "properties") ?? {})) {
    if (!isObject(node) || dropsEmpty.includes(key)) continue;
    const value = zeroMember(node);
    if (value !== undefined) zero[key] = value;
    else if (nullIfUnset.includes(key) || (required.has(key) && isNullable(node))) zero[key] = null;
  }
  return zero;
}

// Defaults such as "TCP" are set by defaulting; those that are empty are what Go shows for a member that is no pointer.
function zeroMember(node: JsonObject): JsonValue | undefined {
  const value = node["default"];
  if (value === "" || value === 0 || value === false) return value;
  if (!isObject(value) || Object.keys(value).length > 0) return undefined;
  const { name, schema } = resolveSchema(node);
  return zeroOf(name, schema);
}

function isNullable(node: JsonObject): boolean {
  const { type } = resolveSchema(node).schema;
  return type === "array" || type === "object";
}

/** What a built-in schema does not say about its type; recorded from a kube-apiserver 1.36. */
interface TypeFacts {
  /** Members that keep an explicit "", 0, false or []; of all others a zero is as good as absent. */
  keepsZero?: string[];
  /** Members that are shown as null when they are absent or an empty list. */
  nullIfUnset?: string[];
  /** Members whose empty default in the schema is not shown. */
  dropsEmpty?: string[];
  /** Defaults besides those of the schema. */
  defaults?: JsonObject;
}

const FACTS_FILE = packageFile("data/kubernetes-1.36-defaults.json");
const NONE: TypeFacts = {};

let memoisedFacts: Record<string, TypeFacts> | undefined;

/** Gives the facts of a named built-in schema. */
export function typeFactsOf(schemaName: string | undefined): TypeFacts {
  memoisedFacts ??= JSON.parse(readFileSync(FACTS_FILE, "utf8")) as Record<string, TypeFacts>;
  return (schemaName === undefined ? undefined : memoisedFacts[schemaName]) ?? NONE;
}

const QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const TIME = "io.k8s.apimachinery.pkg.apis.meta.v1.Time";
const MICRO_TIME = "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime";
const INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";

const TIME_TEXT = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(\.\d+)?(Z|[+-]\d\d:\d\d)$/;
const TIME_LAYOUT = "2006-01-02T15:04:05Z07:00";
const MICRO_TIME_LAYOUT = "2006-01-02T15:04:05.000000Z07:00";

const MAX_REMEMBERED = 1024;
const MAX_REMEMBERED_LENGTH = 64;

/** A type that is written as text, or as a number, in a form of its own. */
export interface TextType {
  /** Gives the canonical form, or what Kubernetes says about a text that has none. */
  canonical: (text: string) => { text: string } | { problem: string };
  takesNumbers: boolean;
}

const TEXT_TYPES = new Map<string, TextType>([
  [QUANTITY, { canonical: remembered(canonicalQuantity), takesNumbers: true }],
  [TIME, { canonical: remembered(canonicalOfTime), takesNumbers: false }],
  [MICRO_TIME, { canonical: remembered(canonicalOfMicroTime), takesNumbers: false }],
]);

/** Gives how values of a named schema are written; undefined for ordinary objects and scalars. */
export function textTypeOf(schemaName: string | undefined): TextType | undefined {
  return schemaName === undefined ? undefined : TEXT_TYPES.get(schemaName);
}

// Objects keep their texts from write to write, so the same come back again and again.
function remembered(canonicalOf: TextType["canonical"]): TextType["canonical"] {
  const known = new Map<string, ReturnType<TextType["canonical"]>>();
  return (text) => {
    let canonical = known.get(text);
    if (canonical !== undefined) return canonical;
    canonical = canonicalOf(text);
    if (known.size >= MAX_REMEMBERED) known.clear();
    if (text.length <= MAX_REMEMBERED_LENGTH) known.set(text, canonical);
    return canonical;
  };
}

/** True for the schema of ports and percentages, which are integers or text. */
function isIntOrString(schemaName: string | undefined): boolean {
  return schemaName === INT_OR_STRING;
}

/** True for the schema of quantities. */
export function isQuantity(schemaName: string | undefined): boolean {
  return schemaName === QUANTITY;
}

function canonicalOfTime(text: string) {
  const time = parseTime(text);
  if (time === undefined) return { problem: timeProblem(text, TIME_LAYOUT) };
  return { text: `${time.seconds}Z` };
}

function canonicalOfMicroTime(text: string) {
  const time = parseTime(text);
  if (time === undefined) return { problem: timeProblem(text, MICRO_TIME_LAYOUT) };
  if (time.fraction.length !== 7) {
    const rest = text.slice(19);
    return { problem: `parsing time "${text}" as "${MICRO_TIME_LAYOUT}": cannot parse "${rest}" as ".000000"` };
  }
  return { text: `${time.seconds}${time.fraction}Z` };
}

function parseTime(text: string): { seconds: string; fraction: string } | undefined {
  const match = TIME_TEXT.exec(text);
  const milliseconds = Date.parse(text.replace(/\.\d+/, ""));
  if (match === null || Number.isNaN(milliseconds)) return undefined;
  return { seconds: new Date(milliseconds).toISOString().slice(0, 19), fraction: match[7] ?? "" };
}

function timeProblem(text: string, layout: string): string {
  return `parsing time "${text}" as "${layout}": cannot parse "${text}" as "2006"`;
}
