import type { JsonValue, Schema, ValidationRule } from "@gen-operator/runtime/codegen";
import type { RawSchema, ResourceModel } from "../../model/project-model.js";
import {
  dropsFields,
  hasFields,
  isIntOrString,
  isRecord,
  itemsOf,
  ownSchema,
  realDefaultOf,
  resolveRef,
  schemasOf,
  shortNameOf,
} from "../../model/schema.js";
import { reservedWords } from "../../model/typescript.js";
import { NameAllocator, camelCase, pascalCase } from "../names.js";
import { type ImportSymbol, type Printed, constantName, printValue } from "../print.js";
import { codegenTypes } from "../runtime-symbols.js";

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

/** Returns the keywords to copy from a schema, in the order of COPIED. */
function copiedOf(schema: RawSchema): string[] {
  return Object.keys(schema)
    .filter((keyword) => PLACES.has(keyword) && schema[keyword] !== undefined)
    .sort((left, right) => (PLACES.get(left) ?? 0) - (PLACES.get(right) ?? 0));
}

const JUNCTORS = ["allOf", "anyOf", "oneOf"] as const;
const NARROWING = [...JUNCTORS, "not"] as const;

/** Builds the schema of a kind for the runtime, without descriptions. */
export function buildRuntimeSchema(resource: ResourceModel): Schema {
  const { root, definitions } = buildSchemaParts(resource);
  if (definitions.size === 0) return root;
  return {
    ...root,
    definitions: Object.fromEntries([...definitions.values()].map(({ name, schema }) => [name, schema])),
  };
}

/** The schema of a kind, and the definitions that it references, by full name, with their short names. */
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

// The API server validates metadata itself; a CRD can only restrict the names.
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

// A map type next to a reference overrides that of the referenced schema.
function mapTypeBeside(raw: RawSchema): Pick<Schema, "x-kubernetes-map-type"> {
  const mapType = raw["x-kubernetes-map-type"] as Schema["x-kubernetes-map-type"];
  return mapType === undefined ? {} : { "x-kubernetes-map-type": mapType };
}

const METADATA: RawSchema = { type: "object" };

// Fields of template metadata that clients never send, and whose types are large.
const UNSENT = new Set(["managedFields", "selfLink"]);

/** Depth at which the rest of a literal becomes a definition. The compiler stops comparing types at about twice this depth. */
const MAX_DEPTH = 24;

// Fields of a rule that `parse` uses. `reason` only determines the HTTP status of a response.
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

/** Returns whether a schema contains CEL rules. */
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

/** Removes the anyOf that describes int-or-string for older tools. */
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
    // Register the definition before building it, because it may be recursive.
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

  // Logical keywords do not affect the structure, which the matcher uses; parse checks them.
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
    // The API server prunes every field of an object without declared fields. Built-in kinds have free-form types instead, such as FieldsV1.
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

// Defaults and zero values of built-in kinds that are not in their schemas (Kubernetes 1.36), as far as comparisons need them: within lists and
// objects that are replaced as a whole, where managed fields do not tell which values the API server has set or omitted.
//
// Recorded in fixtures/live-objects; test/integration/runtime/writes/match-every-kind.test.ts detects missing entries.

/** Facts by the short name of a definition. */
interface Facts<Fact> {
  readonly [definition: string]: Fact;
}

// Defaults that the API server sets.
const DEFAULTS: Facts<{ readonly [property: string]: JsonValue }> = {
  DeviceSubRequest: { allocationMode: "ExactCount", count: 1 },
  EndpointPort: { name: "", protocol: "TCP" },
  ExactDeviceRequest: { allocationMode: "ExactCount", count: 1 },
  MatchResources: { matchPolicy: "Equivalent", namespaceSelector: {}, objectSelector: {} },
  NamedRuleWithOperations: { scope: "*" },
  NetworkPolicyPort: { protocol: "TCP" },
  ObjectFieldSelector: { apiVersion: "v1" },
  PersistentVolumeClaim: { apiVersion: "v1", kind: "PersistentVolumeClaim", status: { phase: "Pending" } },
  PersistentVolumeClaimSpec: { volumeMode: "Filesystem" },
  PodFailurePolicyOnPodConditionsPattern: { status: "True" },
  ResourceFieldSelector: { divisor: "0" },
  RoleRef: { apiGroup: "rbac.authorization.k8s.io" },
  RuleWithOperations: { scope: "*" },
  ServiceAccountTokenProjection: { expirationSeconds: 3600 },
  // For subjects of kind User and Group.
  Subject: { apiGroup: "rbac.authorization.k8s.io" },
};

