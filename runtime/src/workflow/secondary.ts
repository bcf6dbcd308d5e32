import type { KubernetesObject } from "../base/kubernetes-object.js";
import type { SecondarySources } from "../sources/secondary-sources.js";
import type { DependentDriver, Wanted } from "./dependents/driver.js";
import type { DependentDefinition } from "./definition/workflow-definition.js";

/** What can be seen of the dependents of a primary. */
export interface SecondaryFacts {
  readonly primary: KubernetesObject;
  /** Each dependent with its driver; what a run knows of the wanted object says which of several is meant. */
  readonly dependents: readonly SeenDependent[];
  /** The event sources of the user, whose resources stand beside the dependents. */
  readonly sources?: SecondarySources | undefined;
}

/** A dependent as it is looked for. */
export interface SeenDependent {
  readonly definition: DependentDefinition;
  readonly driver: DependentDriver;
  readonly wanted?: Wanted;
}

/**
 * Returns the live dependents by name, of a bulk dependent its items by their keys, and lists of what each event source of the user has;
 * read when they are asked for.
 */
export function createSecondary({ primary, dependents, sources }: SecondaryFacts): object {
  const secondary = {};
  for (const dependent of dependents) {
    const { definition, driver } = dependent;
    const get =
      definition.bulk === undefined
        ? () => driver.find({ primary }, dependent.wanted)?.object
        : () => itemsOf(driver, primary);
    Object.defineProperty(secondary, definition.name, { enumerable: true, get });
  }
  for (const name of sources?.names() ?? []) {
    if (Object.hasOwn(secondary, name)) continue;
    const get = () => sources?.get(name)?.secondariesOf(primary) ?? [];
    Object.defineProperty(secondary, name, { enumerable: true, get });
  }
  return secondary;
}

/** Returns what can be seen without some dependents; a bulk dependent then has no items. */
export function withoutMembers(secondary: object, hidden: readonly DependentDefinition[]): object {
  const none = hidden.map(({ name, bulk }) => [name, { enumerable: true, value: bulk && Object.freeze({}) }] as const);
  return Object.defineProperties(
    {},
    { ...Object.getOwnPropertyDescriptors(secondary), ...(Object.fromEntries(none) as PropertyDescriptorMap) },
  );
}

function itemsOf(driver: DependentDriver, primary: KubernetesObject): object {
  const items = [...driver.findItems({ primary })].map(([key, { object }]) => [key, object] as const);
  return Object.freeze(Object.fromEntries(items));
}
