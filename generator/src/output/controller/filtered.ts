import {
  isKubernetes,
  type ControllerModel,
  type FilterName,
  type FiltersModel,
  type FunctionModel,
} from "../../model/project-model.js";
import { FILTER_ARGUMENTS } from "../../model/build/resolved-project.js";
import { filterNamesOf, sourceNamesOf, type ControllerNames } from "../controller-names.js";
import { dependentTypesOf } from "./dependent-types.js";
import { expressionField, objectDoc, textField } from "../print/code.js";
import type { Doc } from "../print/layout.js";

/** Something whose changes are filtered: the primary, a dependent or an event source. */
export interface FilteredModel {
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
export function filtersDoc(filters: FiltersModel, objectType: string): Doc | undefined {
  const printed = Object.entries(filters).map(([key, filter]) => {
    const name = key as FilterName;
    if (filter.kind === "function") return textField(name, `filters.${filter.name}`);
    return expressionField(name, parametersOfFilter(name, filter.names, objectType), filter.expression);
  });
  return printed.length === 0 ? undefined : objectDoc(printed);
}

/** Renders the parameters of a filter whose expression uses `used`: no more than it needs. */
export function parametersOfFilter(name: FilterName, used: readonly string[], objectType: string): string {
  const names = FILTER_ARGUMENTS[name];
  const last = Math.max(-1, ...used.map((each) => names.findIndex((known) => known === each)));
  const parameters = names.slice(0, last + 1).map((each) => {
    const type = each === "isFinalStateUnknown" ? "boolean" : objectType;
    return `${used.includes(each) ? each : `_${each}`}: ${type}`;
  });
  return `(${parameters.join(", ")})`;
}

/** Tells whether any of the filters is a function of the user's. */
export function hasFunctions(filters: FiltersModel): boolean {
  return Object.values(filters).some(isFunction);
}

function isFunction(filter: FiltersModel[FilterName]): filter is FunctionModel {
  return filter?.kind === "function";
}
