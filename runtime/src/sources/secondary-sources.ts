import type { SecondaryType } from "../base/resource-definition.js";
import type { KubernetesObject } from "../base/kubernetes-object.js";
import type { EventSource } from "./event-source.js";

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
