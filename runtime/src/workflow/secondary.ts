import type { KubernetesObject } from "../base/kubernetes-object.js";
import type { SecondarySources } from "../sources/secondary-sources.js";
import type { DependentDefinition } from "./definition/workflow-definition.js";
import type { Target } from "./target.js";

/** A dependent as it is looked for: a `wanted` object says which of several is meant. */
export type SeenDependent = Readonly<Pick<Target, "definition" | "driver" | "wanted">>;

/** What functions of the user can see besides a primary. */
export interface SecondaryFacts {
  readonly primary: KubernetesObject;
  readonly dependents: readonly SeenDependent[];
  /** The event sources of the user, whose resources stand beside the dependents. */
  readonly sources?: SecondarySources | undefined;
}

/** Returns the live dependents and lists of what event sources know, by name, read when they are asked for; nothing of `hidden` dependents. */
export function createSecondary(
  { primary, dependents, sources }: SecondaryFacts,
  hidden: readonly DependentDefinition[] = [],
): object {
  const secondary = {};
  const add = (name: string, get: () => unknown) => Object.defineProperty(secondary, name, { enumerable: true, get });
  for (const dependent of dependents) {
    const { definition, driver } = dependent;
    const isHidden = hidden.includes(definition);
    const single = () => (isHidden ? undefined : driver.find({ primary }, dependent.wanted)?.object);
    const live = () => (isHidden ? [] : [...driver.findItems({ primary })]);
    const items = () => Object.freeze(Object.fromEntries(live().map(([key, { object }]) => [key, object])));
    add(definition.name, definition.bulk === undefined ? single : items);
  }
  for (const name of sources?.names() ?? [])
    if (!Object.hasOwn(secondary, name)) add(name, () => sources?.get(name)?.secondariesOf(primary) ?? []);
  return secondary;
}
