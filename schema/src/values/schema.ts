import type { JsonValue } from "../json/json.js";

/**
 * The structural schema of a kind: OpenAPI v3 with the Kubernetes extensions, without descriptions. Matching uses list types, map types, quantities,
 * and defaults; `parse` uses everything. `$ref` is a key of `definitions`, which only the root schema has.
 */
export interface Schema {
  readonly $ref?: string;
  readonly definitions?: { readonly [name: string]: Schema };
  readonly type?: "object" | "array" | "string" | "integer" | "number" | "boolean";
  /** `quantity` denotes `k8s.io/apimachinery/pkg/api/resource.Quantity` of a built-in kind. */
  readonly format?: string;
  readonly properties?: { readonly [name: string]: Schema };
  readonly additionalProperties?: Schema | boolean;
  readonly items?: Schema;
  readonly required?: readonly string[];
  readonly enum?: readonly JsonValue[];
  readonly default?: JsonValue;
  readonly nullable?: boolean;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: boolean;
  readonly exclusiveMaximum?: boolean;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minProperties?: number;
  readonly maxProperties?: number;
  readonly multipleOf?: number;
  readonly pattern?: string;
  readonly allOf?: readonly Schema[];
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly not?: Schema;
  readonly "x-kubernetes-int-or-string"?: boolean;
  readonly "x-kubernetes-preserve-unknown-fields"?: boolean;
  readonly "x-kubernetes-embedded-resource"?: boolean;
  readonly "x-kubernetes-list-type"?: "atomic" | "set" | "map";
  readonly "x-kubernetes-list-map-keys"?: readonly string[];
  readonly "x-kubernetes-map-type"?: "atomic" | "granular";
  readonly "x-kubernetes-validations"?: readonly ValidationRule[];
  /** Of a field of a built-in kind: zero, false, and empty values are stored and not omitted, because the field is a pointer in Go. */
  readonly "x-gen-operator-keeps-zero"?: boolean;
}

/** A CEL validation rule of a schema. */
export interface ValidationRule {
  readonly rule: string;
  readonly message?: string;
  /** A CEL expression for the message. If its evaluation fails, `message` is used. */
  readonly messageExpression?: string;
  /** The path of the field to report the error at, relative to the value, such as `.spec.host`. */
  readonly fieldPath?: string;
  /** The reason of the cause in the Status of the API server. Default: FieldValueInvalid */
  readonly reason?: string;
  /** Whether the rule is also evaluated without an old value; `oldSelf` is then an optional value. */
  readonly optionalOldSelf?: boolean;
}

/** The schemas that `$ref` refers to, by name. */
export type Definitions = { readonly [name: string]: Schema };

/** Resolves the `$ref` of a schema. */
export function followRef(schema: Schema, definitions: Definitions): Schema {
  const target = schema.$ref === undefined ? undefined : definitions[schema.$ref];
  return target ?? schema;
}

/** Returns the schema of a member: that of the property, or of additionalProperties. */
export function memberSchema({ properties, additionalProperties }: Schema, name: string): Schema | undefined {
  if (properties !== undefined && Object.hasOwn(properties, name)) return properties[name];
  return typeof additionalProperties === "object" ? additionalProperties : undefined;
}

const withRules = new WeakMap<Schema, boolean>();

/** Returns whether a schema has validation rules at any level. The result is cached, because most schemas have none and are skipped. */
export function hasRules(schema: Schema, definitions: Definitions): boolean {
  const found = withRules.get(schema);
  if (found !== undefined) return found;
  // A recursive reference adds no rules.
  withRules.set(schema, false);
  const { properties = {}, items, additionalProperties, allOf = [] } = schema;
  const inner = [...Object.values(properties), ...allOf, ...(items === undefined ? [] : [items])];
  if (typeof additionalProperties === "object") inner.push(additionalProperties);
  const has =
    (schema["x-kubernetes-validations"] ?? []).length > 0 ||
    inner.some((each) => hasRules(followRef(each, definitions), definitions));
  withRules.set(schema, has);
  return has;
}
