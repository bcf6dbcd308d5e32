// The JSON Schema of a kind for editors: what the API server accepts, in the words of draft 7.
import { resolveRef, shortNameOf } from "../model/definitions.js";
import type { RawSchema, ResourceModel } from "../model/project-model.js";
import { isIntOrString, isRecord, ownSchema, schemasOf } from "../model/schema/raw-schema.js";

const COPIED = [
  ...["title", "description", "default", "enum", "format", "pattern", "multipleOf", "uniqueItems", "required"],
  ...["minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"],
] as const;

interface JsonSchema {
  [keyword: string]: unknown;
}

/** Builds the JSON Schema of a kind. A field that the API server would drop is an error. */
export function buildKindSchema(resource: ResourceModel): JsonSchema {
  const { group, version, kind } = resource;
  const definitions = new Map<string, JsonSchema>();
  const { schema: root } = resolveRef(resource.schema, resource.definitions);
  const built = schemaOf({ ...root, type: "object" }, { resource, definitions });
  const apiVersion = group === "" ? version : `${group}/${version}`;
  const properties = isRecord(built["properties"]) ? built["properties"] : {};
  const required = Array.isArray(built["required"]) ? (built["required"] as string[]) : [];
  return {
    $schema: "http://json-schema.org/draft-07/schema#",
    ...built,
    required: [...new Set(["apiVersion", "kind", "metadata", ...required])],
    properties: {
      ...properties,
      apiVersion: { const: apiVersion },
      kind: { const: kind },
      // Custom kinds leave it to the API server, which treats all metadata alike.
      metadata: resource.isCustom ? { type: "object" } : (properties["metadata"] ?? { type: "object" }),
    },
    ...(definitions.size === 0 ? {} : { definitions: Object.fromEntries(definitions) }),
  };
}

interface Conversion {
  readonly resource: ResourceModel;
  readonly definitions: Map<string, JsonSchema>;
}

function schemaOf(raw: RawSchema, conversion: Conversion): JsonSchema {
  const { definition, schema } = resolveRef(raw, conversion.resource.definitions);
  if (definition === undefined || isIntOrString(schema)) return withoutReference(schema, conversion);
  const name = shortNameOf(definition);
  if (!conversion.definitions.has(name)) {
    // Known before it is built: definitions refer to themselves.
    conversion.definitions.set(name, {});
    const target = conversion.resource.definitions.get(definition) ?? {};
    conversion.definitions.set(name, withoutReference(target, conversion));
  }
  const description = raw["description"] === undefined ? {} : { description: raw["description"] };
  return { ...description, allOf: [{ $ref: `#/definitions/${name}` }] };
}

function withoutReference(schema: RawSchema, conversion: Conversion): JsonSchema {
  const copied = Object.fromEntries(COPIED.flatMap((key) => (schema[key] === undefined ? [] : [[key, schema[key]]])));
  const isNullable = schema["nullable"] === true;
  const typed = (type: unknown) => (isNullable && typeof type === "string" ? [type, "null"] : type);
  if (isIntOrString(schema)) return { ...copied, type: ["integer", "string", ...(isNullable ? ["null"] : [])] };
  const built: JsonSchema = { ...copied, ...(schema["type"] === undefined ? {} : { type: typed(schema["type"]) }) };
  if (isNullable && Array.isArray(schema["enum"])) built["enum"] = [...(schema["enum"] as unknown[]), null];
  const items = ownSchema(schema, "items");
  if (items !== undefined) built["items"] = schemaOf(items, conversion);
  const fields = [...schemasOf(schema, "properties")].map(([name, field]) => [name, schemaOf(field, conversion)]);
  const values = ownSchema(schema, "additionalProperties");
  if (fields.length > 0) built["properties"] = Object.fromEntries(fields);
  if (values !== undefined) built["additionalProperties"] = schemaOf(values, conversion);
  else if (isClosed(schema, fields.length)) built["additionalProperties"] = false;
  return built;
}

// An embedded object has fields that its schema need not name, and metadata is the API server's.
function isClosed(schema: RawSchema, fields: number): boolean {
  if (schema["x-kubernetes-preserve-unknown-fields"] === true || schema["x-kubernetes-embedded-resource"] === true)
    return false;
  return fields > 0 && schema["additionalProperties"] === undefined;
}
