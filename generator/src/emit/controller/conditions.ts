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

/** Returns the conditions of a dependent in the order of a reconcile. */
export function conditionsOf({ conditions }: DependentModel): (readonly [ConditionName, ConditionModel])[] {
  return CONDITIONS.flatMap((name) => {
    const condition = conditions[name];
    return condition === undefined ? [] : [[name, condition] as const];
  });
}

/** What the types of a condition are called. */
export interface ConditionTypeNames {
  /** The type of a function. */
  readonly condition: string;
  /** The type of its arguments, which expressions see. */
  readonly arguments: string;
}

/**
 * Names the types of a condition of a dependent.
 *
 * A deletePostcondition sees less than the others: what the dependent waits for may be gone in a cleanup. It has types of its own if others
 * have to be told from it.
 */
export function conditionTypesOf(dependent: DependentModel, name: ConditionName): ConditionTypeNames {
  const types = dependentNamesOf(dependent);
  if (name === "existing") return { condition: types.existing, arguments: types.existingArguments };
  return name === "deletePostcondition" && hasOwnDeletionTypes(dependent)
    ? { condition: types.deletionCondition, arguments: types.deletionArguments }
    : { condition: types.condition, arguments: types.conditionArguments };
}

/** Tells whether the deletePostcondition of a dependent has types of its own. */
export function hasOwnDeletionTypes(dependent: DependentModel): boolean {
  return waitsInCleanup(dependent) && othersOf(dependent).some(isTyped);
}

/** Tells whether the types of the conditions of a dependent are about its deletePostcondition alone, which may see less than all it waits for. */
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

// What the conditions of a dependent guarantee of the primary whenever its `desired` is called.

/** Returns the type of the primary in the `desired` of a dependent; undefined if it is that of any primary. */
export function guardedPrimaryOf(
  dependent: DependentModel,
  controller: ControllerModel,
  primary: string,
): TypeNode | undefined {
  const fields = fieldsProvenFor(dependent, controller);
  return fields.size === 0 ? undefined : intersection(primary, typeOfProven(fields));
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
  for (const { path, type } of typesOf(proofs, primary)) addProven(fields, path, type);
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

/** Prints a condition that the runtime ships: `ready`, `conditionIs({ type: "Ready" })`, `not(crdPresent(Route))`. */
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

/** Where the imports of kinds stand that conditions alone name. */
const ASKED_PLACE = CLASS_PLACE + 2;

function call(factory: Doc, args: readonly unknown[]): Doc {
  const last = args.at(-1);
  const isObject = typeof last === "object" && last !== null && !Array.isArray(last);
  const texts = (isObject ? args.slice(0, -1) : args).map((each) => layOut(valueDoc(each)));
  return callDoc(factory, texts, isObject ? fieldsOf({ ...last }) : undefined);
}

/** Something whose changes are filtered: the primary, a dependent or an event source. */
interface FilteredModel {
  /** `primary`, or the list of the spec that it is in with its name: `eventSources.pods`. */
  readonly path: string;
  readonly filters: FiltersModel;
  /** The type of the objects that the filters see. */
  readonly objectType: string;
  /** The names of the types of the filters. */
  readonly types: { readonly [K in FilterName]: string };
}

/** Returns all that has filters, in the order of the spec. */
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

/** Prints the parameters of a filter whose expression uses `used`: no more than it needs. */
export function parametersOfFilter(name: FilterName, used: readonly string[], objectType: Doc): Doc {
  const names = FILTER_ARGUMENTS[name];
  const last = Math.max(-1, ...used.map((each) => names.findIndex((known) => known === each)));
  const parameters = names.slice(0, last + 1).map((each) => {
    const type = each === "isFinalStateUnknown" ? "boolean" : objectType;
    return [`${used.includes(each) ? each : `_${each}`}: `, type];
  });
  return ["(", join(", ", parameters), ")"];
}
