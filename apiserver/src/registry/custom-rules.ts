import {
  type MetadataRules,
  type StructuralSchema,
  applyDefaults,
  checkEmbeddedResources,
  dropNulls,
  evaluateRules,
  itemSchema,
  memberPathOf,
  memberSchema,
  misfitOfEmbedded,
  propertiesOf,
  pruneUnknownFields,
  validateSchema,
} from "@gen-operator/schema/definitions";
import { decodeBuiltin } from "../builtin/decode.js";
import type { ServedType } from "../builtin/served-type.js";
import { type FieldError, duplicateError, fieldErrorText, invalidError } from "../errors/field-error.js";
import { goTypeOf, quote } from "../errors/go-format.js";
import { badRequest } from "../errors/status-error.js";
import { type JsonObject, type JsonValue, canonicalJson, isObject, memberOf } from "../json.js";
import { checkEmbeddedMeta, finalizerWarnings } from "../object/object-meta.js";
import { checkScaleOf } from "../object/scale.js";
import { mergeTypeOfCustomResource } from "../ssa/merge-type.js";
import type { TypeRules } from "./registry.js";

/** Returns the rules of a custom resource. */
export function customRules(type: ServedType): TypeRules {
  const schema = type.custom?.schema ?? {};
  let mergeType: TypeRules["mergeType"] | undefined;
  // Messages of failing validation rules that ratcheting tolerates because the update did not change the value; they become warnings.
  const forgiven = new WeakMap<JsonObject, readonly string[]>();
  const withRules = (
    object: JsonObject,
    old: JsonObject | undefined,
    { found, before = [] }: { found: readonly FieldError[]; before?: readonly FieldError[] | undefined },
  ): FieldError[] => {
    const { errors, warnings } = evaluateRules(schema, { object, old, found: [...before, ...found] });
    if (warnings.length > 0) forgiven.set(object, warnings);
    return [...found, ...errors];
  };
  return {
    get mergeType() {
      return (mergeType ??= mergeTypeOfCustomResource(schema));
    },
    decode(object, { keepsNulls } = { keepsNulls: false }) {
      const { metadata } = object;
      const own = isObject(metadata) ? misfitOfMetadata(metadata) : undefined;
      const embedded = own === undefined ? misfitOfEmbedded(schema, object, { metadata: METADATA_RULES }) : undefined;
      const error = own ?? (embedded && fieldErrorText(embedded));
      if (error !== undefined) {
        throw badRequest(
          `${type.kind} in version ${quote(type.version)} cannot be handled as a ${type.kind}: ${error}`,
        );
      }
      const unknown = pruneUnknownFields(schema, object);
      if (!keepsNulls) dropNulls(schema, object);
      return unknown;
    },
    fillDefaults: (object) => applyDefaults(schema, object),
    finish: () => undefined,
    validate: (object, live, ofMetadata) =>
      withRules(object, live, {
        found: [...validateCustomResource(schema, object, live), ...checkScaleOf(type, object)],
        before: ofMetadata,
      }),
    validateStatus: (object, live) =>
      withRules(object, live, {
        found: [...validateStatus(schema, object, live), ...checkScaleOf(type, object, { ofStatus: true })],
      }),
    forgiven: (object) => forgiven.get(object) ?? [],
    warnings: (object, live) => [...finalizerWarnings(object, live), ...(forgiven.get(object) ?? [])],
  };
}

/** Validates a custom resource against its schema. With `old`, errors in unchanged values are tolerated (ratcheting). */
export function validateCustomResource(schema: StructuralSchema, object: JsonObject, old?: JsonObject): FieldError[] {
  const { errors } = validateSchema(withoutMetadata(schema), { path: "", value: object, old });
  return [
    ...errors,
    ...checkEmbeddedResources(schema, object, { metadata: METADATA_RULES }),
    ...checkRepeated(schema, object, old),
  ];
}

/**
 * Validates a write to the status subresource: the schema of status, and list uniqueness in the whole object.
 *
 * As in Kubernetes, messages contain the path relative to status, while the `field` of an error is the full path.
 */
