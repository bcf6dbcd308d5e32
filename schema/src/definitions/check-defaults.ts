// Validates the defaults of a structural schema: each must be a value that an object of the schema can have.
import { fieldErrorText, invalidError, type FieldError } from "./field-error.js";
import { clone, deepEqual, isJsonObject, memberOf, type JsonObject, type JsonValue } from "../json/json.js";
import { checkEmbeddedResources, misfitOfEmbedded, type MetadataRules } from "./embedded-resource.js";
import {
  itemSchema,
  propertiesOf,
  pruneUnknownFields,
  RESOURCE_FIELDS,
  type StructuralSchema,
} from "./structural-schema.js";
import { evaluateRules } from "./validation-rules.js";
import { validateSchema } from "./validate-schema.js";

const EMBEDDED = "x-kubernetes-embedded-resource";

interface Place {
  readonly path: string;
  /** Makes an object of the resource around it that has a value there. */
  readonly objectOf: (value: JsonValue) => JsonObject;
  /** Whether it describes the metadata of that resource, or its type. */
  readonly isMeta: boolean;
  readonly metadata: MetadataRules;
}

/** Checks the defaults of a structural schema. */
export function checkDefaults(schema: StructuralSchema, path: string, metadata: MetadataRules): FieldError[] {
  return checkBelow({ ...schema, [EMBEDDED]: true }, { path, objectOf: resourceWith, isMeta: false, metadata });
}

function checkBelow(schema: StructuralSchema, place: Place): FieldError[] {
  const { path, isMeta, metadata } = place;
  const isResource = schema[EMBEDDED] === true && !isMeta;
  const objectOf = isResource ? resourceWith : place.objectOf;
  const inner = (child: JsonValue | undefined, name: string, more: Partial<Place> = {}): FieldError[] =>
    isJsonObject(child) ? checkBelow(child, { objectOf, isMeta, metadata, ...more, path: `${path}.${name}` }) : [];
  return [
    ...checkDefault(schema, place),
    ...Object.entries(propertiesOf(schema)).flatMap(([name, child]) =>
      inner(child, `properties[${name}]`, {
        isMeta: isMeta || (isResource && RESOURCE_FIELDS.has(name)),
        objectOf: (value) => objectOf({ [name]: value }),
      }),
    ),
    ...inner(itemSchema(schema), "items", { objectOf: (value) => objectOf([value]) }),
  ];
}

function checkDefault(schema: StructuralSchema, { path, objectOf, isMeta, metadata }: Place): FieldError[] {
  const fallback = memberOf(schema, "default") ?? null;
  if (fallback === null) return [];
  const field = `${path}.default`;
  if (isMeta) {
    const problem = problemOfMeta(objectOf(fallback), metadata);
    if (problem !== undefined) return [invalidError(field, fallback, `must result in valid metadata: ${problem}`)];
    return checkValue(schema, field, fallback);
  }
  // Pruning works on objects, so the value is put into one.
  const wrapper = { type: "object", properties: { value: schema } };
  const wrapped: JsonObject = { value: clone(fallback) };
  pruneUnknownFields(wrapper, wrapped);
  const isPruned = deepEqual(wrapped["value"], fallback);
  const ofFields = isPruned ? [] : [invalidError(field, fallback, "must not have unknown fields")];
  const misfit = misfitOfEmbedded(schema, fallback, { path: field, metadata });
  if (misfit !== undefined) return [...ofFields, misfit];
  const ofResources = checkEmbeddedResources(schema, fallback, { path: field, metadata });
  if (ofResources.length > 0) return [...ofFields, ...ofResources];
  return [...ofFields, ...checkValue(schema, field, fallback)];
}

function checkValue(schema: StructuralSchema, field: string, value: JsonValue): FieldError[] {
  // What may be an integer or a string has no type of its own here (1.36, ToKubeOpenAPI).
  const { errors } = validateSchema(withoutIntOrString(schema), { path: "", value });
  if (errors.length === 0) return checkRules(schema, field, value);
  return errors.map((error) => ({ ...error, field: error.field === "" ? field : `${field}.${error.field}` }));
}

// Rules that are not expressions are reported at the rule.
function checkRules(schema: StructuralSchema, field: string, value: JsonValue): FieldError[] {
  const wrapper = { type: "object", properties: { value: schema } };
  const { errors } = evaluateRules(wrapper, { object: { value }, found: [] });
  return errors.map((error) => ({ ...error, field: `${field}${error.field.slice("value".length)}` }));
}

function withoutIntOrString<Value extends JsonValue>(value: Value): Value {
  if (Array.isArray(value)) return value.map(withoutIntOrString) as Value;
  if (!isJsonObject(value)) return value;
  const entries = Object.entries(value as JsonObject).filter(([name]) => name !== "x-kubernetes-int-or-string");
  return Object.fromEntries(entries.map(([name, member]) => [name, withoutIntOrString(member)])) as Value;
}

function problemOfMeta(resource: JsonObject, metadata: MetadataRules): string | undefined {
  const schema = { [EMBEDDED]: true };
  const misfit = misfitOfEmbedded(schema, resource, { metadata });
  if (misfit !== undefined) return fieldErrorText(misfit);
  const errors = checkEmbeddedResources(schema, resource, { metadata }).map(fieldErrorText);
  return errors.length > 1 ? `[${errors.join(", ")}]` : errors[0];
}

function resourceWith(value: JsonValue): JsonObject {
  return { apiVersion: "validation/v1", kind: "Validation", ...(isJsonObject(value) ? value : {}) };
}
