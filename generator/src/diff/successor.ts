import { isKubernetes, type ControllerModel, type DependentModel } from "../model/project-model.js";
import { kindOf } from "./compare-facts.js";

/** Where a successor is looked for. */
export interface SuccessorOptions {
  readonly before: ControllerModel;
  readonly after: ControllerModel;
  readonly added: readonly DependentModel[];
}

/**
 * Returns the dependent that a removed one probably became: of the same kind and place. Of several, the one whose edges and conditions are
 * the most alike; none if that does not decide.
 */
export function successorOf(dependent: DependentModel, { before, after, added }: SuccessorOptions): string | undefined {
  const scored = added
    .filter((each) => isSamePlace(dependent, each))
    .map((each) => ({ name: each.name, score: likeness([dependent, before], [each, after]) }))
    .sort((one, other) => other.score - one.score);
  const [first, second] = scored;
  return first === undefined || first.score === second?.score ? undefined : first.name;
}

function isSamePlace(one: DependentModel, other: DependentModel): boolean {
  if (!isKubernetes(one) || !isKubernetes(other)) return false;
  return (
    kindOf(one.resource) === kindOf(other.resource) &&
    one.cluster === other.cluster &&
    one.namespace === other.namespace
  );
}

type Placed = readonly [dependent: DependentModel, controller: ControllerModel];

function likeness(one: Placed, other: Placed): number {
  const [first, second] = [one, other].map(neighboursOf);
  const shared = [...(first ?? [])].filter((each) => second?.has(each) === true).length;
  const conditions =
    JSON.stringify(Object.keys(one[0].conditions)) === JSON.stringify(Object.keys(other[0].conditions));
  return shared + (conditions ? 1 : 0);
}

// What it depends on, and what depends on it.
function neighboursOf([{ name, dependsOn }, { dependents }]: Placed): ReadonlySet<string> {
  const followers = dependents.filter((each) =>
    each.dependsOn.some((edge) => (typeof edge === "string" ? edge : edge.name) === name),
  );
  return new Set([
    ...dependsOn.map((edge) => `→${typeof edge === "string" ? edge : edge.name}`),
    ...followers.map((each) => `←${each.name}`),
  ]);
}
