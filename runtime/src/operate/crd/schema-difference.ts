// Compares the schema that an operator was compiled with and the schema of the cluster.
//
// A difference is what makes the server refuse or drop what the operator writes, merge it in another way, or answer with another type. What
// only the cluster states is none: further fields, and everything that it validates. Nor is what the compiled schema does not state.
import type { Schema } from "../../base/resource-definition.js";

/** A place where a schema is not as another one, and what either has there. */
export interface SchemaDifference {
  /** As in `spec.template.containers[].image`; `.*` stands for any key of a map. */
  readonly path: string;
  readonly expected: string;
  readonly found: string;
}

/** The schema of a kind in a cluster. */
export interface ClusterSchema {
  readonly schema: Schema;
  /** Whether the server keeps all fields, declared or not (`spec.preserveUnknownFields` of definitions from before v1). Default: false. */
  readonly keepsUnknownFields?: boolean;
}

/** Returns where the schema of a cluster differs from a compiled one, in the order of the compiled one; nothing for an untyped kind. */
export function schemaDifferences(compiled: Schema, { schema, ...cluster }: ClusterSchema): SchemaDifference[] {
  const { keepsUnknownFields = false } = cluster;
  const comparison = new Comparison(compiled.definitions ?? {}, keepsUnknownFields);
  // Every kind has these three, and the server treats them alike whatever a definition says of them.
  comparison.compare(withoutFields(compiled, ROOT_FIELDS), schema, "");
  return comparison.differences;
}

const ROOT_FIELDS = ["apiVersion", "kind", "metadata"];
const ANYTHING = "any value";
const NO_FIELD = "no such field";

class Comparison {
  readonly differences: SchemaDifference[] = [];
  readonly #definitions: { readonly [name: string]: Schema };
  readonly #keepsUnknownFields: boolean;

  constructor(definitions: { readonly [name: string]: Schema }, keepsUnknownFields: boolean) {
    this.#definitions = definitions;
    this.#keepsUnknownFields = keepsUnknownFields;
  }

  // Ends although definitions may refer to themselves: it goes no deeper than the schema of the cluster, which is a tree.
  compare(stated: Schema, found: Schema, path: string): void {
    const expected = this.#resolve(stated);
    const types = { expected: typeOf(expected), found: typeOf(found) };
    if (types.expected === undefined && isOpen(expected) && types.found !== undefined)
      return this.#add(path, ANYTHING, types.found);
    // What has no type in the cluster may be anything, so also what the operator writes.
    if (types.expected !== undefined && types.found !== undefined && types.expected !== types.found)
      return this.#add(path, types.expected, types.found);
    if (expected.nullable === true && found.nullable !== true && types.found !== undefined)
      this.#add(path, "nullable", "not nullable");
    if (types.expected === "array") this.#compareLists(expected, found, path);
    if (types.expected === "object") this.#compareObjects(expected, found, path);
  }

  #compareLists(expected: Schema, found: Schema, path: string): void {
    this.#add(path, describeList(expected), describeList(found));
    if (expected.items !== undefined && found.items !== undefined)
      this.compare(expected.items, found.items, `${path}[]`);
  }

  #compareObjects(expected: Schema, found: Schema, path: string): void {
    const isKept = this.#keepsUnknownFields || isOpen(found) || typeOf(found) === undefined;
    this.#add(path, describeMap(expected), describeMap(found));
    if (isOpen(expected) && !isKept) this.#add(path, "unknown fields kept", "unknown fields dropped");
    const implicit = found["x-kubernetes-embedded-resource"] === true ? ROOT_FIELDS : [];
    for (const [name, property] of Object.entries(withoutFields(expected, implicit).properties ?? {}))
      this.#compareField(property, fieldOf(found, name), { path: pathOf(path, name), isKept });
    const others = otherFieldsOf(expected);
    if (others !== undefined) this.#compareField(others, otherFieldsOf(found), { path: `${path}.*`, isKept });
  }

  #compareField(stated: Schema, found: Schema | undefined, { path, isKept }: { path: string; isKept: boolean }): void {
    if (found !== undefined) return this.compare(stated, found, path);
    if (!isKept) this.#add(path, typeOf(this.#resolve(stated)) ?? ANYTHING, NO_FIELD);
  }

  #resolve({ $ref, ...schema }: Schema): Schema {
    return $ref === undefined ? schema : { ...this.#definitions[$ref], ...schema };
  }

  #add(path: string, expected: string, found: string): void {
    if (expected !== found) this.differences.push({ path: path === "" ? "." : path, expected, found });
  }
}

// Beside the type, a schema may state it in two ways of its own, and by what it has.
function typeOf(schema: Schema): string | undefined {
  if (schema["x-kubernetes-int-or-string"] === true || schema.format === "int-or-string") return "int-or-string";
  if (schema.type !== undefined) return schema.type;
  if (schema.properties !== undefined || schema.additionalProperties !== undefined) return "object";
  return schema.items === undefined ? undefined : "array";
}

function isOpen(schema: Schema): boolean {
  return schema["x-kubernetes-preserve-unknown-fields"] === true;
}

// https://kubernetes.io/docs/reference/using-api/server-side-apply/#merge-strategy: what is not stated is atomic.
function describeList(schema: Schema): string {
  const type = schema["x-kubernetes-list-type"] ?? "atomic";
  if (type !== "map") return `list type ${type}`;
  // The order of the keys means nothing.
  return `list type map by ${[...(schema["x-kubernetes-list-map-keys"] ?? [])].sort().join(" and ")}`;
}

function describeMap(schema: Schema): string {
  return `map type ${schema["x-kubernetes-map-type"] ?? "granular"}`;
}

function fieldOf(schema: Schema, name: string): Schema | undefined {
  const { properties = {} } = schema;
  return Object.hasOwn(properties, name) ? properties[name] : otherFieldsOf(schema);
}

// What stands under every key that is no property.
function otherFieldsOf({ additionalProperties }: Schema): Schema | undefined {
  return additionalProperties === true ? {} : additionalProperties || undefined;
}

function withoutFields(schema: Schema, names: readonly string[]): Schema {
  if (schema.properties === undefined || names.length === 0) return schema;
  const properties = Object.entries(schema.properties).filter(([name]) => !names.includes(name));
  return { ...schema, properties: Object.fromEntries(properties) };
}

function pathOf(path: string, name: string): string {
  if (!/^[\w$-]+$/.test(name)) return `${path}[${JSON.stringify(name)}]`;
  return path === "" ? name : `${path}.${name}`;
}