// Fields that are stored even if they are zero, false, or empty, because they are pointers in Go. Structs with declared fields are always stored.
const KEEPS_ZERO: Facts<readonly string[]> = {
  ClusterTrustBundleProjection: ["name", "optional", "signerName"],
  ConfigMapEnvSource: ["optional"],
  ConfigMapKeySelector: ["optional"],
  ConfigMapProjection: ["optional"],
  CustomResourceDefinitionVersion: ["deprecationWarning"],
  CustomResourceSubresourceScale: ["labelSelectorPath"],
  CustomResourceSubresources: ["status"],
  Device: ["allNodes", "allowMultipleAllocations", "bindsToNode", "nodeName"],
  DeviceAttribute: ["bool", "int", "string", "version"],
  DeviceConstraint: ["distinctAttribute", "matchAttribute"],
  DeviceToleration: ["tolerationSeconds"],
  DownwardAPIVolumeFile: ["mode"],
  Endpoint: ["hostname", "nodeName", "zone"],
  EndpointAddress: ["nodeName"],
  EndpointConditions: ["ready", "serving", "terminating"],
  EndpointPort: ["appProtocol", "name", "port", "protocol"],
  ExactDeviceRequest: ["adminAccess"],
  FileKeySelector: ["optional"],
  HTTPIngressPath: ["pathType"],
  JSONSchemaProps: [
    "$ref",
    "additionalItems",
    "additionalProperties",
    "default",
    "example",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-preserve-unknown-fields",
  ],
  KeyToPath: ["mode"],
  MatchResources: ["matchPolicy"],
  MetricTarget: ["averageUtilization"],
  NamedRuleWithOperations: ["scope"],
  NetworkPolicyPort: ["endPort", "port", "protocol"],
  NodeAllocatableResourceMapping: ["capacityKey"],
  ObjectMeta: ["deletionGracePeriodSeconds"],
  OwnerReference: ["blockOwnerDeletion", "controller"],
  ParamRef: ["parameterNotFoundAction"],
  PersistentVolumeClaimSpec: ["storageClassName", "volumeAttributesClassName", "volumeMode"],
  PersistentVolumeClaimStatus: ["currentVolumeAttributesClassName"],
  PodCertificateProjection: ["maxExpirationSeconds"],
  PodDNSConfigOption: ["value"],
  PodFailurePolicyOnExitCodesRequirement: ["containerName"],
  RuleWithOperations: ["scope"],
  SecretEnvSource: ["optional"],
  SecretKeySelector: ["optional"],
  SecretProjection: ["optional"],
  ServiceAccountTokenProjection: ["expirationSeconds"],
  SuccessPolicyRule: ["succeededCount", "succeededIndexes"],
  TokenRequest: ["expirationSeconds"],
  Toleration: ["tolerationSeconds"],
  TypedLocalObjectReference: ["apiGroup"],
  TypedObjectReference: ["apiGroup", "namespace"],
  Validation: ["reason"],
  ValidationRule: ["optionalOldSelf", "reason"],
};

/** Adds the unpublished facts to the schema of a definition. Fields that another definition of the same name lacks are skipped. */
function withUnstatedFacts(definition: string, schema: Schema): Schema {
  const properties = { ...schema.properties };
  const add = (name: string, fact: Partial<Schema>): void => {
    if (properties[name] !== undefined) properties[name] = { ...properties[name], ...fact };
  };
  for (const [name, value] of Object.entries(DEFAULTS[definition] ?? {})) add(name, { default: value });
  for (const name of KEEPS_ZERO[definition] ?? []) add(name, { "x-gen-operator-keeps-zero": true });
  return schema.properties === undefined ? schema : { ...schema, properties };
}

/** Prints a schema as an exported constant, preceded by constants for repeated parts, which make up most of a large kind. */
export function printSchema(name: string, schema: Schema): Printed[] {
  const { bySchema, distinct } = findShared(schema, name);
  const partOf = (part: Schema): unknown => {
    const { constant } = bySchema.get(part) ?? {};
    return constant === undefined ? withParts(part, partOf) : constantName(constant);
  };
  const constants = distinct.flatMap(({ schema: each, constant }) =>
    constant === undefined ? [] : [declare(`const ${constant}`, withParts(each, partOf))],
  );
  return [...constants, declare(`export const ${name}`, withParts(schema, partOf))];
}

/** Prints a schema as an exported constant. `definitions` are the constants of its definitions, in this module or imported. */
export function printSchemaAlone(
  name: string,
  schema: Schema,
  definitions: readonly (string | ImportSymbol)[] = [],
): Printed {
  const imported = definitions.flatMap((each) => (typeof each === "string" ? [] : [each]));
  const names = definitions.map((each) => (typeof each === "string" ? each : each.alias)).sort();
  const named = names.map((each) => [each, constantName(each)] as const);
  const value = named.length === 0 ? schema : { ...schema, definitions: Object.fromEntries(named) };
  return declare(`export const ${name}`, value, imported);
}

function declare(head: string, value: object, imported: readonly ImportSymbol[] = []): Printed {
  const start = `${head}: Schema = `;
  return { text: `${start}${printValue(value, 0, start.length)};`, symbols: [codegenTypes.Schema, ...imported] };
}

