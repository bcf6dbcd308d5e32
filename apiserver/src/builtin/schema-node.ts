import { readFileSync } from "node:fs";
import { canonicalQuantity } from "@gen-operator/schema";
import { type JsonObject, type JsonValue, arrayAt, isObject, memberOf, objectAt, stringAt } from "../json.js";
import { packageFile } from "../package-file.js";
import { builtinSchemas, connectSchemas, resolveSchema } from "./schemas.js";

/** A field of a struct. */
export interface Property {
  readonly node: SchemaNode;
  /** Whether an explicit "", 0, false, or [] is kept, unlike a field with omitempty. */
  readonly keepsZero: boolean;
}

const named = new Map<string, SchemaNode>();

/** Returns the node of a named built-in schema. */
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

// JSONSchemaProps of a CRD, in fields that also accept a list or a boolean.
const SCHEMA = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";
const SCHEMA_CHOICE = /\.JSONSchemaPropsOr(Array|Bool|StringArray)$/;

const RAW = /\.(RawExtension|FieldsV1)$/;

/** A schema, with the properties derived from it. They are computed once, because every value of every write is checked against a node. */
export class SchemaNode {
  /** For example `io.k8s.api.core.v1.Container`; undefined for an inline schema. */
  readonly name: string | undefined;
  readonly schema: JsonObject;
  readonly type: string | undefined;
  readonly isBytes: boolean;
  readonly isIntOrString: boolean;
  /** Whether any JSON value is kept unchanged. */
  readonly isRaw: boolean;
  /** The serialization of quantities and times; undefined for other types. */
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

  /** The schema of the values of a map; undefined if the type is no map. */
  get values(): SchemaNode | undefined {
    return (this.#valueNode ??= this.#values && nodeOf(this.#values));
  }

  /** The schema of the items of a list; undefined if the type is no list. */
  get items(): SchemaNode | undefined {
    return (this.#itemNode ??= this.#items && nodeOf(this.#items));
  }

  /** The object schema of JSONSchemaPropsOrBool and similar types; undefined for all others. */
  get choice(): SchemaNode | undefined {
    return this.#isChoice ? schemaNode(SCHEMA) : undefined;
  }

  /** The fields of a struct; empty for other types. */
  get properties(): ReadonlyMap<string, Property> {
    return (this.#properties ??= new Map(
      propertiesOf(this.schema).map(([key, reference]) => [
        key,
        { node: nodeOf(reference), keepsZero: this.facts.keepsZero?.includes(key) === true },
      ]),
    ));
  }

  /** The defaults of the fields of a struct, in the order in which they are set. Read-only. */
  get defaults(): readonly (readonly [key: string, value: JsonValue])[] {
    return (this.#defaults ??= defaultsOf(this));
  }

  /** Returns the node of a struct field or map value. */
  child(key: string): SchemaNode | undefined {
    return this.properties.get(key)?.node ?? this.values;
  }

  /** The Go type of the schema, as far as it can be derived. */
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

/** Returns the last part of a schema name, which is the name of the Go type. */
export function shortName(schemaName: string): string {
  return schemaName.slice(schemaName.lastIndexOf(".") + 1);
}

const zeros = new Map<string, JsonObject>();

/**
 * Returns the serialized zero value of a built-in kind, with fields such as `spec: {…}` and `status: {}`.
 *
 * A create is recorded as a change of this object, so its fields have no owner.
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

// Empty defaults are the zero values of Go fields that are not pointers. All others, such as "TCP", are set by defaulting.
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

/** Facts about a type that its built-in schema does not contain; recorded from kube-apiserver 1.36. */
interface TypeFacts {
  /** Fields that keep an explicit "", 0, false, or []; in all others a zero value counts as absent. */
  keepsZero?: string[];
  /** Fields that are served as null if they are absent or an empty list. */
  nullIfUnset?: string[];
  /** Fields whose empty default in the schema is not serialized. */
  dropsEmpty?: string[];
  /** Defaults in addition to those of the schema. */
  defaults?: JsonObject;
}

const FACTS_FILE = packageFile("data/kubernetes-1.36-defaults.json");
const NONE: TypeFacts = {};

let memoisedFacts: Record<string, TypeFacts> | undefined;

/** Returns the facts about a named built-in schema. */
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

/** A type with its own serialization as a string or number, such as a quantity or a time. */
export interface TextType {
  /** Returns the canonical form, or the error of Kubernetes for an invalid string. */
  canonical: (text: string) => { text: string } | { problem: string };
  takesNumbers: boolean;
}

const TEXT_TYPES = new Map<string, TextType>([
  [QUANTITY, { canonical: remembered(canonicalQuantity), takesNumbers: true }],
  [TIME, { canonical: remembered(canonicalOfTime), takesNumbers: false }],
  [MICRO_TIME, { canonical: remembered(canonicalOfMicroTime), takesNumbers: false }],
]);

/** Returns the serialization of a named schema; undefined for ordinary objects and scalars. */
export function textTypeOf(schemaName: string | undefined): TextType | undefined {
  return schemaName === undefined ? undefined : TEXT_TYPES.get(schemaName);
}

// The same strings recur from write to write, so their canonical forms are cached.
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

function isIntOrString(schemaName: string | undefined): boolean {
  return schemaName === INT_OR_STRING;
}

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
