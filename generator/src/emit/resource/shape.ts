import type { JsonValue } from "@gen-operator/runtime/codegen";
import { int64Json } from "@gen-operator/schema";
import type { RawSchema, ResourceModel } from "../../model/project-model.js";
import {
  dropsFields,
  hasFields,
  isIntOrString,
  isObjectMetaRef,
  isRecord,
  isStatusCondition,
  itemsOf,
  ownSchema,
  realDefaultOf,
  resolveRef,
  schemasOf,
  shortNameOf,
} from "../../model/schema.js";
import { NameAllocator, classNameOf, pascalCase } from "../names.js";
import { escapeDirections } from "../print.js";
import { runtimeTypes } from "../runtime-symbols.js";

/** Types of the runtime that a field may have. */
type RuntimeTypeName = "IntOrString" | "ObjectMeta" | "StatusCondition";

/** The type of a field or an item, independent of how the schema expresses it. */
export type TypeModel = (
  | { readonly kind: "scalar"; readonly type: "string" | "integer" | "number" | "boolean" }
  | { readonly kind: "enum"; readonly values: readonly (string | number | boolean)[] }
  | { readonly kind: "array"; readonly items: TypeModel }
  | { readonly kind: "map"; readonly values: TypeModel }
  /** An object with declared fields: an entry of `shapes`, or a shape of another module. */
  | { readonly kind: "shape"; readonly name: string; readonly from?: string }
  | { readonly kind: "runtime"; readonly name: RuntimeTypeName; readonly isPartial?: boolean }
  /** Any JSON value. */
  | { readonly kind: "any" }
  /** No value, as for the fields of an object that the API server prunes completely. */
  | { readonly kind: "never" }
) & { readonly isNullable?: boolean };

export interface FieldModel {
  readonly name: string;
  readonly type: TypeModel;
  /** True if the field is always present for readers: it is required, or the API server sets its default in a custom resource. */
  readonly isRequired: boolean;
  /** The default that the API server sets. Absent if there is none. */
  readonly default?: JsonValue;
  /** Lines of the doc comment; may be empty. */
  readonly doc: readonly string[];
}

/** The shape that an input shape extends, and the differences. */
export interface BaseModel {
  /** Name of the shape for readers. */
  readonly name: string;
  /** Fields that are optional or have another type in the input shape. */
  readonly redeclared: readonly string[];
}

/** An object with declared fields. */
export interface ShapeModel {
  readonly name: string;
  /** All fields, including those of `base`. */
  readonly fields: readonly FieldModel[];
  readonly base?: BaseModel;
  /** True if undeclared fields are preserved. */
  readonly isOpen: boolean;
  readonly doc: readonly string[];
}

/** The normalized schema of a kind: flat shapes that reference each other by name. */
export interface NormalisedSchema {
  readonly className: string;
  /** Fields other than apiVersion, kind, and metadata. */
  readonly root: ShapeModel;
  /** Shapes in order of first appearance. */
  readonly shapes: readonly ShapeModel[];
  readonly names: ReadonlySet<string>;
}

/**
 * Converts the structural schema of a kind to flat, named shapes.
 *
 * Contains all rules about how a Kubernetes schema maps to types. `oneOf`, `anyOf`, `allOf`, and `not` are ignored: in a structural schema, they only
 * restrict values. The names of shapes follow the path of their field, so they do not change when unrelated fields are added.
 */
export function normaliseSchema(resource: ResourceModel): NormalisedSchema {
  return new Normaliser(resource, IDENTITY).normalise();
}

/** Converts the schema of an external object to shapes. All of its fields belong to the root. */
export function normaliseObject(schema: RawSchema, name: string): NormalisedSchema {
  const resource = { kind: name, schema, definitions: new Map(), isCustom: true, isFilledIn: false };
  return new Normaliser(resource, new Set()).normalise();
}

