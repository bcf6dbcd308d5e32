// A reconcile: the shared parts of its controller, its progress, and the context for user functions.
import type { ResourceOperations } from "../apply/resource-operations.js";
import type { Sender } from "../apply/sender.js";
import type { PrimaryCause } from "../apply/write.js";
import type { EventDraft, EventSink, PostponedWrite } from "../base/activity.js";
import {
  type Defined,
  type KubernetesObject,
  type ObjectKey,
  type ResourceDefinition,
  type ResourceReader,
  type SecondaryType,
  compareResourceVersions,
  describeObject,
  groupOf,
  hasType,
  keyFrom,
  keyOf,
  nameOfType,
  sortedByKey,
} from "../base/kubernetes-object.js";
import { messageOf } from "../base/logger.js";
import type { Clock } from "../base/wait.js";
import type { ResourceView } from "../cache/resource-view.js";
import type { ApiClient } from "../client/api-client.js";
import type { PrimaryOutcome, ReconcileScope } from "../queue/controller.js";
import type { SecondarySources } from "../sources/controller-sources.js";
import type { EventSource } from "../sources/event-source.js";
import type {
  Context,
  EventSources,
  Expectation,
  ExpectationArguments,
  Expectations,
  SecondariesOptions,
  SecondaryOptions,
} from "../workflow/context.js";
import { type KubernetesDependent, type WorkflowDefinition, isKubernetes } from "../workflow/workflow-definition.js";
import type { ControllerDefinition, ResolvedDefinition } from "./controller-definition.js";
import type { ConditionSenders, PrimaryWrite } from "./primary-writes.js";
import type { ControllerWorkflows, CreateContext, WorkflowDependencies, WorkflowRuns } from "./workflow-runs.js";

/** Dependencies of a PrimaryReconciler. */
export interface PrimaryDependencies extends WorkflowDependencies {
  readonly primaries: ResourceView;
  /** Writes as the controller's field manager. */
  readonly sender: Sender;
  /** Absent without `statusConditions: managed`. */
  readonly conditionSenders?: ConditionSenders;
  /** Writes finalizers, and implements `context.resources`. */
  readonly resources: ResourceOperations;
  readonly expectations: ExpectationRegistry;
  /** Returns the writes for a primary that are postponed because of write loops. */
  loopsOf?(primary: KubernetesObject): readonly PostponedWrite[];
  /** Called when the `cleanupTimeoutMs` of a primary has passed, to requeue it. */
  onCleanupDue?(primary: ObjectKey): void;
  /** If absent, Events are dropped. */
  readonly events?: EventSink;
  /** Called when a primary was paused or resumed. */
  onPaused?(primary: KubernetesObject, isPaused: boolean): void;
  /** Returns the current leadership term; undefined without leader election. */
  readonly fencingToken?: (() => number | undefined) | undefined;
}

/** Parts shared by all reconciles of a controller. */
export interface ReconcileParts {
  readonly definition: ControllerDefinition;
  readonly resolved: ResolvedDefinition;
  readonly dependencies: PrimaryDependencies;
  readonly workflows: ControllerWorkflows;
  /** How primaries are written. Each reconcile adds the cause. */
  readonly write: PrimaryWrite;
}

/** A reconcile in progress. */
export interface Attempt {
  readonly scope: ReconcileScope;
  /** How the primary is written in this reconcile. */
  readonly write: PrimaryWrite & { readonly cause: PrimaryCause };
  readonly outcome: { -readonly [Part in keyof PrimaryOutcome]: PrimaryOutcome[Part] };
  /** The error, even if it is not retried. */
  error?: unknown;
  /** Postponed writes to the primary. */
  postponed: readonly PostponedWrite[];
  /** Whether the primary is paused, so that nothing is written for it. */
  readonly isPaused: boolean;
  /** Set before user functions are called. */
  runs?: WorkflowRuns;
  /** The primary that the reconciler was called with. */
  given?: KubernetesObject;
  /** The last status of the reconciler that was written or was up to date. */
  status?: object | undefined;
  /** Whether the primary was deleted or replaced during the reconcile. */
  isGone?: boolean;
}

