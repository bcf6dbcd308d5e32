import {
  checkEmbeddedResources,
  memberSchema,
  propertiesOf,
  validateSchema,
  type StructuralSchema,
} from "@gen-operator/schema/definitions";
import type { FieldError } from "../../errors/field-error.js";
import { isObject, memberOf, type JsonObject } from "../../json.js";
import { METADATA_RULES } from "../metadata-rules.js";
import { checkUniqueItems } from "./unique-items.js";

/** Validates a custom resource against its schema; with `old`, what an update leaves as it was is not held against it. */
export function validateCustomResource(schema: StructuralSchema, object: JsonObject, old?: JsonObject): FieldError[] {
  const { errors } = validateSchema(withoutMetadata(schema), { path: "", value: object, old });
  return [
    ...errors,
    ...checkEmbeddedResources(schema, object, { metadata: METADATA_RULES }),
    ...checkRepeated(schema, object, old),
  ];
}

/**
 * Validates a write through /status: the status by its schema, lists in the whole object.
 *
 * Texts name paths below status, fields the whole path, as Kubernetes has it.
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
  // An object that already had duplicates may keep them.
  const isForgiven = repeated.length > 0 && old !== undefined && checkUniqueItems(schema, old).length > 0;
  return isForgiven ? [] : repeated;
}

// The schema of metadata constrains at most name and generateName; ObjectMeta itself is checked elsewhere.
function withoutMetadata(schema: StructuralSchema): StructuralSchema {
  const { metadata, ...rest } = propertiesOf(schema);
  return isObject(metadata) && metadata["properties"] === undefined ? { ...schema, properties: rest } : schema;
}