export function validateStatus(schema: StructuralSchema, object: JsonObject, old?: JsonObject): FieldError[] {
  const statusSchema = memberSchema(schema, "status");
  const value = memberOf(object, "status");
  const errors =
    statusSchema === undefined || value === undefined || value === null
      ? []
      : validateSchema(statusSchema, { path: "", value, old: memberOf(old, "status") }).errors.map(belowStatus);
  return [...errors, ...checkRepeated(schema, object, old)];
}

function belowStatus(error: FieldError): FieldError {
  return { ...error, field: error.field === "" ? "status" : `status.${error.field}` };
}

function checkRepeated(schema: StructuralSchema, object: JsonObject, old: JsonObject | undefined): FieldError[] {
  const repeated = checkUniqueItems(schema, object);
  // Duplicates in the old object are tolerated.
  const isForgiven = repeated.length > 0 && old !== undefined && checkUniqueItems(schema, old).length > 0;
  return isForgiven ? [] : repeated;
}

// A CRD can only restrict metadata.name and metadata.generateName; ObjectMeta is validated elsewhere.
function withoutMetadata(schema: StructuralSchema): StructuralSchema {
  const { metadata, ...rest } = propertiesOf(schema);
  return isObject(metadata) && metadata["properties"] === undefined ? { ...schema, properties: rest } : schema;
}

/** Reports duplicate values in sets and duplicate keys in keyed lists. */
function checkUniqueItems(schema: StructuralSchema, value: JsonValue, path = ""): FieldError[] {
  if (Array.isArray(value)) {
    const items = itemSchema(schema);
    const below = items ? value.flatMap((item, index) => checkUniqueItems(items, item, `${path}[${index}]`)) : [];
    return [...repeatedItems(schema, value, path), ...below];
  }
  if (!isObject(value)) return [];
  return Object.keys(value).flatMap((name) => {
    const inner = memberSchema(schema, name);
    return inner ? checkUniqueItems(inner, value[name] as JsonValue, memberPathOf(schema, path, name)) : [];
  });
}

function repeatedItems(schema: StructuralSchema, items: JsonValue[], path: string): FieldError[] {
  const listType = schema["x-kubernetes-list-type"];
  if (listType !== "set" && listType !== "map") return [];
  const odd = listType === "map" ? items.findIndex((item) => item !== null && !isObject(item)) : -1;
  // As in Kubernetes, only the first item that is not an object is reported.
  if (odd >= 0)
    return [
      invalidError(`${path}[${odd}]`, items[odd] as JsonValue, "must be an object for an array of list-type map"),
    ];
  const counts = new Map<string, number>();
  const errors: FieldError[] = [];
  items.forEach((item, index) => {
    if (listType === "map" && item === null) return;
    const identity = canonicalJson(isObject(item) && listType === "map" ? keysOf(schema, item) : item);
    const count = (counts.get(identity) ?? 0) + 1;
    counts.set(identity, count);
    // Report each duplicate value once.
    if (count === 2) errors.push(duplicateError(`${path}[${index}]`, JSON.parse(identity) as JsonValue));
  });
  return errors;
}

function keysOf(schema: StructuralSchema, item: JsonObject): JsonObject {
  const names = memberOf(schema, "x-kubernetes-list-map-keys");
  const keys: JsonObject = {};
  for (const name of Array.isArray(names) ? names : []) {
    const value = memberOf(item, String(name));
    if (value !== undefined) keys[String(name)] = value;
  }
  return keys;
}

const OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/** Validation of the metadata of embedded resources. */
export const METADATA_RULES: MetadataRules = { misfitOf: misfitOfMetadata, check: checkEmbeddedMeta };

/** Returns the decoding error of metadata, or undefined. */
function misfitOfMetadata(metadata: JsonValue): string | undefined {
  if (!isObject(metadata)) return `json: cannot unmarshal ${goTypeOf(metadata)} into Go value of type v1.ObjectMeta`;
  return decodeBuiltin({ schemaName: OBJECT_META }, metadata).error;
}
