import {
  keyFrom,
  type KubernetesObject,
  type ObjectKey,
  type ObjectRef,
  type ResourceReader,
} from "../base/kubernetes-object.js";
import type { Logger } from "../base/logger.js";
import type { ReconcileReason } from "../base/reconcile-reason.js";
import type { ApiClient, Defined } from "../client/api-client.js";
import type { ResourceView } from "../cache/resource-view.js";
import type { SecondarySources } from "../sources/secondary-sources.js";
import type {
  Context,
  EventSources,
  Expectations,
  ResourceOperations,
  SecondariesOptions,
  SecondaryOptions,
} from "../workflow/definition/context.js";
import type { WorkflowDefinition } from "../workflow/definition/workflow-definition.js";
import type { WorkflowInvocation } from "../workflow/workflow-result.js";
import { PrimaryExpectations, type ExpectationRegistry } from "./expectations.js";
import type { ReconcileScope } from "../schedule/reconcile-scope.js";
import { SecondaryAccess } from "./secondary-access.js";
import type { WorkflowRuns } from "./workflow-runs.js";
import type { SecondaryType } from "../base/resource-definition.js";

/** What the contexts of all reconciles of one controller share. */
export interface ContextDependencies {
  readonly client: ApiClient;
  readonly primaries: ResourceView;
  readonly secondaries: SecondarySources;
  /** The kind of the primaries, and the dependents of all workflows. */
  readonly workflow: WorkflowDefinition;
  /** The names of the indexes of the primaries. */
  readonly indexes: readonly string[];
  /** What reconciles write with besides their dependents; absent if there is nothing. */
  readonly resources: ResourceOperations | undefined;
  /** What is expected of primaries; absent if nothing can be. */
  readonly expectations?: ExpectationRegistry | undefined;
}

/** Makes the contexts of one controller. */
export class ContextFactory {
  readonly client: ApiClient;
  readonly primaries: ResourceReader<KubernetesObject>;
  readonly secondaries: SecondaryAccess;
  readonly eventSources: EventSources;
  readonly resources: ResourceOperations | undefined;
  readonly expectations: ExpectationRegistry | undefined;

  constructor(dependencies: ContextDependencies) {
    const { client, primaries, secondaries, workflow, indexes, resources, expectations } = dependencies;
    this.client = client;
    this.primaries = new CachedPrimaries(primaries, new Set(indexes));
    this.secondaries = new SecondaryAccess(secondaries, workflow);
    this.eventSources = Object.freeze({
      get: (name) => secondaries.get(name),
      register: (source) => secondaries.register(source),
      deregister: (name) => secondaries.deregister(name),
    } satisfies EventSources);
    this.resources = resources;
    this.expectations = expectations;
  }

  /** Creates the context of one reconcile. */
  create(scope: ReconcileScope, primary: KubernetesObject, runs: WorkflowRuns): Context {
    return new ReconcileContext(this, { scope, primary, runs });
  }
}

/** One for each reconcile: everything that not every reconcile needs is made when it is asked for. */
class ReconcileContext implements Context {
  readonly #factory: ContextFactory;
  readonly #scope: ReconcileScope;
  readonly #primary: KubernetesObject;
  readonly #runs: WorkflowRuns;
  #attributes: Map<unknown, unknown> | undefined;

  constructor(
    factory: ContextFactory,
    { scope, primary, runs }: { scope: ReconcileScope; primary: KubernetesObject; runs: WorkflowRuns },
  ) {
    this.#factory = factory;
    this.#scope = scope;
    this.#primary = primary;
    this.#runs = runs;
  }

  get signal(): AbortSignal {
    return this.#scope.signal;
  }

  get client(): ApiClient {
    return this.#factory.client;
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
    return this.#factory.primaries;
  }

  get eventSources(): EventSources {
    return this.#factory.eventSources;
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
    const { resources } = this.#factory;
    if (resources === undefined) throw new Error("this controller writes nothing but its primary and its dependents");
    const { signal, logger } = this.#scope;
    return resources.within({ signal, logger, primary: this.#primary });
  }

  get expectations(): Expectations<KubernetesObject> {
    const { expectations } = this.#factory;
    if (expectations === undefined)
      throw new Error("this controller cannot expect anything: it does not run in an operator");
    return new PrimaryExpectations(expectations, this.#scope.key, { primary: this.#primary, context: this });
  }

  // Functions are made when they are asked for, so that they can be taken out of the context.
  get isNextReconcileImminent(): Context["isNextReconcileImminent"] {
    return () => this.#scope.isNextReconcileImminent();
  }

  get secondary(): Context["secondary"] {
    const find = (type: Defined<KubernetesObject> | string, options?: SecondaryOptions) =>
      this.#factory.secondaries.find(this.#primary, typeOf(type), options);
    return find as Context["secondary"];
  }

  get secondaries(): Context["secondaries"] {
    const list = (type: Defined<KubernetesObject> | string, options?: SecondariesOptions) =>
      this.#factory.secondaries.list(this.#primary, typeOf(type), options);
    return list as Context["secondaries"];
  }
}

class CachedPrimaries implements ResourceReader<KubernetesObject> {
  readonly #cache: ResourceView;
  readonly #indexes: ReadonlySet<string>;

  constructor(cache: ResourceView, indexes: ReadonlySet<string>) {
    this.#cache = cache;
    this.#indexes = indexes;
  }

  get(ref: ObjectRef | ObjectKey): KubernetesObject | undefined {
    return this.#cache.get(keyFrom(ref))?.object;
  }

  list({ namespace }: { readonly namespace?: string } = {}): readonly KubernetesObject[] {
    const all = this.#read(this.#cache.keys());
    return namespace === undefined ? all : all.filter(({ metadata }) => metadata.namespace === namespace);
  }

  byIndex(index: string, value: string): readonly KubernetesObject[] {
    if (!this.#indexes.has(index))
      throw new Error(
        `the controller has no index "${index}" of its primaries; state it under indexes in its definition`,
      );
    return this.#read(this.#cache.keysByIndex(index, value));
  }

  #read(keys: Iterable<ObjectKey>): KubernetesObject[] {
    const found: KubernetesObject[] = [];
    for (const key of keys) {
      const entry = this.#cache.get(key);
      if (entry !== undefined) found.push(entry.object);
    }
    return found;
  }
}

function typeOf(type: Defined<KubernetesObject> | string): SecondaryType {
  return typeof type === "string" ? type : type.definition;
}
