import {
  type BuiltinModel,
  type ConditionModel,
  type ConditionName,
  type ControllerModel,
  type DependentModel,
  type FilterName,
  type FiltersModel,
  type ResourceModel,
  isKubernetes,
  ownOperationsOf,
} from "../../model/project-model.js";
import type { ProvenField } from "../../model/expression.js";
import { FILTER_ARGUMENTS } from "../../model/resolved-project.js";
import { type FieldAt, fieldAt, mayBeAbsent } from "../../model/schema.js";
import {
  CLASS_PLACE,
  type ControllerNames,
  dependentNamesOf,
  filterNamesOf,
  resourceDoc,
  sourceNamesOf,
} from "../names.js";
import {
  type Doc,
  type ImportSymbol,
  type TypeNode,
  callDoc,
  expressionField,
  fieldsOf,
  fixedDoc,
  intersection,
  join,
  layOut,
  objectDoc,
  objectOf,
  printText,
  propertyNameOf,
  symbolDoc,
  textField,
  union,
  valueDoc,
  valueFrom,
} from "../print.js";
import { builtinConditions, declarationValues } from "../runtime-symbols.js";
import { dependentTypesOf } from "./dependent-types.js";

const CONDITIONS = [
  "activationCondition",
  "reconcilePrecondition",
  "existing",
  "readyPostcondition",
  "deletePostcondition",
] as const satisfies readonly ConditionName[];

/** Returns the conditions of a dependent in the order of their evaluation. */
export function conditionsOf({ conditions }: DependentModel): (readonly [ConditionName, ConditionModel])[] {
  return CONDITIONS.flatMap((name) => {
    const condition = conditions[name];
    return condition === undefined ? [] : [[name, condition] as const];
  });
}

/** Names of the types of a condition. */
export interface ConditionTypeNames {
  /** Type of the function. */
  readonly condition: string;
  /** Type of the arguments, which expressions use. */
  readonly arguments: string;
}

/**
 * Returns the names of the types of a condition.
 *
 * A deletePostcondition has fewer guarantees than other conditions, because dependencies may already be deleted during cleanup. It has separate types
 * if the dependent also has other typed conditions.
 */
export function conditionTypesOf(dependent: DependentModel, name: ConditionName): ConditionTypeNames {
  const types = dependentNamesOf(dependent);
  if (name === "existing") return { condition: types.existing, arguments: types.existingArguments };
  return name === "deletePostcondition" && hasOwnDeletionTypes(dependent)
    ? { condition: types.deletionCondition, arguments: types.deletionArguments }
    : { condition: types.condition, arguments: types.conditionArguments };
}

/** Returns whether the deletePostcondition of a dependent has separate types. */
export function hasOwnDeletionTypes(dependent: DependentModel): boolean {
  return waitsInCleanup(dependent) && othersOf(dependent).some(isTyped);
}

/** Returns whether the condition types of a dependent are only used by its deletePostcondition, which does not guarantee the dependencies. */
export function isAboutDeletionAlone(dependent: DependentModel): boolean {
  return waitsInCleanup(dependent) && !othersOf(dependent).some(isTyped);
}

function waitsInCleanup({ waitsFor, conditions: { deletePostcondition } }: DependentModel): boolean {
  return waitsFor.length > 0 && deletePostcondition !== undefined && isTyped(deletePostcondition);
}

function othersOf({ conditions: { existing: _existing, deletePostcondition: _deleted, ...others } }: DependentModel) {
  return Object.values(others);
}

function isTyped(condition: ConditionModel): boolean {
  return condition.kind === "function" || (condition.kind === "when" && condition.names.length > 0);
}

// Narrows the type of the primary in `desired` by the conditions that are met whenever it is called.

/** Returns the type of the primary in the `desired` of a dependent; undefined if the conditions prove nothing about it. */
export function guardedPrimaryOf(
  dependent: DependentModel,
  controller: ControllerModel,
  primary: string,
): TypeNode | undefined {
  const fields = fieldsProvenFor(dependent, controller);
  return fields.size === 0 ? undefined : intersection(primary, typeOfProven(fields));
}

/** Returns whether conditions narrow the type of the primary in the `desired` of a dependent. */
export function isGuarded(dependent: DependentModel, controller: ControllerModel): boolean {
  return fieldsProvenFor(dependent, controller).size > 0;
}

/** Proven properties of fields by name: a type, or the properties of nested fields. */
type ProvenFields = Map<string, TypeNode | ProvenFields>;

function fieldsProvenFor(dependent: DependentModel, { primary, dependents }: ControllerModel): ProvenFields {
  const fields: ProvenFields = new Map();
  if (isCalledUnconditionally(dependent)) return fields;
  const before = dependents.filter(({ name }) => dependent.waitsFor.includes(name));
  const proofs = [...before, dependent].flatMap(({ conditions }) => [
    ...provenBy(conditions.activationCondition),
    ...provenBy(conditions.reconcilePrecondition),
  ]);
  for (const { path, type } of typesOf(proofs, primary)) addProven(fields, path, type);
  return fields;
}

// During cleanup, and for an object that another client creates, `desired` is called for the object's name regardless of the conditions.
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

/** Returns the types that proofs add to those of the schema. */
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

