import type { ObjectKey } from "../base/kubernetes-object.js";
import type { EventSourceContext } from "../cluster/event-source.js";
import type { ResourceDefinition } from "../base/resource-definition.js";
import type { ResourceView } from "../cluster/resource-view.js";
import { ViewSource, type ViewSourceOptions } from "./view-source.js";

/** What a controller wants to know of one of its dependents. */
export interface DependentWatch extends Pick<ViewSourceOptions, "mapper" | "filters"> {
  readonly name: string;
  readonly resource: ResourceDefinition;
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** Whether the watch starts only when it is activated. */
  readonly isActivatedLater: boolean;
}

/** Watches one dependent, or several that look at the same objects. */
export interface DependentSource {
  readonly cache: ResourceView;
  /** Starts watching for a primary; resolves when the state is known, and throws if that fails now. */
  activate(primary: ObjectKey): Promise<void>;
  /** Stops watching for a primary; with the last one the state is forgotten. */
  deactivate(primary: ObjectKey): Promise<void>;
}

/** Dependents that look at the same objects, and the event source that watches those. */
export interface DependentGroup {
  /** Has the name of the first member. */
  readonly source: ViewSource;
  readonly members: readonly DependentWatch[];
}

/** Creates the event sources of dependents: those that differ in nothing share one. */
export function groupDependents(dependents: readonly DependentWatch[]): DependentGroup[] {
  const groups = new Map<string, { source: ViewSource; members: DependentWatch[] }>();
  for (const dependent of dependents) {
    const { name, resource, namespace, labelSelector, fieldSelector, isActivatedLater, mapper, filters } = dependent;
    const isShared = mapper === undefined && filters === undefined;
    const scope = [resource.apiVersion, resource.kind, namespace, labelSelector, fieldSelector, isActivatedLater];
    const key = JSON.stringify(isShared ? scope : [...scope, name]);
    const group = groups.get(key);
    if (group !== undefined) {
      group.members.push(dependent);
      continue;
    }
    const request = { definition: resource, labelSelector, fieldSelector };
    const namespaces = namespace === undefined ? ("sameAsController" as const) : [namespace];
    const source = new ViewSource({ name, request, namespaces, mapper, filters });
    groups.set(key, { source, members: [dependent] });
  }
  return [...groups.values()];
}

/** Returns how each dependent is activated, in their order; a watch runs as long as one primary needs it for one of its dependents. */
export function createDependentSources(
  dependents: readonly DependentWatch[],
  groups: readonly DependentGroup[],
  contextOf: (source: ViewSource) => EventSourceContext,
): DependentSource[] {
  const byName = new Map(
    groups.flatMap(({ source, members }) => {
      const activation = new Activation(source, () => contextOf(source));
      return members.map(({ name }) => [name, activation] as const);
    }),
  );
  return dependents.map(({ name }) => {
    const activation = byName.get(name)!;
    return {
      cache: activation.source.view,
      activate: (primary) => activation.activate(name, primary),
      deactivate: (primary) => activation.deactivate(name, primary),
    };
  });
}

/** The watch of a group, as its members need it. */
class Activation {
  readonly source: ViewSource;
  readonly #contextOf: () => EventSourceContext;
  readonly #users = new Set<string>();
  readonly #refused = new Set<ObjectKey>();

  constructor(source: ViewSource, contextOf: () => EventSourceContext) {
    this.source = source;
    this.#contextOf = contextOf;
  }

  async activate(dependent: string, primary: ObjectKey): Promise<void> {
    this.#users.add(`${dependent} ${primary}`);
    const context = this.#contextOf();
    try {
      await this.source.startOrThrow(context);
    } catch (error) {
      // Whoever was refused is told when the state is known after all.
      if (this.#refused.size === 0) void this.source.start(context).then(() => this.#tellRefused(context));
      this.#refused.add(primary);
      throw error;
    }
  }

  async deactivate(dependent: string, primary: ObjectKey): Promise<void> {
    this.#users.delete(`${dependent} ${primary}`);
    this.#refused.delete(primary);
    if (this.#users.size === 0) await this.source.stop();
  }

  #tellRefused(context: EventSourceContext): void {
    const refused = [...this.#refused];
    this.#refused.clear();
    context.notify(refused);
  }
}
