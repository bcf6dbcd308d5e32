import type { ObjectKey } from "../base/kubernetes-object.js";
import type { Logger } from "../base/logger.js";
import type { ResourceDefinition } from "../base/resource-definition.js";
import type { ApiClient } from "../cluster/api-client.js";
import { OWNER_INDEX } from "../cluster/primary-link.js";
import type { ResourceChange } from "../cluster/resource-change.js";
import type { ResourceView } from "../cluster/resource-view.js";
import { Informer } from "./informer.js";
import { createOwnerMapping } from "./owner-mapping.js";

/** What a controller wants to know of one of its dependents. */
export interface DependentWatch {
  readonly resource: ResourceDefinition;
  readonly namespace?: string;
  readonly labelSelector?: string;
  /** Whether the watch starts only when it is activated. */
  readonly isActivatedLater: boolean;
}

/** What a controller watches, and whom it tells. */
export interface ControllerSourcesOptions {
  readonly primary: ResourceDefinition;
  readonly dependents: readonly DependentWatch[];
  readonly namespaces?: readonly string[] | undefined;
  readonly labelSelector?: string | undefined;
  /** Whose managed fields are kept. */
  readonly fieldManagers: Iterable<string>;
  readonly client: ApiClient;
  readonly logger: Logger;
  onPrimaryChange(change: ResourceChange): void;
  onSecondaryChange(primaries: Iterable<ObjectKey>): void;
}

/** Watches one dependent, or several that look at the same objects. */
export interface DependentSource {
  readonly cache: ResourceView;
  /** Starts watching for a primary; resolves when the state is known, and throws if that fails now. */
  activate(primary: ObjectKey): Promise<void>;
  /** Stops watching for a primary; with the last one the state is forgotten. */
  deactivate(primary: ObjectKey): Promise<void>;
}

/** The informers of one controller: one for its primaries, one for each kind of dependent. */
export class ControllerSources {
  readonly primaries: Informer;
  /** In the order of the dependents. */
  readonly dependents: readonly DependentSource[];
  readonly #informers: readonly Informer[];
  readonly #startedFirst: readonly Informer[];

  constructor(options: ControllerSourcesOptions) {
    const { primary, dependents, namespaces, labelSelector, fieldManagers, client, logger } = options;
    const common = { fieldManagers, client, logger };
    this.primaries = new Informer({ ...common, definition: primary, namespaces, labelSelector });
    this.primaries.cache.onChange((change) => options.onPrimaryChange(change));
    const ownersOf = createOwnerMapping(primary);
    const shared = new Map<string, Informer>();
    const informerOf = ({
      resource,
      namespace,
      labelSelector: selector,
      isActivatedLater,
    }: DependentWatch): Informer => {
      const scope = namespace === undefined ? namespaces : [namespace];
      const key = JSON.stringify([resource.apiVersion, resource.kind, scope, selector, isActivatedLater]);
      const known = shared.get(key);
      if (known !== undefined) return known;
      const indexes = { [OWNER_INDEX]: ownersOf };
      const informer = new Informer({
        ...common,
        definition: resource,
        namespaces: scope,
        labelSelector: selector,
        indexes,
      });
      informer.cache.onChange(({ object, old }) => {
        // An object that changed hands concerns the primary before, too.
        options.onSecondaryChange(new Set([...ownersOf(object), ...(old === undefined ? [] : ownersOf(old))]));
      });
      shared.set(key, informer);
      return informer;
    };
    const informers = dependents.map(informerOf);
    const users = new Map(informers.map((informer) => [informer, new Set<string>()]));
    this.dependents = informers.map((informer, index) => {
      const { onSecondaryChange } = options;
      return createActivation(informer, { dependent: index, users: users.get(informer)!, onSecondaryChange });
    });
    this.#informers = [this.primaries, ...new Set(informers)];
    this.#startedFirst = [
      this.primaries,
      ...new Set(informers.filter((_, index) => !dependents[index]!.isActivatedLater)),
    ];
  }

  /** Starts all watches that need no activation; resolves when the whole state is known. */
  async start(): Promise<void> {
    await Promise.all(this.#startedFirst.map((informer) => informer.start()));
  }

  /** Stops all watches. */
  async stop(): Promise<void> {
    await Promise.all(this.#informers.map((informer) => informer.stop()));
  }

  /** The last failure of a watch that has no state yet, for whoever waits for the start. */
  get lastFailure(): { informer: Informer; error: unknown } | undefined {
    for (const informer of this.#startedFirst)
      if (informer.lastFailure !== undefined) return { informer, error: informer.lastFailure };
    return undefined;
  }
}

// A watch that several primaries, or several dependents, decide about: it runs as long as one of them needs it.
function createActivation(
  informer: Informer,
  options: { dependent: number; users: Set<string>; onSecondaryChange: ControllerSourcesOptions["onSecondaryChange"] },
): DependentSource {
  const { dependent, users, onSecondaryChange } = options;
  const waiting = new Set<ObjectKey>();
  return {
    cache: informer.cache,
    async activate(primary) {
      users.add(`${dependent} ${primary}`);
      try {
        await informer.startOrThrow();
      } catch (error) {
        // Whoever was refused is told when the state is known after all.
        if (waiting.size === 0)
          void informer.synced?.then(() => onSecondaryChange([...waiting].filter((key) => waiting.delete(key))));
        waiting.add(primary);
        throw error;
      }
    },
    async deactivate(primary) {
      users.delete(`${dependent} ${primary}`);
      waiting.delete(primary);
      if (users.size > 0) return;
      await informer.stop();
      // It may have been started again meanwhile.
      if (users.size === 0) informer.clear();
    },
  };
}
