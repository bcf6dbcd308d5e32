import type { KubernetesObject } from "../base/kubernetes-object.js";
import { kindNameOf, type ResourceDefinition } from "../base/resource-definition.js";
import type { EventSource } from "./event-source.js";

/** The type of the resources of an event source: a kind, or the user's own name for what Kubernetes does not have. */
export type SecondaryType = ResourceDefinition | string;

/** The event sources of one controller: those of its dependents, and those of the user. */
export interface SecondarySources {
  /** Returns the sources of a type, in the order in which they were registered; only the one of this name if one is given. */
  find(type: SecondaryType, name?: string): readonly EventSource[];
  /** Returns the source of this name; undefined if there is none. */
  get(name: string): EventSource | undefined;
  /**
   * Adds a source while the controller runs; resolves when its state is known. If there is one of its name already, that one is returned
   * and `source` is not used.
   */
  register(source: EventSource): Promise<EventSource>;
  /** Stops and removes a source; nothing happens if there is none of this name. */
  deregister(name: string): Promise<void>;
  /** Returns the names of all sources, in the order in which they were registered. */
  names(): readonly string[];
  /** Lets every source fetch what it does not know yet of a primary; awaited before each of its reconciles. */
  load(primary: KubernetesObject, signal: AbortSignal): Promise<void>;
}

/** The event sources of a controller that has none. */
export const noSecondarySources: SecondarySources = Object.freeze({
  find: () => [],
  get: () => undefined,
  register: ({ name }: EventSource) =>
    Promise.reject(new Error(`event source "${name}" cannot be registered: this controller has no event sources`)),
  deregister: () => Promise.resolve(),
  names: () => [],
  load: () => Promise.resolve(),
});

/** Returns the name of a type as messages and comparisons use it. */
export function nameOfType(type: SecondaryType | undefined): string | undefined {
  return typeof type === "object" ? kindNameOf(type) : type;
}

/** Tells whether an event source has resources of this type. */
export function hasType({ type }: Pick<EventSource, "type">, wanted: SecondaryType): boolean {
  return type !== undefined && typeof type === typeof wanted && nameOfType(type) === nameOfType(wanted);
}

/** Returns an event source as messages mention it. */
export function describeSource({ type }: Pick<EventSource, "type">): string {
  return type === undefined ? "one without resources" : `one of ${nameOfType(type)}`;
}