/** Converts the schema of a built-in kind to its root shape, which references the shapes of definitions by their full names. */
export function normaliseBuiltin(resource: NormalisedKind): ShapeModel {
  return withoutInline(new Normaliser(resource, IDENTITY).normalise());
}

/** Converts a definition to a shape, which references others by their full names. */
export function normaliseDefinition(name: string, definitions: ReadonlyMap<string, RawSchema>): ShapeModel {
  const schema = definitions.get(name) ?? {};
  const kind: NormalisedKind = { kind: shortNameOf(name), schema, definitions, isCustom: false };
  return { ...withoutInline(new Normaliser(kind, new Set()).normalise()), name };
}

function withoutInline({ root, shapes: [inline] }: NormalisedSchema): ShapeModel {
  if (inline !== undefined) throw new Error(`${inline.name} has fields of its own, and is no definition`);
  return root;
}

/** The properties of a kind that determine its shapes. */
type NormalisedKind = Pick<ResourceModel, "kind" | "schema" | "definitions" | "isCustom"> & {
  /** True if an API server applies the defaults of the schema. Default: true */
  readonly isFilledIn?: boolean;
};

/** The location of a schema: the preferred name of its type, and the path that makes the name unique. */
interface Place {
  readonly name: string;
  readonly path: readonly string[];
}

/** Computes a location lazily, because only shapes need theirs. */
type FindPlace = () => Place;

class Normaliser {
  readonly #resource: NormalisedKind;
  /** Fields of the root that the schema does not define. */
  readonly #given: ReadonlySet<string>;
  readonly #names: NameAllocator;
  readonly #taken: Set<string>;
  readonly #shapes: ShapeModel[] = [];

  constructor(resource: NormalisedKind, given: ReadonlySet<string>) {
    this.#resource = resource;
    this.#given = given;
    const className = classNameOf(resource.kind);
    this.#taken = new Set([...runtimeTypes, className, `${className}Input`]);
    this.#names = new NameAllocator(this.#taken);
  }

