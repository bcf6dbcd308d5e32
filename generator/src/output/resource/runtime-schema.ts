import type { Schema, ValidationRule } from "@gen-operator/runtime/codegen";
import type { RawSchema, ResourceModel } from "../../model/project-model.js";
import { realDefaultOf, resolveRef, shortNameOf } from "../../model/definitions.js";
import { NameAllocator } from "../naming.js";
import {
  dropsFields,
  hasFields,
  isIntOrString,
  isRecord,
  itemsOf,
  ownSchema,
  schemasOf,
} from "../../model/schema/raw-schema.js";
import { withUnstatedFacts } from "./unstated-facts.js";

const COPIED = [
  "type",
  "format",
  "required",
  "enum",
  "nullable",
  "minimum",
  "maximum",
  "exclusiveMinimum",
  "exclusiveMaximum",
  "minLength",
  "maxLength",
  "minItems",
  "maxItems",
  "minProperties",
  "maxProperties",
  "multipleOf",
  "pattern",
  "x-kubernetes-preserve-unknown-fields",
  "x-kubernetes-embedded-resource",
  "x-kubernetes-list-type",
  "x-kubernetes-list-map-keys",
  "x-kubernetes-map-type",
] as const satisfies readonly (keyof Schema)[];

const VALIDATIONS = "x-kubernetes-validations";

const PLACES: ReadonlyMap<string, number> = new Map(COPIED.map((keyword, index) => [keyword, index]));

/** Returns the keywords that are copied from a schema, in the order of the list. */
function copiedOf(schema: RawSchema): string[] {
  return Object.keys(schema)
    .filter((keyword) => PLACES.has(keyword) && schema[keyword] !== undefined)
    .sort((left, right) => (PLACES.get(left) ?? 0) - (PLACES.get(right) ?? 0));
}

const JUNCTORS = ["allOf", "anyOf", "oneOf"] as const;
const NARROWING = [...JUNCTORS, "not"] as const;

/** Builds what the runtime has to know of the schema of a kind: its structure without prose. */
export function buildRuntimeSchema(resource: ResourceModel): Schema {
  const { root, definitions } = buildSchemaParts(resource);
  if (definitions.size === 0) return root;
  return {
    ...root,
    definitions: Object.fromEntries([...definitions.values()].map(({ name, schema }) => [name, schema])),
  };
}

/** The schema of a kind, and by their full names the definitions that it refers to with what it calls them. */
export interface SchemaParts {
  readonly root: Schema;
  readonly definitions: ReadonlyMap<string, { readonly name: string; readonly schema: Schema }>;
}

/** Builds the schema of a kind and its definitions. */
export function buildSchemaParts(resource: ResourceModel): SchemaParts {
  const builder = new SchemaBuilder(resource);
  const { schema } = resolveRef(resource.schema, resource.definitions);
  const root = builder.schemaOf({ ...schema, properties: withPlainMetadata(schema) });
  if (resource.isCustom) return { root, definitions: builder.definitions };
  const definitions = [...builder.definitions].map(([full, { name, schema: each }]) => {
    return [full, { name, schema: withUnstatedFacts(name, each) }] as const;
  });
  return { root, definitions: new Map(definitions) };
}

// The API server treats the metadata of every kind alike, so its schema says nothing but what names it may have.
function metadataOf(schema: RawSchema): RawSchema {
  const names = [...schemasOf(schema, "properties")].filter(([name]) => name === "name" || name === "generateName");
  return names.length === 0 || schema["$ref"] !== undefined
    ? METADATA
    : { ...METADATA, properties: Object.fromEntries(names) };
}

function withPlainMetadata(schema: RawSchema): RawSchema {
  const properties = schemasOf(schema, "properties");
  const entries = [...properties].map(
    ([name, child]) => [name, name === "metadata" ? metadataOf(child) : child] as const,
  );
  return Object.fromEntries(entries);
}

// A map type beside a reference overrides the map type of the referenced schema.
function mapTypeBeside(raw: RawSchema): Pick<Schema, "x-kubernetes-map-type"> {
  const mapType = raw["x-kubernetes-map-type"] as Schema["x-kubernetes-map-type"];
  return mapType === undefined ? {} : { "x-kubernetes-map-type": mapType };
}

const METADATA: RawSchema = { type: "object" };

// Fields of a template's metadata that no client sends; their types are large.
const UNSENT = new Set(["managedFields", "selfLink"]);

/** How deeply a literal nests before the rest becomes a definition; the compiler gives up comparing types at about twice as deep. */
const MAX_DEPTH = 24;

// What `parse` reads of a rule. The reason chooses an HTTP status, of which an object knows nothing.
const RULE_FIELDS = ["rule", "message", "messageExpression", "fieldPath", "optionalOldSelf"] as const;

function rulesOf(schema: RawSchema): Pick<Schema, typeof VALIDATIONS> {
  const rules = Object.hasOwn(schema, VALIDATIONS) ? schema[VALIDATIONS] : undefined;
  if (!Array.isArray(rules) || rules.length === 0) return {};
  const read = rules.filter(isRecord).map((rule) => {
    const fields = RULE_FIELDS.filter((field) => rule[field] !== undefined && rule[field] !== null);
    return Object.fromEntries(fields.map((field) => [field, rule[field]]));
  });
  return { [VALIDATIONS]: read as unknown as readonly ValidationRule[] };
}