/** Truncates a proof to a field that the schema declares: the map or list instead of one of its items. */
function withinSchema(proof: ProvenField, primary: ResourceModel): ProvenField {
  const { path, equals, without = [] } = proof;
  const depth = depthOf(path, primary);
  if (depth === path.length) return proof;
  const isThere = equals !== undefined || without.some((each) => each !== "null");
  return { path: path.slice(0, depth), without: isThere ? ["undefined", "null"] : [] };
}

function depthOf(path: readonly string[], primary: ResourceModel): number {
  // The runtime declares the types of the metadata, and the compiler has checked the field.
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

// A proof about a nested field implies that the enclosing object is present, so it replaces that proof.
function addProven(fields: ProvenFields, [name = "", ...rest]: readonly string[], type: TypeNode): void {
  const known = fields.get(name);
  if (rest.length === 0) {
    if (known === undefined) fields.set(name, type);
    return;
  }
  const inner: ProvenFields = known instanceof Map ? known : new Map();
  fields.set(name, inner);
  addProven(inner, rest, type);
}

function typeOfProven(fields: ProvenFields): TypeNode {
  const members = [...fields]
    .sort(([left], [right]) => (left < right ? -1 : 1))
    .map(
      ([name, type]) => [`readonly ${propertyNameOf(name)}`, type instanceof Map ? typeOfProven(type) : type] as const,
    );
  return objectOf(Object.fromEntries(members));
}

/** Prints a condition of the runtime, for example `ready`, `conditionIs({ type: "Ready" })`, or `not(crdPresent(Route))`. */
export function builtinDoc(condition: BuiltinModel, names: ControllerNames): Doc {
  const { isNegated, of, name, arguments: args } = condition;
  const factory = symbolDoc(declarationValues[builtinConditions[name]]);
  const own =
    of !== undefined
      ? callDoc(factory, [fixedDoc(resourceDoc(of, names, ASKED_PLACE))])
      : args === undefined
        ? factory
        : call(factory, args);
  return isNegated === true ? callDoc(symbolDoc(declarationValues.not), [fixedDoc(own)]) : own;
}

/** Order of the imports of kinds that only conditions use. */
const ASKED_PLACE = CLASS_PLACE + 2;

function call(factory: Doc, args: readonly unknown[]): Doc {
  const last = args.at(-1);
  const isObject = typeof last === "object" && last !== null && !Array.isArray(last);
  const texts = (isObject ? args.slice(0, -1) : args).map((each) => layOut(valueDoc(each)));
  return callDoc(factory, texts, isObject ? fieldsOf({ ...last }) : undefined);
}

/** A watched resource with filters: the primary, a dependent, or an event source. */
interface FilteredModel {
  /** Path in the spec, for example `controller` for the primary or `eventSources.pods`. */
  readonly path: string;
  readonly filters: FiltersModel;
  /** Type of the objects that the filters receive. */
  readonly objectType: string;
  /** Names of the types of the filters. */
  readonly types: { readonly [K in FilterName]: string };
}

/** Returns all filtered resources, in the order of the spec. */
export function filteredOf(controller: ControllerModel, names: ControllerNames): FilteredModel[] {
  const { dependents, eventSources } = controller;
  const all: FilteredModel[] = [
    {
      path: "controller",
      filters: controller.filters,
      objectType: names.primary,
      types: filterNamesOf(names.primary),
    },
    ...dependents.filter(isKubernetes).map((dependent) => ({
      path: `dependents.${dependent.name}`,
      filters: dependent.filters,
      objectType: dependentTypesOf(dependent, names).live,
      types: filterNamesOf(dependent.name),
    })),
    ...eventSources.flatMap((source) =>
      source.kind === "informer"
        ? {
            path: `eventSources.${source.name}`,
            filters: source.filters,
            objectType: sourceNamesOf(source).resource,
            types: filterNamesOf(source.name),
          }
        : [],
    ),
  ];
  return all.filter(({ filters }) => Object.keys(filters).length > 0);
}

/** Prints filters as an object of functions; undefined if there are none. */
export function filtersDoc(
  filters: FiltersModel,
  objectType: ImportSymbol,
  { folder }: ControllerNames,
): Doc | undefined {
  const module = valueFrom(`../../${folder}/filters.js`, "*", "filters", FILTERS_PLACE);
  const printed = Object.entries(filters).map(([key, filter]) => {
    const name = key as FilterName;
    if (filter.kind === "function") return textField(name, [symbolDoc(module), `.${filter.name}`]);
    return expressionField(name, parametersOfFilter(name, filter.names, symbolDoc(objectType)), filter.expression);
  });
  return printed.length === 0 ? undefined : objectDoc(printed);
}

const FILTERS_PLACE = -50;

/** Prints the parameters of a filter up to the last one in `used`, which lists those that its expression uses. */
export function parametersOfFilter(name: FilterName, used: readonly string[], objectType: Doc): Doc {
  const names = FILTER_ARGUMENTS[name];
  const last = Math.max(-1, ...used.map((each) => names.findIndex((known) => known === each)));
  const parameters = names.slice(0, last + 1).map((each) => {
    const type = each === "isFinalStateUnknown" ? "boolean" : objectType;
    return [`${used.includes(each) ? each : `_${each}`}: `, type];
  });
  return ["(", join(", ", parameters), ")"];
}