/** Returns the function that creates contexts. Members that few reconciles use are created on first access. */
export function contextFactoryOf(
  definition: ControllerDefinition,
  { dependents }: ResolvedDefinition,
  { primaries, secondaries, sender, ...dependencies }: PrimaryDependencies,
): CreateContext {
  const { primary: kind } = definition.workflow;
  const access = new SecondaryAccess(secondaries, { primary: kind, dependents });
  const reader = readerOf(primaries);
  return (scope, primary, runs) => {
    const { signal, logger, retry, reasons, isPrimaryDeleted } = scope;
    let client: ApiClient | undefined;
    // No function uses `this`, so that users can destructure the context.
    const context: Context = {
      isPrimaryFinalStateUnknown: scope.isFinalStateUnknown,
      ...{ signal, logger, retry, reasons, isPrimaryDeleted },
      primaries: reader,
      attributes: new Map(),
      workflow: runs.own,
      workflows: { get: (wanted: string | WorkflowDefinition) => runs.other(wanted) },
      get eventSources() {
        return Object.freeze({
          get: (name) => secondaries.get(name),
          // Only wait for the part of the source that may concern the primary.
          register: (source) => secondaries.register(source, primary),
          deregister: (name) => secondaries.deregister(name),
        } satisfies EventSources);
      },
      get client() {
        return (client ??= sender.clientFor({ definition: kind, cache: primaries }, { signal, logger, primary }));
      },
      get resources() {
        return dependencies.resources.within({ signal, logger, primary });
      },
      get expectations() {
        return dependencies.expectations.of(scope.key, { primary, context });
      },
      get events() {
        const about = { controller: definition.name, about: primary };
        return { record: (draft: EventDraft) => dependencies.events?.record(about, draft) };
      },
      get fencingToken() {
        return dependencies.fencingToken?.();
      },
      isNextReconcileImminent: () => scope.isNextReconcileImminent(),
      secondary: ((type: Defined | string, options?: SecondaryOptions) =>
        access.find(primary, typeOf(type), { ...options, discovered: runs.discovered })) as Context["secondary"],
      secondaries: ((type: Defined | string, options?: SecondariesOptions) =>
        access.list(primary, typeOf(type), { ...options, discovered: runs.discovered })) as Context["secondaries"],
    };
    return context;
  };
}

function readerOf(view: ResourceView): ResourceReader<KubernetesObject> {
  return {
    get: (ref) => view.get(keyFrom(ref))?.object,
    list: (options) => sortedByKey(view.list(options).map(({ object }) => object)),
    byIndex: (index, value) => sortedByKey(view.byIndex(index, value).map(({ object }) => object)),
  };
}

function typeOf(type: Defined | string): SecondaryType {
  return typeof type === "string" ? type : type.definition;
}

/** Looks up secondaries in the event sources of a controller. */
export class SecondaryAccess {
  readonly #sources: SecondarySources;
  readonly #primary: ResourceDefinition;
  /** Dependents that have no event source while they are inactive. */
  readonly #activated: readonly KubernetesDependent[];

  constructor(sources: SecondarySources, { primary, dependents }: WorkflowDefinition) {
    this.#sources = sources;
    this.#primary = primary;
    const kubernetes = dependents.filter(isKubernetes);
    this.#activated = kubernetes.filter(({ activationCondition }) => activationCondition !== undefined);
  }

  /** Returns the single resource of a type. Throws if there are several. */
  find(primary: KubernetesObject, type: SecondaryType, options: SecondaryOptions & Discovered = {}): unknown {
    const { source, name, namespace } = options;
    const unwatched = discoveredOf(type, options);
    const sources = this.#sourcesOf(type, source);
    const latest = (all: readonly unknown[]) => (typeof type === "string" ? all : latestOf(all as KubernetesObject[]));
    if (name !== undefined) {
      const isNamespaced = typeof type === "string" || type.scope === "Namespaced";
      const key = keyOf({ name, namespace: isNamespaced ? (namespace ?? primary.metadata.namespace) : undefined });
      const blind = sources.find(({ get }) => get === undefined);
      if (blind !== undefined) throw new Error(`event source "${blind.name}" cannot look up a resource by its name`);
      const discovered = unwatched.filter(({ metadata }) => keyOf(metadata) === key);
      return latest([...sources.flatMap((each) => each.get?.(key) ?? []), ...discovered])[0];
    }
    if (namespace !== undefined) throw new Error(`the namespace "${namespace}" is given without a name`);
    const found = latest([...sources.flatMap((each) => each.secondariesOf(primary)), ...unwatched]);
    if (found.length <= 1) return found[0];
    throw new Error(
      `${found.length} resources of the type ${nameOfType(type)} belong to ${describeObject(this.#primary, primary.metadata)}; ask for one by its name, for those ` +
        "of one event source, or for all of them by secondaries()",
    );
  }

  /** Returns all resources of a type that belong to a primary. */
  list(
    primary: KubernetesObject,
    type: SecondaryType,
    options: SecondariesOptions & Discovered = {},
  ): readonly unknown[] {
    const { source, deduplicated = false } = options;
    if (deduplicated && typeof type === "string")
      throw new Error(
        `resources of the type ${type} have no versions to tell which is the latest; deduplicated is for Kubernetes' kinds`,
      );
    const watched = this.#sourcesOf(type, source).flatMap((each) => each.secondariesOf(primary));
    const unwatched = discoveredOf(type, options);
    const all = [...watched, ...unwatched];
    // Each source is sorted already.
    return deduplicated || unwatched.length > 0 ? sortedByKey(latestOf(all as KubernetesObject[])) : all;
  }

  #sourcesOf(type: SecondaryType, name: string | undefined): readonly EventSource[] {
    const found = this.#sources.find(type, name);
    if (found.length > 0) return found;
    // The watch of an inactive dependent is stopped, so there is no source with its type.
    const isInactive = this.#activated.some(({ resource }) => hasType({ type: resource }, type));
    if (name === undefined && isInactive) return found;
    const which = name === undefined ? "no event source" : `no event source "${name}"`;
    const sources = this.#sources.names().map((name) => {
      const type = nameOfType(this.#sources.get(name)?.type);
      return type === undefined ? `"${name}"` : `${type} ("${name}")`;
    });
    const there = sources.length === 0 ? "it has no event sources" : `there are ${sources.join(", ")}`;
    throw new Error(`${which} of the controller of ${this.#primary.plural} has the type ${nameOfType(type)}; ${there}`);
  }
}

