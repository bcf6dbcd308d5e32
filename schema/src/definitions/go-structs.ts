// The Go structs of a CustomResourceDefinition as error messages print them: each field by its Go name, in the order of the struct, including unset
// ones.
import { isJsonObject, type JsonObject, type JsonValue } from "../json/json.js";

/** A field of a Go struct: its value if unset, and the format of a set value. */
interface Field {
  /** The name of the field in Go. */
  name: string;
  absent: JsonValue;
  print: (value: JsonValue) => JsonValue;
}

type Struct = Record<string, Field>;

const asGiven = (value: JsonValue): JsonValue => value;

function field(name: string, absent: JsonValue, print: Field["print"] = asGiven): Field {
  return { name, absent, print };
}

function printStruct(struct: Struct, value: JsonValue): JsonValue {
  const given = isJsonObject(value) ? value : {};
  return Object.fromEntries(
    Object.entries(struct).map(([member, { name, absent, print }]) => {
      const own = given[member] ?? null;
      return [name, own === null ? absent : print(own)];
    }),
  );
}

function printList(value: JsonValue, print: Field["print"]): JsonValue {
  return Array.isArray(value) ? value.map(print) : value;
}

// Go prints the keys of a map in sorted order.
function printMap(value: JsonValue, print: Field["print"]): JsonValue {
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => [key, print(value[key] as JsonValue)]),
  );
}

const schema = (value: JsonValue): JsonValue => printStruct(SCHEMA, value);
const schemas = (value: JsonValue): JsonValue => printList(value, schema);
const schemaMap = (value: JsonValue): JsonValue => printMap(value, schema);
const schemaOrFlag = (value: JsonValue): JsonValue =>
  typeof value === "boolean" ? { Allows: value, Schema: null } : { Allows: true, Schema: schema(value) };
const schemaOrSchemas = (value: JsonValue): JsonValue =>
  Array.isArray(value) ? { Schema: null, JSONSchemas: schemas(value) } : { Schema: schema(value), JSONSchemas: null };
const schemaOrNames = (value: JsonValue): JsonValue =>
  Array.isArray(value) ? { Schema: null, Property: value } : { Schema: schema(value), Property: null };

const DOCUMENT: Struct = { description: field("Description", ""), url: field("URL", "") };

const RULE: Struct = {
  rule: field("Rule", ""),
  message: field("Message", ""),
  messageExpression: field("MessageExpression", ""),
  reason: field("Reason", null),
  fieldPath: field("FieldPath", ""),
  optionalOldSelf: field("OptionalOldSelf", null),
};

const SCHEMA: Struct = {
  id: field("ID", ""),
  $schema: field("Schema", ""),
  $ref: field("Ref", null),
  description: field("Description", ""),
  type: field("Type", ""),
  nullable: field("Nullable", false),
  format: field("Format", ""),
  title: field("Title", ""),
  default: field("Default", null),
  maximum: field("Maximum", null),
  exclusiveMaximum: field("ExclusiveMaximum", false),
  minimum: field("Minimum", null),
  exclusiveMinimum: field("ExclusiveMinimum", false),
  maxLength: field("MaxLength", null),
  minLength: field("MinLength", null),
  pattern: field("Pattern", ""),
  maxItems: field("MaxItems", null),
  minItems: field("MinItems", null),
  uniqueItems: field("UniqueItems", false),
  multipleOf: field("MultipleOf", null),
  enum: field("Enum", null),
  maxProperties: field("MaxProperties", null),
  minProperties: field("MinProperties", null),
  required: field("Required", null),
  items: field("Items", null, schemaOrSchemas),
  allOf: field("AllOf", null, schemas),
  oneOf: field("OneOf", null, schemas),
  anyOf: field("AnyOf", null, schemas),
  not: field("Not", null, schema),
  properties: field("Properties", null, schemaMap),
  additionalProperties: field("AdditionalProperties", null, schemaOrFlag),
  patternProperties: field("PatternProperties", null, schemaMap),
  dependencies: field("Dependencies", null, (value) => printMap(value, schemaOrNames)),
  additionalItems: field("AdditionalItems", null, schemaOrFlag),
  definitions: field("Definitions", null, schemaMap),
  externalDocs: field("ExternalDocs", null, (value) => printStruct(DOCUMENT, value)),
  example: field("Example", null),
  "x-kubernetes-preserve-unknown-fields": field("XPreserveUnknownFields", null),
  "x-kubernetes-embedded-resource": field("XEmbeddedResource", false),
  "x-kubernetes-int-or-string": field("XIntOrString", false),
  "x-kubernetes-list-map-keys": field("XListMapKeys", null),
  "x-kubernetes-list-type": field("XListType", null),
  "x-kubernetes-map-type": field("XMapType", null),
  "x-kubernetes-validations": field("XValidations", null, (value) =>
    printList(value, (rule) => printStruct(RULE, rule)),
  ),
};

const SCALE: Struct = {
  specReplicasPath: field("SpecReplicasPath", ""),
  statusReplicasPath: field("StatusReplicasPath", ""),
  labelSelectorPath: field("LabelSelectorPath", null),
};

const SUBRESOURCES: Struct = {
  status: field("Status", null, () => ({})),
  scale: field("Scale", null, (value) => printStruct(SCALE, value)),
};

const COLUMN: Struct = {
  name: field("Name", ""),
  type: field("Type", ""),
  format: field("Format", ""),
  description: field("Description", ""),
  priority: field("Priority", 0),
  jsonPath: field("JSONPath", ""),
};

const VERSION: Struct = {
  name: field("Name", ""),
  served: field("Served", false),
  storage: field("Storage", false),
  deprecated: field("Deprecated", false),
  deprecationWarning: field("DeprecationWarning", null),
  schema: field("Schema", null, (value) =>
    printStruct({ openAPIV3Schema: field("OpenAPIV3Schema", null, schema) }, value),
  ),
  subresources: field("Subresources", null, (value) => printStruct(SUBRESOURCES, value)),
  additionalPrinterColumns: field("AdditionalPrinterColumns", null, (value) =>
    printList(value, (column) => printStruct(COLUMN, column)),
  ),
  selectableFields: field("SelectableFields", null, (value) =>
    printList(value, (each) => printStruct({ jsonPath: field("JSONPath", "") }, each)),
  ),
};

/** Converts a schema to the JSON of its internal Go struct. */
export function internalSchema(value: JsonObject): JsonValue {
  return schema(value);
}

/** Lists the Go names of the fields that are set, in the order of the struct. */
export function setFields(value: JsonObject): string[] {
  const members = Object.entries(SCHEMA).filter(([member, { absent }]) => (value[member] ?? absent) !== absent);
  return members.map(([, { name }]) => name);
}

/** Converts a CRD version to the JSON of its internal Go struct. */
export function internalVersion(version: JsonObject): JsonValue {
  return printStruct(VERSION, version);
}
