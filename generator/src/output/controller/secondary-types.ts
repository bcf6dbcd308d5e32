import { isKubernetes, type ControllerModel, type DependentModel } from "../../model/project-model.js";
import { dependentNamesOf, type ControllerNames } from "../controller-names.js";
import { printAlias, printInterface } from "../print/declarations.js";
import { intersection, union, type MemberNode } from "../print/type-node.js";
import { alwaysThere, dependentTypesOf } from "./dependent-types.js";

/** Returns the types of what is there besides the primary: the items of bulk dependents, and all that a reconciler sees. */
export function dependentsTypesOf(controller: ControllerModel, names: ControllerNames): string[] {
  const { dependents, eventSources } = controller;
  const [bulk, single] = [dependents.filter(isBulk), dependents.filter((dependent) => !isBulk(dependent))];
  const sourcesDoc = eventSources.length > 0 ? ", and what the event sources know of it" : "";
  const all = printInterface({
    name: names.dependents,
    doc: `/** The live dependents of one ${names.primary}${sourcesDoc}. */`,
    extends: alwaysThere(controller, names),
    members: single.map((dependent) => memberOf(dependent, names, false)),
  });
  if (bulk.length === 0) return [all];
  const items = printInterface({
    name: names.items,
    doc: `/** The items of the bulk dependents of one ${names.primary}, by their keys. */`,
    extends: [],
    // There may be no items, which is a record without fields.
    members: bulk.map((dependent) => memberOf(dependent, names, true)),
  });
  return [items, all];
}

/**
 * Returns what a dependent waits for as a type, and the type of `secondary` as it sees it.
 *
 * The first type extends those of the dependents that it waits for, so that the types of a controller grow with the edges of its graph.
 */
export function secondaryTypesOf(dependent: DependentModel, controller: ControllerModel, names: ControllerNames) {
  const { needs, secondary } = dependentNamesOf(dependent);
  const parents = parentsOf(dependent, controller);
  const known = new Set(parents.flatMap(({ waitsFor }) => waitsFor));
  const added = single(dependent.waitsFor, controller).filter(({ name }) => !known.has(name));
  const inherited = parents.map((parent) => dependentNamesOf(parent));
  const [only] = inherited;
  if (added.length === 0 && inherited.length <= 1)
    return { declarations: [], alias: printAlias(secondary, only?.secondary ?? names.dependents) };
  const declaration = printInterface({
    name: needs,
    doc: `/** What "${dependent.name}" waits for: all of it is there. */`,
    extends: inherited.map((parent) => parent.needs),
    members: added.map((other) => memberOf(other, names, true)),
  });
  return { declarations: [declaration], alias: printAlias(secondary, intersection(names.dependents, needs)) };
}

/** Returns those of the dependents that one depends on of which each waits for something that the others do not. */
function parentsOf({ dependsOn }: DependentModel, controller: ControllerModel): DependentModel[] {
  const candidates = controller.dependents.filter(
    ({ name, waitsFor }) => dependsOn.includes(name) && single(waitsFor, controller).length > 0,
  );
  const parents: DependentModel[] = [];
  for (const candidate of [...candidates].sort((left, right) => right.waitsFor.length - left.waitsFor.length)) {
    const known = new Set(parents.flatMap(({ waitsFor }) => waitsFor));
    if (!single(candidate.waitsFor, controller).every(({ name }) => known.has(name))) parents.push(candidate);
  }
  return parents;
}

function single(named: readonly string[], { dependents }: ControllerModel): DependentModel[] {
  // An object that is created once may be gone while others depend on it.
  return dependents.filter(
    (dependent) => named.includes(dependent.name) && !isBulk(dependent) && !isCreatedOnce(dependent),
  );
}

function isBulk({ bulk }: DependentModel): boolean {
  return bulk !== undefined;
}

function isCreatedOnce(dependent: DependentModel): boolean {
  return isKubernetes(dependent) && dependent.mode === "once";
}

function memberOf(dependent: DependentModel, names: ControllerNames, isPresent: boolean): MemberNode {
  const { secondary } = dependentTypesOf(dependent, names);
  const { name } = dependent;
  return isPresent
    ? { head: `readonly ${name}`, type: secondary }
    : { head: `readonly ${name}?`, type: union(secondary, "undefined") };
}