/** Replaces the subschemas of a schema. */
function withParts(schema: Schema, partOf: (part: Schema) => unknown): object {
  const { properties, items, additionalProperties } = schema;
  const named = Object.entries(properties ?? {}).map(([name, part]) => [name, partOf(part)] as const);
  return {
    ...schema,
    ...(properties === undefined ? {} : { properties: Object.fromEntries(named) }),
    ...(items === undefined ? {} : { items: partOf(items) }),
    ...(typeof additionalProperties === "object" ? { additionalProperties: partOf(additionalProperties) } : {}),
  };
}

/** A schema, and its statistics for all equal schemas. */
interface SharedSchema {
  readonly schema: Schema;
  /** Name of the field in which the schema was found first. */
  readonly field: string;
  /** Index in order of discovery. */
  readonly number: number;
  /** Number of distinct parents. */
  count: number;
  /** Length of its text, with constants for its parts. */
  length: number;
  /** Name of its constant, if a constant makes the file shorter. */
  constant?: string;
}

/** Minimum length of a schema in a constant. Shorter ones are more readable inline. */
const SHORT = 80;

/** Length of a declaration without its name and value. */
const DECLARATION = "const : Schema = ;\n\n".length;

interface SharedSchemas {
  readonly bySchema: ReadonlyMap<Schema, SharedSchema>;
  /** Distinct schemas, each after its parts. */
  readonly distinct: readonly SharedSchema[];
}

/** Finds equal schemas, and names those for which a constant saves space. */
function findShared(root: Schema, rootName: string): SharedSchemas {
  const bySchema = new Map<Schema, SharedSchema>();
  const byContent = new Map<string, SharedSchema>();
  const distinct: SharedSchema[] = [];
  const visit = (schema: Schema, field: string): SharedSchema => {
    const parts = partsOf(schema).map(([name, part]) => visit(part, name ?? field));
    const content = contentOf(schema, (part) => bySchema.get(part)?.number);
    const known = byContent.get(content);
    const shared = known ?? { schema, field, number: distinct.length, count: 0, length: content.length };
    if (known === undefined) {
      distinct.push(shared);
      byContent.set(content, shared);
      for (const part of parts) part.count++;
    }
    bySchema.set(schema, shared);
    return shared;
  };
  visit(root, "");
  const taken = new Set([rootName, "Schema"]);
  for (const shared of distinct) {
    for (const [, part] of partsOf(shared.schema)) {
      const { constant, length } = bySchema.get(part) ?? { length: 0 };
      shared.length += constant?.length ?? length;
    }
    if (shared.count < 2 || shared.length < SHORT) continue;
    const name = constantNameOf(shared.field, taken);
    const gain = (shared.count - 1) * shared.length - shared.count * name.length - DECLARATION;
    if (gain <= 0) continue;
    taken.add(name);
    shared.constant = name;
  }
  return { bySchema, distinct };
}

/** Returns a schema as JSON in which each part is replaced by the index of its equal schema. */
function contentOf(schema: Schema, numberOf: (part: Schema) => number | undefined): string {
  let content = "";
  for (const [keyword, value] of Object.entries(schema) as [string, unknown][]) {
    content += `${content === "" ? "{" : ","}"${keyword}":`;
    // Fast path: most fields only have a type.
    if (keyword === "type") content += `"${value as string}"`;
    else if (!PARTS.has(keyword) || typeof value !== "object") content += JSON.stringify(value);
    else if (keyword !== "properties") content += numberOf(value as Schema);
    else {
      const fields = Object.entries(value as { readonly [name: string]: Schema });
      content += `{${fields.map(([name, part]) => `${JSON.stringify(name)}:${numberOf(part)}`).join()}}`;
    }
  }
  return `${content === "" ? "{" : content}}`;
}

const PARTS: ReadonlySet<string> = new Set(["properties", "items", "additionalProperties"]);

/** Returns the subschemas of a schema, with the names of their fields. */
function partsOf({ properties, items, additionalProperties }: Schema): (readonly [string | undefined, Schema])[] {
  const parts: (readonly [string | undefined, Schema])[] = properties === undefined ? [] : Object.entries(properties);
  if (items !== undefined) parts.push([undefined, items]);
  if (typeof additionalProperties === "object") parts.push([undefined, additionalProperties]);
  return parts;
}

// The name of a field is more readable than a number, and does not change when fields are added.
function constantNameOf(field: string, taken: ReadonlySet<string>): string {
  const word = camelCase(field) || "part";
  const base = NO_NAMES.has(word) || !/^[a-z]/i.test(word) ? `schema${pascalCase(word)}` : word;
  let name = base;
  for (let number = 2; taken.has(name); number++) name = `${base}${number}`;
  return name;
}

// TypeScript does not allow a module to declare the last two.
const NO_NAMES: ReadonlySet<string> = new Set([...reservedWords, "undefined", "globalThis"]);