  normalise(): NormalisedSchema {
    const className = classNameOf(this.#resource.kind);
    const { schema } = resolveRef(this.#resource.schema, this.#resource.definitions);
    const place = { name: className, path: [] };
    const fields = this.#fieldsOf(schema, place).filter(({ name }) => !this.#given.has(name) && name !== "constructor");
    const root = { name: className, fields, isOpen: isOpen(schema), doc: descriptionLinesOf(schema["description"]) };
    const names = new Set([...this.#taken, ...this.#shapes.map(({ name }) => name)]);
    return { className, root, shapes: this.#shapes, names };
  }

  #typeOf(raw: RawSchema, place: FindPlace): TypeModel {
    const { schema, definition } = resolveRef(raw, this.#resource.definitions);
    const type = this.#plainTypeOf(schema, place, definition);
    return isNullable(schema) && type.kind !== "any" ? { ...type, isNullable: true } : type;
  }

  #plainTypeOf(schema: RawSchema, place: FindPlace, definition: string | undefined): TypeModel {
    if (isIntOrString(schema)) return { kind: "runtime", name: "IntOrString" };
    if (definition !== undefined && isObjectMetaRef(definition)) return OPTIONAL_METADATA;
    const enumType = enumTypeOf(schema);
    if (enumType !== undefined) return enumType;
    switch (schema["type"]) {
      case "string":
      case "integer":
      case "number":
      case "boolean":
        return { kind: "scalar", type: schema["type"] };
      case "array":
        return { kind: "array", items: this.#itemsTypeOf(schema, place) };
      case "object":
        return this.#objectTypeOf(schema, place, definition);
      default:
        return isRecord(schema["properties"]) ? this.#objectTypeOf(schema, place, definition) : { kind: "any" };
    }
  }

  #itemsTypeOf(schema: RawSchema, place: FindPlace): TypeModel {
    const items = itemsOf(schema);
    if (items === undefined) return { kind: "any" };
    return this.#typeOf(items, () => inner(place(), "Item", "[]"));
  }

  #objectTypeOf(schema: RawSchema, place: FindPlace, definition: string | undefined): TypeModel {
    if (isStatusCondition(schema)) return { kind: "runtime", name: "StatusCondition" };
    const isEmbedded = schema["x-kubernetes-embedded-resource"] === true;
    if (isEmbedded || hasFields(schema)) return this.#shapeOf(schema, place, definition);
    const values = ownSchema(schema, "additionalProperties");
    if (values === undefined) return { kind: "map", values: { kind: this.#isAlwaysEmpty(schema) ? "never" : "any" } };
    return { kind: "map", values: this.#typeOf(values, () => inner(place(), "Value", "{}")) };
  }

  /** Returns whether the API server prunes or rejects every field of an object without declared fields. Built-in kinds have free-form objects. */
  #isAlwaysEmpty(schema: RawSchema): boolean {
    const { isCustom, isFilledIn = true } = this.#resource;
    return isCustom && isFilledIn && (dropsFields(schema) || schema["additionalProperties"] === false);
  }

  #shapeOf(schema: RawSchema, find: FindPlace, definition: string | undefined): TypeModel {
    if (definition !== undefined) return { kind: "shape", name: definition };
    const place = find();
    const { path } = place;
    const name = this.#names.allocate(place.name, path);
    // Reserve the index before visiting the fields, so that a shape precedes those that it contains.
    const index = this.#shapes.length;
    const doc = path.at(-1) === "[]" || path.at(-1) === "{}" ? descriptionLinesOf(schema["description"]) : [];
    this.#shapes.push({ name, fields: [], isOpen: isOpen(schema), doc });
    const fields = this.#fieldsOf(schema, { name, path });
    this.#shapes[index] = { name, fields, isOpen: isOpen(schema), doc };
    return { kind: "shape", name };
  }

  #fieldsOf(schema: RawSchema, place: Place): FieldModel[] {
    const required = new Set(Array.isArray(schema["required"]) ? (schema["required"] as string[]) : []);
    const isEmbedded = schema["x-kubernetes-embedded-resource"] === true;
    const properties = schemasOf(schema, "properties");
    const fields = [...properties].map(([name, raw]): FieldModel => {
      const isImplied = isEmbedded && IDENTITY.has(name);
      const type = isImplied
        ? IMPLIED[name as keyof typeof IMPLIED]
        : this.#typeOf(raw, () => inner(place, pascalCase(name) || "Field", `.${name}`));
      const value = this.#defaultOf(raw);
      const isRequired = required.has(name) || (isEmbedded && DEMANDED.has(name));
      return {
        name,
        type: (!isRequired || value !== undefined) && OBJECT_MEMBERS.has(name) ? { kind: "any" } : type,
        // The API server applies the default, so the field is present wherever its parent is. The schemas of built-in kinds only contain a few of
        // their defaults, which would not justify separate input types.
        isRequired: isRequired || (this.#resource.isCustom && value !== undefined),
        ...(value === undefined ? {} : { default: value }),
        doc: docLinesOf(raw, realDefaultOf(raw, this.#resource.isCustom)),
      };
    });
    const implied = isEmbedded ? [...IDENTITY].filter((name) => !properties.has(name)) : [];
    return [...implied.map(impliedField), ...fields];
  }

  // A default of null is equivalent to none.
  #defaultOf(raw: RawSchema): JsonValue | undefined {
    const { isCustom, isFilledIn = true } = this.#resource;
    return isFilledIn ? ((realDefaultOf(raw, isCustom) as JsonValue | undefined) ?? undefined) : undefined;
  }
}

const IDENTITY: ReadonlySet<string> = new Set(["apiVersion", "kind", "metadata"]);
const OPTIONAL_METADATA: TypeModel = { kind: "runtime", name: "ObjectMeta", isPartial: true };
const TEXT: TypeModel = { kind: "scalar", type: "string" };
const IMPLIED = { apiVersion: TEXT, kind: TEXT, metadata: OPTIONAL_METADATA } as const;

// The API server requires apiVersion and kind of an embedded resource, but no metadata.
const DEMANDED: ReadonlySet<string> = new Set(["apiVersion", "kind"]);

// Every object literal inherits these members. An optional field with such a name would reject every literal because of its type.
const OBJECT_MEMBERS: ReadonlySet<string> = new Set(Object.getOwnPropertyNames(Object.prototype));

function impliedField(name: string): FieldModel {
  return { name, type: IMPLIED[name as keyof typeof IMPLIED], isRequired: DEMANDED.has(name), doc: [] };
}

function inner({ name, path }: Place, word: string, step: string): Place {
  return { name: name + word, path: [...path, step] };
}

function isOpen(schema: RawSchema): boolean {
  return (
    schema["x-kubernetes-preserve-unknown-fields"] === true ||
    ((schema["additionalProperties"] === true || isRecord(schema["additionalProperties"])) && hasFields(schema))
  );
}

// If there is an enum, the API server rejects null even if the enum contains it.
function isNullable(schema: RawSchema): boolean {
  const allowed = schema["enum"];
  return schema["nullable"] === true && !(Array.isArray(allowed) && allowed.length > 0);
}

/** Returns the union type of an enum; undefined if there is none, or if it contains values other than scalars and null. */
function enumTypeOf(schema: RawSchema): TypeModel | undefined {
  const values = schema["enum"];
  if (!Array.isArray(values)) return undefined;
  const scalars = values.filter(isScalar);
  // A value that does not match the type of the schema is never valid.
  const possible = [...new Set(scalars)].filter((value) => hasTypeOf(schema, value));
  if (possible.length === 0 || scalars.length + values.filter((value) => value === null).length < values.length)
    return undefined;
  return { kind: "enum", values: possible };
}

function isScalar(value: unknown): value is string | number | boolean {
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean";
}

function hasTypeOf(schema: RawSchema, value: string | number | boolean): boolean {
  const type = schema["type"];
  if (type === undefined) return true;
  return type === "integer" ? Number.isInteger(value) : type === typeof value;
}

const WIDTH = 110;

/**
 * Returns the lines of the doc comment of a field: the description, followed by tags for its default and constraints.
 *
 * Descriptions are untrusted, so they are escaped: they can neither end the comment nor contain tags.
 */
export function docLinesOf(schema: RawSchema, value: unknown): readonly string[] {
  const description = descriptionLinesOf(schema["description"]);
  const tags = tagsOf(schema, { value, description });
  if (tags.length === 0) return description;
  return description.length > 0 ? [...description, "", ...tags] : tags;
}

// Kinds of a project, and versions of a kind, repeat the same descriptions.
const known = new Map<string, readonly string[]>();

/** Returns the lines of a description, escaped for a comment. */
export function descriptionLinesOf(description: unknown): readonly string[] {
  if (typeof description !== "string") return [];
  const before = known.get(description);
  if (before !== undefined) return before;
  const lines = linesOf(description);
  known.set(description, lines);
  return lines;
}

function linesOf(description: string): string[] {
  const text = HARMLESS.test(description) && !description.includes("*/") ? description : withoutHarm(description);
  const lines = text.split("\n").map((line) => line.trimEnd());
  const shown =
    lines.length === 1
      ? lines.map((line) => line.trimStart())
      : lines
          .join("\n")
          .replace(/\n{3,}/g, "\n\n")
          .trim()
          .split("\n");
  return wrap(shown).filter((line, index, all) => line !== "" || (index > 0 && all.length > 1));
}

// Fast path: nearly all descriptions are printable ASCII without "@".
const HARMLESS = /^[\n -?A-~]*$/;

function withoutHarm(description: string): string {
  const text = description
    .replace(/\r\n?|[\u2028\u2029\u0085]/g, "\n")
    // Replace control characters, which are not printable.
    .replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, " ")
    .replace(/\t/g, "  ");
  return escapeComment(text);
}

/** Escapes text for a comment: it neither ends the comment nor starts a tag. `name@host` is unchanged. */
function escapeComment(text: string): string {
  return escapeDirections(text.replaceAll("*/", "*\\/").replace(/(?<![\w\\])@/g, "\\@"));
}

/** Returns a JSDoc comment; empty if there are no lines. */
export function renderDoc(lines: readonly string[]): string {
  if (lines.length === 0) return "";
  if (lines.length === 1) return `/** ${lines[0]} */`;
  return ["/**", ...lines.map((line) => (line === "" ? " *" : ` * ${line}`)), " */"].join("\n");
}

// Wraps prose, but not code fences and indented lines.
function wrap(lines: readonly string[]): string[] {
  let isFenced = false;
  return lines.flatMap((line) => {
    if (line.trimStart().startsWith("```")) isFenced = !isFenced;
    return isFenced || line.length <= WIDTH || /^\s/.test(line) ? [line] : wrapLine(line);
  });
}

function wrapLine(line: string): string[] {
  const lines: string[] = [];
  let current = "";
  for (const word of line.split(" ")) {
    if (current !== "" && current.length + word.length + 1 > WIDTH) {
      // The text may contain consecutive spaces.
      lines.push(current.trimEnd());
      current = word;
    } else current = current === "" ? word : `${current} ${word}`;
  }
  return [...lines, current];
}

const SIMPLE_TAGS = [
  ["format", "format"],
  ["minimum", "minimum"],
  ["maximum", "maximum"],
  ["minLength", "minLength"],
  ["maxLength", "maxLength"],
  ["minItems", "minItems"],
  ["maxItems", "maxItems"],
  ["minProperties", "minProperties"],
  ["maxProperties", "maxProperties"],
  ["multipleOf", "multipleOf"],
  ["pattern", "pattern"],
] as const;

const TAGGED: ReadonlySet<string> = new Set([
  ...SIMPLE_TAGS.map(([keyword]) => keyword),
  "deprecated",
  "x-kubernetes-list-type",
  "x-kubernetes-validations",
]);

interface Documented {
  /** Default of the field. */
  readonly value: unknown;
  readonly description: readonly string[];
}

function tagsOf(schema: RawSchema, { value: byDefault, description }: Documented): string[] {
  const tags: string[] = [];
  const add = (tag: string, text = "") => tags.push(text === "" ? `@${tag}` : `@${tag} ${oneLine(text)}`.trimEnd());
  if (description.some((line) => /^Deprecated\b/i.test(line)) || schema["deprecated"] === true) add("deprecated");
  if (byDefault !== undefined) add("default", int64Json(byDefault));
  if (!Object.keys(schema).some((keyword) => TAGGED.has(keyword))) return tags;
  for (const [keyword, tag] of SIMPLE_TAGS) {
    const value = schema[keyword];
    if (typeof value !== "string" && typeof value !== "number") continue;
    const exclusive = schema[keyword === "minimum" ? "exclusiveMinimum" : "exclusiveMaximum"] === true;
    add(tag, /^m(in|ax)imum$/.test(keyword) && exclusive ? `${value} (exclusive)` : String(value));
  }
  const listType = schema["x-kubernetes-list-type"];
  const keys = schema["x-kubernetes-list-map-keys"];
  if (typeof listType === "string")
    add("listType", listType === "map" && Array.isArray(keys) ? `map by ${keys.join(", ")}` : listType);
  const rules = schema["x-kubernetes-validations"];
  for (const rule of Array.isArray(rules) ? (rules as RawSchema[]) : [])
    add("validation", String(rule["message"] ?? rule["rule"]));
  return tags;
}

function oneLine(text: string): string {
  return escapeComment(text.replace(/[\s\u0000-\u001f\u007f\u0085\u2028\u2029]+/g, " ").trim());
}
