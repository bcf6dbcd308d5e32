// What the conditions of a dependent guarantee of the primary whenever its `desired` is called.
import {
  isKubernetes,
  ownOperationsOf,
  type ConditionModel,
  type ControllerModel,
  type DependentModel,
  type ResourceModel,
} from "../../model/project-model.js";
import type { ProvenField } from "../../model/expression/proven-fields.js";
import { fieldAt, mayBeAbsent, type FieldAt } from "../../model/schema/schema-path.js";
import { printText, propertyNameOf } from "../print/print-value.js";
import { intersection, objectOf, union, type TypeNode } from "../print/type-node.js";

/** Returns the type of the primary in the `desired` of a dependent; undefined if it is that of any primary. */
export function guardedPrimaryOf(
  dependent: DependentModel,
  controller: ControllerModel,
  primary: string,
): TypeNode | undefined {
  const fields = fieldsProvenFor(dependent, controller);
  return fields.size === 0 ? undefined : intersection(primary, typeOf(fields));
}

/** Tells whether the `desired` of a dependent sees more of the primary than its type says. */
export function isGuarded(dependent: DependentModel, controller: ControllerModel): boolean {
  return fieldsProvenFor(dependent, controller).size > 0;
}

/** What is known of fields, by their names: a type, or what is known of the fields of an object. */
type ProvenFields = Map<string, TypeNode | ProvenFields>;

function fieldsProvenFor(dependent: DependentModel, { primary, dependents }: ControllerModel): ProvenFields {
  const fields: ProvenFields = new Map();
  if (isCalledUnconditionally(dependent)) return fields;
  const before = dependents.filter(({ name }) => dependent.waitsFor.includes(name));
  const proofs = [...before, dependent].flatMap(({ conditions }) => [
    ...provenBy(conditions.activationCondition),
    ...provenBy(conditions.reconcilePrecondition),
  ]);
  for (const { path, type } of typesOf(proofs, primary)) add(fields, path, type);
  return fields;
}

// To find the object in a cleanup, or an object that another client created, `desired` is asked for its name whatever the conditions say.
function isCalledUnconditionally(dependent: DependentModel): boolean {
  if (!isKubernetes(dependent)) return false;
  return dependent.deletion !== "garbageCollected" || ownOperationsOf(dependent).includes("create");
}

function provenBy(condition: ConditionModel | undefined): readonly ProvenField[] {
  return condition?.kind === "when" ? (condition.proves ?? []) : [];
}

interface TypedField {
  readonly path: readonly string[];
  readonly type: TypeNode;
}

/** Returns what proofs say that the schema leaves open. */
function typesOf(proofs: readonly ProvenField[], primary: ResourceModel): TypedField[] {
  const byPath = new Map<string, ProvenField>();
  for (const proof of proofs) {
    const { path, without, equals } = withinSchema(proof, primary);
    const key = JSON.stringify(path);
    const { without: other, equals: value = equals } = byPath.get(key) ?? {};
    byPath.set(key, {
      path,
      without: [...(other ?? []), ...(without ?? [])],
      ...(value === undefined ? {} : { equals: value }),
    });
  }
  return [...byPath.values()].flatMap((proof) => {
    const type = proof.path.length === 0 ? undefined : typeFor(proof, primary);
    return type === undefined ? [] : [{ path: proof.path, type }];
  });
}

/** Returns a proof about what the schema has as a field: about a map or a list instead of one of its items. */
function withinSchema(proof: ProvenField, primary: ResourceModel): ProvenField {
  const { path, equals, without = [] } = proof;
  const depth = depthOf(path, primary);
  if (depth === path.length) return proof;
  const isThere = equals !== undefined || without.some((each) => each !== "null");
  return { path: path.slice(0, depth), without: isThere ? ["undefined", "null"] : [] };
}

function depthOf(path: readonly string[], primary: ResourceModel): number {
  // The runtime has types for the metadata. They agree with the API server, and the compiler checked the field.
  if (path[0] === "metadata") return Math.min(path.length, 2);
  const found = fieldAt(primary, path);
  return found.kind === "unknown" ? found.depth : path.length;
}

function typeFor({ path, without = [], equals }: ProvenField, primary: ResourceModel): TypeNode | undefined {
  const field = fieldAt(primary, path);
  const isOpen = mayBeAbsent(primary, path);
  const schema = "schema" in field ? field.schema : undefined;
  if (equals !== undefined) return isOpen || schema?.["enum"] !== undefined ? literalOf(equals) : undefined;
  const isFalsy = without.includes("falsy");
  if (!isOpen || !(isFalsy || without.includes("undefined"))) return undefined;
  if (isFalsy && schema?.["type"] === "boolean") return "true";
  return isFalsy || without.includes("null") || !mayBeNull(field) ? "{}" : union("{}", "null");
}

function mayBeNull(field: FieldAt): boolean {
  return field.kind === "any" || ("schema" in field && field.schema?.["nullable"] === true);
}

function literalOf(value: string | number | boolean): string {
  return typeof value === "string" ? printText(value) : String(value);
}

// What is known of a nested field replaces what is known of the object around it: that the object is present follows from it.
function add(fields: ProvenFields, [name = "", ...rest]: readonly string[], type: TypeNode): void {
  const known = fields.get(name);
  if (rest.length === 0) {
    if (known === undefined) fields.set(name, type);
    return;
  }
  const inner: ProvenFields = known instanceof Map ? known : new Map();
  fields.set(name, inner);
  add(inner, rest, type);
}

function typeOf(fields: ProvenFields): TypeNode {
  const members = [...fields]
    .sort(([left], [right]) => (left < right ? -1 : 1))
    .map(([name, type]) => [`readonly ${propertyNameOf(name)}`, type instanceof Map ? typeOf(type) : type] as const);
  return objectOf(Object.fromEntries(members));
}