interface Discovered {
  /** Objects of dependents that are not in any watch, but were read in this reconcile. */
  readonly discovered?: readonly KubernetesObject[];
}

function discoveredOf(type: SecondaryType, { source, discovered = [] }: { source?: string } & Discovered) {
  if (typeof type === "string" || source !== undefined) return [];
  return discovered.filter(({ apiVersion, kind }) => kind === type.kind && groupOf(apiVersion) === type.group);
}

// Several event sources may have the same object in different versions.
function latestOf(objects: readonly KubernetesObject[]): readonly KubernetesObject[] {
  if (objects.length <= 1) return objects;
  const latest = new Map<string, KubernetesObject>();
  for (const object of objects) {
    const { resourceVersion = "" } = object.metadata;
    const key = keyOf(object.metadata);
    const known = latest.get(key)?.metadata;
    if (known === undefined || compareResourceVersions(known.resourceVersion ?? "", resourceVersion) < 0)
      latest.set(key, object);
  }
  return [...latest.values()];
}

interface ExpectationRegistryOptions {
  readonly clock: Clock;
  /** Called after the timeout of an expectation, to requeue its primary. */
  onTimeout(primary: ObjectKey): void;
}

type AnyExpectation = Expectation<KubernetesObject>;
type AnyArguments = ExpectationArguments<KubernetesObject>;

interface KeptExpectation {
  readonly expectation: AnyExpectation;
  isTimedOut: boolean;
  cancel(): void;
}

/**
 * Expectations of a controller, at most one per primary (JOSDK's ExpectationManager).
 *
 * Unlike in JOSDK, a timeout causes a reconcile, and the expectation of a deleted primary is removed.
 */
export class ExpectationRegistry {
  readonly #options: ExpectationRegistryOptions;
  readonly #kept = new Map<ObjectKey, KeptExpectation>();
  #isClosed = false;

  constructor(options: ExpectationRegistryOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#kept.size;
  }

  /** Returns the expectations for the context of one reconcile. */
  of(primary: ObjectKey, args: AnyArguments): Expectations<KubernetesObject> {
    const current = () => this.#kept.get(primary);
    return {
      get current() {
        return current()?.expectation.name;
      },
      expect: (expectation) => this.#expect(primary, expectation),
      expectUnlessFulfilled: async (expectation) => {
        checkExpectation(expectation);
        if (await isFulfilled(expectation, args)) return false;
        this.#expect(primary, expectation);
        return true;
      },
      check: async (wanted) => {
        const kept = current();
        if (kept === undefined || (wanted !== undefined && kept.expectation.name !== wanted)) return undefined;
        const { name } = kept.expectation;
        // Fulfillment takes precedence over the timeout.
        if (!(await isFulfilled(kept.expectation, args)))
          return { name, status: kept.isTimedOut ? "timedOut" : "notYetFulfilled" };
        // A function may have replaced the expectation in the meantime.
        if (current() === kept) this.forget(primary);
        return { name, status: "fulfilled" };
      },
      remove: () => this.forget(primary),
    };
  }

  forget(primary: ObjectKey): void {
    this.#kept.get(primary)?.cancel();
    this.#kept.delete(primary);
  }

  /** Removes all expectations and accepts no more. */
  close(): void {
    this.#isClosed = true;
    for (const primary of [...this.#kept.keys()]) this.forget(primary);
  }

  #expect(primary: ObjectKey, expectation: AnyExpectation): void {
    checkExpectation(expectation);
    this.forget(primary);
    // A reconcile that was aborted by the stop of the controller may still get here.
    if (this.#isClosed) return;
    const expire = () => {
      kept.isTimedOut = true;
      this.#options.onTimeout(primary);
    };
    const cancel = this.#options.clock.schedule(expectation.timeoutMs, expire);
    const kept: KeptExpectation = { expectation, isTimedOut: false, cancel };
    this.#kept.set(primary, kept);
  }
}

function checkExpectation({ name, timeoutMs, isFulfilled }: AnyExpectation): void {
  const fail = (problem: string) => new TypeError(`an expectation ${problem}`);
  if (typeof name !== "string" || name === "") throw fail("requires a name");
  if (typeof isFulfilled !== "function") throw fail(`needs a function isFulfilled: "${name}" has none`);
  if (!(Number.isFinite(timeoutMs) && timeoutMs > 0))
    throw fail(`needs a timeoutMs of more than 0: "${name}" has ${String(timeoutMs)}`);
}

async function isFulfilled({ name, isFulfilled }: AnyExpectation, args: AnyArguments): Promise<boolean> {
  try {
    return await isFulfilled(args);
  } catch (error) {
    throw new Error(`expectation "${name}": ${messageOf(error)}`, { cause: error });
  }
}
