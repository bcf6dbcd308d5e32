import { keyFrom, type KubernetesObject, type ObjectKey, type ResourceReader } from "../base/kubernetes-object.js";
import type { Logger } from "../base/logger.js";
import type { ReconcileReason } from "../base/reconcile-reason.js";
import type { SecondaryType } from "../base/resource-definition.js";
import type { ResourceView } from "../cache/resource-view.js";
import type { ApiClient, Defined } from "../client/api-client.js";
import type { ReconcileScope } from "../schedule/reconcile-scope.js";
import type { SecondarySources } from "../sources/secondary-sources.js";
import type {
  Context,
  EventSources,
  Expectations,
  SecondariesOptions,
  SecondaryOptions,
} from "../workflow/definition/context.js";
import type { WorkflowDefinition } from "../workflow/definition/workflow-definition.js";
import type { WorkflowInvocation } from "../workflow/workflow-result.js";
import { dependentsOf, type ControllerDefinition } from "./controller-definition.js";
import { expectationsOf, type ExpectationRegistry } from "./expectations.js";
import { SecondaryAccess } from "./secondary-access.js";
import type { ResourceOperations } from "../write/resource-operations.js";
import type { WorkflowRuns } from "./workflow-runs.js";

/** What the contexts of a controller are made of. */
export interface ContextDependencies {
  readonly client: ApiClient;
  readonly primaries: ResourceView;
  readonly secondaries: SecondarySources;
  readonly resources: ResourceOperations;
  readonly expectations: ExpectationRegistry;
}

/** What the contexts of all reconciles of one controller share. */
export interface SharedContext extends Omit<ContextDependencies, "client" | "primaries" | "secondaries"> {
  readonly primaries: ResourceReader<KubernetesObject>;
  readonly secondaries: SecondaryAccess;
  readonly eventSources: EventSources;
}

/** Creates what the contexts of a controller share. */
export function createSharedContext(
  definition: ControllerDefinition,
  dependencies: ContextDependencies,
): SharedContext {
  const { primaries, secondaries, resources, expectations } = dependencies;
  const { primary } = definition.workflow;
  return {
    ...{ resources, expectations },
    primaries: readerOf(primaries, Object.keys(definition.indexes ?? {})),
    secondaries: new SecondaryAccess(secondaries, { primary, dependents: dependentsOf(definition) }),
    eventSources: Object.freeze({
      get: (name) => secondaries.get(name),
      register: (source) => secondaries.register(source),
      deregister: (name) => secondaries.deregister(name),
    } satisfies EventSources),
  };
}

/** What the context of one reconcile is made of. */
export interface ContextOptions {
  readonly scope: ReconcileScope;
  readonly primary: KubernetesObject;
  readonly runs: WorkflowRuns;
  createClient(): ApiClient;
}

/** The context of one reconcile. Everything that not every reconcile needs is made when it is asked for. */
export class ReconcileContext implements Context {
  readonly #shared: SharedContext;
  readonly #scope: ReconcileScope;
  readonly #primary: KubernetesObject;
  readonly #runs: WorkflowRuns;
  readonly #createClient: () => ApiClient;
  #attributes: Map<unknown, unknown> | undefined;
  #client: ApiClient | undefined;

  constructor(shared: SharedContext, { scope, primary, runs, createClient }: ContextOptions) {
    this.#shared = shared;
    this.#scope = scope;
    this.#primary = primary;
    this.#runs = runs;
    this.#createClient = createClient;
  }

  get signal(): AbortSignal {
    return this.#scope.signal;
  }

  get client(): ApiClient {
    return (this.#client ??= this.#createClient());
  }

  get logger(): Logger {
    return this.#scope.logger;
  }

  get retry(): Context["retry"] {
    return this.#scope.retry;
  }

  get reasons(): readonly ReconcileReason[] {
    return this.#scope.reasons;
  }

  get isPrimaryDeleted(): boolean {
    return this.#scope.isPrimaryDeleted;
  }

  get isPrimaryFinalStateUnknown(): boolean {
    return this.#scope.isFinalStateUnknown;
  }

  get primaries(): ResourceReader<KubernetesObject> {
    return this.#shared.primaries;
  }

  get eventSources(): EventSources {
    return this.#shared.eventSources;
  }

  get workflow(): WorkflowInvocation {
    return this.#runs.own;
  }

  get workflows(): Context["workflows"] {
    return { get: (workflow: string | WorkflowDefinition) => this.#runs.other(workflow) };
  }

  get attributes(): Map<unknown, unknown> {
    return (this.#attributes ??= new Map());
  }

  get resources(): ResourceOperations {
    const { signal, logger } = this.#scope;
    return this.#shared.resources.within({ signal, logger, primary: this.#primary });
  }

  get expectations(): Expectations<KubernetesObject> {
    return expectationsOf(this.#shared.expectations, this.#scope.key, { primary: this.#primary, context: this });
  }

  // Functions are made when they are asked for, so that they can be taken out of the context.
  get isNextReconcileImminent(): Context["isNextReconcileImminent"] {
    return () => this.#scope.isNextReconcileImminent();
  }

  get secondary(): Context["secondary"] {
    const find = (type: Defined<KubernetesObject> | string, options?: SecondaryOptions) =>
      this.#shared.secondaries.find(this.#primary, typeOf(type), options);
    return find as Context["secondary"];
  }

  get secondaries(): Context["secondaries"] {
    const list = (type: Defined<KubernetesObject> | string, options?: SecondariesOptions) =>
      this.#shared.secondaries.list(this.#primary, typeOf(type), options);
    return list as Context["secondaries"];
  }
}

function readerOf(cache: ResourceView, indexes: readonly string[]): ResourceReader<KubernetesObject> {
  const read = (keys: Iterable<ObjectKey>) => [...keys].flatMap((key) => cache.get(key)?.object ?? []);
  return {
    get: (ref) => cache.get(keyFrom(ref))?.object,
    list({ namespace } = {}) {
      const all = read(cache.keys());
      return namespace === undefined ? all : all.filter(({ metadata }) => metadata.namespace === namespace);
    },
    byIndex(index, value) {
      if (!indexes.includes(index))
        throw new Error(
          `the controller has no index "${index}" of its primaries; state it under indexes in its definition`,
        );
      return read(cache.keysByIndex(index, value));
    },
  };
}

function typeOf(type: Defined<KubernetesObject> | string): SecondaryType {
  return typeof type === "string" ? type : type.definition;
}