/** Tells whether a schema has rules in CEL anywhere. */
export function hasRules({ definitions = {}, ...schema }: Schema): boolean {
  const { properties = {}, items, additionalProperties, allOf = [] } = schema;
  return (
    schema[VALIDATIONS] !== undefined ||
    [...Object.values(definitions), ...Object.values(properties), ...allOf].some(hasRules) ||
    (items !== undefined && hasRules(items)) ||
    (typeof additionalProperties === "object" && hasRules(additionalProperties))
  );
}

function isEmptyObject(schema: RawSchema): boolean {
  return schema !== METADATA && !hasFields(schema) && dropsFields(schema);
}

/** Leaves out the junctor by which older tools recognize an integer or a string. */
function withoutAlternatives(schema: RawSchema): RawSchema {
  const { anyOf, allOf, ...others } = schema;
  const [first, ...more]: unknown[] = Array.isArray(allOf) ? allOf : [];
  const isSpelling = isRecord(first) && Object.keys(first).length === 1 && hasAlternatives(first["anyOf"]);
  const rest = isSpelling ? more : allOf;
  return {
    ...others,
    ...(anyOf === undefined || hasAlternatives(anyOf) ? {} : { anyOf }),
    ...(rest === undefined || (Array.isArray(rest) && rest.length === 0) ? {} : { allOf: rest }),
  };
}

function hasAlternatives(value: unknown): boolean {
  return JSON.stringify(value) === '[{"type":"integer"},{"type":"string"}]';
}

class SchemaBuilder {
  readonly definitions = new Map<string, { readonly name: string; readonly schema: Schema }>();
  readonly #resource: ResourceModel;
  readonly #names = new NameAllocator([]);

  constructor(resource: ResourceModel) {
    this.#resource = resource;
  }

  schemaOf(raw: RawSchema, depth = 0): Schema {
    const { schema, definition } = resolveRef(raw, this.#resource.definitions);
    const isShape = definition !== undefined && hasFields(schema);
    const plain = isShape
      ? { $ref: this.#define(definition), ...mapTypeBeside(raw) }
      : depth < MAX_DEPTH
        ? this.#plainSchemaOf(schema, depth)
        : this.#definePart(schema);
    const value = realDefaultOf(raw, this.#resource.isCustom);
    return value === undefined ? plain : ({ ...plain, default: value } as Schema);
  }

  #define(definition: string): string {
    const known = this.definitions.get(definition);
    if (known !== undefined) return known.name;
    const name = this.#names.allocate(shortNameOf(definition), [definition]);
    // The place is taken first: a definition may refer to itself.
    this.definitions.set(definition, { name, schema: {} });
    const schema = this.#plainSchemaOf(this.#resource.definitions.get(definition) ?? {});
    this.definitions.set(definition, { name, schema });
    return name;
  }

  #definePart(part: RawSchema): Schema {
    const schema = this.#plainSchemaOf(part);
    if (schema.properties === undefined && schema.items === undefined && schema.additionalProperties === undefined)
      return schema;
    const name = this.#names.allocate(`Part${this.definitions.size + 1}`, [String(this.definitions.size)]);
    this.definitions.set(name, { name, schema });
    return { $ref: name };
  }

  // They say nothing of the structure, which the matcher reads; parse checks them.
  #junctorsOf(schema: RawSchema, depth: number): Pick<Schema, (typeof JUNCTORS)[number] | "not"> {
    if (!NARROWING.some((keyword) => schema[keyword] !== undefined)) return {};
    const entries = JUNCTORS.flatMap((junctor) => {
      const branches = (Array.isArray(schema[junctor]) ? (schema[junctor] as unknown[]) : []).filter(isRecord);
      return branches.length === 0 ? [] : [[junctor, branches.map((each) => this.schemaOf(each, depth + 1))] as const];
    });
    const not = isRecord(schema["not"]) ? schema["not"] : undefined;
    return { ...Object.fromEntries(entries), ...(not === undefined ? {} : { not: this.schemaOf(not, depth + 1) }) };
  }

  #plainSchemaOf(schema: RawSchema, depth = 0): Schema {
    if (schema["format"] === "quantity" && schema["type"] === undefined) return { format: "quantity" };
    const copied: Record<string, unknown> = {};
    if (isIntOrString(schema)) {
      copied["x-kubernetes-int-or-string"] = true;
      for (const keyword of COPIED)
        if (keyword !== "type" && keyword !== "format" && schema[keyword] !== undefined)
          copied[keyword] = schema[keyword];
      if (this.#resource.isCustom)
        Object.assign(copied, this.#junctorsOf(withoutAlternatives(schema), depth), rulesOf(schema));
      return copied as Schema;
    }
    for (const keyword of copiedOf(schema)) copied[keyword] = schema[keyword];
    const properties = [...schemasOf(schema, "properties")].filter(
      ([name]) => this.#resource.isCustom || !UNSENT.has(name),
    );
    if (properties.length > 0)
      copied["properties"] = Object.fromEntries(
        properties.map(([name, child]) => [name, this.schemaOf(child, depth + 1)]),
      );
    // Of an object without fields the API server drops all. Those of built-in kinds are types of their own, such as FieldsV1.
    else if (this.#resource.isCustom && isEmptyObject(schema)) copied["properties"] = {};
    const additional = ownSchema(schema, "additionalProperties");
    if (additional !== undefined) copied["additionalProperties"] = this.schemaOf(additional, depth + 1);
    else if (typeof schema["additionalProperties"] === "boolean")
      copied["additionalProperties"] = schema["additionalProperties"];
    const items = itemsOf(schema);
    if (items !== undefined) copied["items"] = this.schemaOf(items, depth + 1);
    if (this.#resource.isCustom) Object.assign(copied, this.#junctorsOf(schema, depth), rulesOf(schema));
    return copied as Schema;
  }
}
