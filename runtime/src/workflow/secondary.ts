import type { KubernetesObject } from "../base/kubernetes-object.js";
import type { SecondarySources } from "../sources/secondary-sources.js";
import type { DependentDefinition } from "./definition/workflow-definition.js";
import type { DependentDriver, Wanted } from "./dependents/driver.js";

/** A dependent as it is looked for. */
export interface SeenDependent {
  readonly definition: DependentDefinition;
  readonly driver: DependentDriver;
  /** The wanted object, which says which of several is meant. */
  readonly wanted?: Wanted;
}

/** What functions of the user can see besides a primary. */
export interface SecondaryFacts {
  readonly primary: KubernetesObject;
  readonly dependents: readonly SeenDependent[];
  /** The event sources of the user, whose resources stand beside the dependents. */
  readonly sources?: SecondarySources | undefined;
}

/**
 * Returns the live dependents by name, of a bulk dependent its items by their keys, and lists of what each event source of the user has;
 * read when they are asked for.
 */
export function createSecondary({ primary, dependents, sources }: SecondaryFacts): object {
  const secondary = {};
  const add = (name: string, get: () => unknown) => Object.defineProperty(secondary, name, { enumerable: true, get });
  for (const dependent of dependents) {
    const { definition, driver } = dependent;
    const single = () => driver.find({ primary }, dependent.wanted)?.object;
    const items = () => [...driver.findItems({ primary })].map(([key, { object }]) => [key, object] as const);
    add(definition.name, definition.bulk ? () => Object.freeze(Object.fromEntries(items())) : single);
  }
  for (const name of sources?.names() ?? [])
    if (!Object.hasOwn(secondary, name)) add(name, () => sources?.get(name)?.secondariesOf(primary) ?? []);
  return secondary;
}

/** Returns what can be seen without some dependents; a bulk dependent then has no items. */
export function withoutMembers(secondary: object, hidden: readonly DependentDefinition[]): object {
  const none = hidden.map(({ name, bulk }) => [name, { enumerable: true, value: bulk && Object.freeze({}) }] as const);
  const members = { ...Object.getOwnPropertyDescriptors(secondary), ...Object.fromEntries(none) };
  return Object.defineProperties({}, members as PropertyDescriptorMap);
}
