import type { JsonValue } from "../json/json.js";

/**
 * The structural schema of a kind, in the words of OpenAPI v3 and Kubernetes' extensions, without descriptions. The matcher reads list types, map types,
 * quantities and defaults from it; `parse` reads the rest. `$ref` names an entry of `definitions`, which only the root has.
 */
export interface Schema {
  readonly $ref?: string;
  readonly definitions?: { readonly [name: string]: Schema };
  readonly type?: "object" | "array" | "string" | "integer" | "number" | "boolean";
  /** `quantity` stands for `k8s.io/apimachinery/pkg/api/resource.Quantity` of a built-in kind. */
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
  /** Of a field of a built-in kind: zero, false or empty is stored as such, and not left out. A pointer in Go, where nothing differs from zero. */
  readonly "x-gen-operator-keeps-zero"?: boolean;
}

/** A rule in CEL that a value of the schema has to meet. */
export interface ValidationRule {
  readonly rule: string;
  readonly message?: string;
  /** An expression for the message; `message` takes its place where it fails. */
  readonly messageExpression?: string;
  /** The field that the problem is reported at, from the value on, such as `.spec.host`. */
  readonly fieldPath?: string;
  /** The kind of the cause that the API server answers. Default: FieldValueInvalid */
  readonly reason?: string;
  /** Whether the rule is checked without an old object, too; `oldSelf` is an optional value then. */
  readonly optionalOldSelf?: boolean;
}

/** The schemas that others refer to, by their names. */
export type Definitions = { readonly [name: string]: Schema };

/** Follows the reference of a schema. */
export function followRef(schema: Schema, definitions: Definitions): Schema {
  const target = schema.$ref === undefined ? undefined : definitions[schema.$ref];
  return target ?? schema;
}

/** Returns the schema of a member: that of the property, or of all properties without one. */
export function memberSchema({ properties, additionalProperties }: Schema, name: string): Schema | undefined {
  if (properties !== undefined && Object.hasOwn(properties, name)) return properties[name];
  return typeof additionalProperties === "object" ? additionalProperties : undefined;
}

const withRules = new WeakMap<Schema, boolean>();

/** Tells whether a schema has validation rules anywhere. The answer is kept: most parts of a schema have none and are skipped. */
export function hasRules(schema: Schema, definitions: Definitions): boolean {
  const found = withRules.get(schema);
  if (found !== undefined) return found;
  // A schema that refers to itself has no other rules there.
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
