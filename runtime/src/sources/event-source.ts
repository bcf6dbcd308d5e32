// The interface of event sources, and what the built-in ones share: event filters (controller-runtime's predicates), and health derived from failures
// of their functions.
import type { SecondaryCause, SourceHealth } from "../base/activity.js";
import type { KubernetesObject, ObjectKey, ResourceDefinition } from "../base/kubernetes-object.js";
import { type Logger, messageOf } from "../base/logger.js";
import type { ProofKey } from "../base/proof-key.js";
import { type UserCall, callUnawaited, synchronous, userCalls } from "../base/user-calls.js";
import type { Clock } from "../base/wait.js";
import type { ResourceChange } from "../cache/resource-cache.js";
import type { EventFilters, ResourceView } from "../cache/resource-view.js";
import type { ApiClient } from "../client/api-client.js";
import type { SharedInformers } from "../watch/shared-informers.js";

/** The cached primaries of a controller. */
export type IndexedPrimaries = Pick<
  ResourceView,
  "get" | "has" | "keys" | "list" | "keysByIndex" | "byIndex" | "indexFor" | "addIndex" | "removeIndex"
>;

/** The controller that starts an event source, and what it provides to the source. */
export interface EventSourceContext {
  /** The name of the controller. */
  readonly controller: string;
  readonly primary: ResourceDefinition;
  readonly primaries: IndexedPrimaries;
  /** The namespaces that the controller watches; undefined for all. */
  readonly namespaces: readonly string[] | undefined;
  /** Whether the controller also reconciles deleted primaries (JOSDK's triggerReconcilerOnAllEvents). */
  readonly onAllEvents?: boolean;
  readonly fieldManager: string;
  /** Returns the key that proves links of dependents; undefined until it is loaded. */
  proofKey?(): ProofKey | undefined;
  readonly client: ApiClient;
  /** The informers shared by all controllers of the operator. */
  readonly informers: SharedInformers;
  readonly logger: Logger;
  readonly clock: Clock;
  /** Returns the objects of a primary's dependents and event sources by name. Throws while some of them are not synced. */
  secondaryOf?(primary: KubernetesObject): object;
  /** Like `secondaryOf`, but without objects that are not known yet. */
  knownSecondaryOf?(primary: KubernetesObject): object;
  /** Reports a change of secondaries of these primaries, even if filters reject its event. */
  noteSecondaries?(primaries: Iterable<ObjectKey>): void;
  /** Requests reconciles of these primaries. */
  notify(primaries: Iterable<ObjectKey>, cause?: SecondaryCause): void;
}

/** Decides for a primary whether an event source runs, like `crdPresent`. */
export type SourceCondition = (args: never) => unknown;

/**
 * Provides secondary resources of primaries, and events that trigger reconciles (JOSDK's EventSource, controller-runtime's source.Source). It can be
 * restarted after a stop, and belongs to one controller at a time. Errors of its functions make it unhealthy; they never stop the operator.
 */
export interface EventSource<Resource = unknown> {
  /** Unique in its controller. */
  readonly name: string;
  /** The kind of its resources, or a custom name for external ones; absent if it has no resources. */
  readonly type?: ResourceDefinition | string | undefined;
  /** With `first`, the user's other sources start after this one has started (JOSDK's RESOURCE_STATE_LOADER). */
  readonly startPriority?: "first" | "default";
  /** Evaluated before each reconcile of a primary. The source runs while the condition is met for any primary. Default: the source always runs */
  readonly activationCondition?: SourceCondition | undefined;
  /** Whether it starts only once this replica leads, as polling sources do. Default: it runs in every replica, so that a new leader has its state */
  readonly startsWhenLeading?: boolean;
  readonly health: SourceHealth;
  /** The client for the cluster that it watches; undefined for the operator's cluster. */
  readonly client?: ApiClient | undefined;
  /** Starts the source. Resolves when its resources are known. */
  start(context: EventSourceContext): Promise<void>;
  /** Stops the source. Its state may be dropped. */
  stop(): Promise<void>;
  /** Returns the known resources of a primary. Built-in sources sort them by key or ID. */
  secondariesOf(primary: KubernetesObject): readonly Resource[];
  /** Returns the resource with this key, of any primary. */
  get?(key: ObjectKey): Resource | undefined;
  /** Called before each reconcile of a primary, to fetch its resources if they are not known yet. If it throws, the reconcile fails. */
  load?(primary: KubernetesObject, signal: AbortSignal): Promise<void>;
  /** Called at the end of a reconcile: resources fetched for it may be evicted. */
  release?(primary: ObjectKey): void;
  /**
   * Called for every change of a primary, before any filter (JOSDK's ResourceEventAware). If the primary's own reconcile made the change, `madeFor`
   * is its `key`: do not notify the primary then, which would cause an endless loop. A primary in a namespace that is no longer watched counts as
   * deleted. If a reconcile ends after its primary was deleted, the deletion is reported again.
   */
  onPrimaryChange?(change: ResourceChange): void;
  /** Called after the namespaces of the controller have changed. Resolves when the resources are known. */
  setNamespaces?(namespaces: readonly string[] | undefined): Promise<void>;
}

type Filter<Args extends readonly unknown[]> = (...args: Args) => boolean;

/** Returns a filter that accepts an event if all of these filters do. */
export function allOf<Args extends readonly unknown[]>(...filters: readonly Filter<Args>[]): Filter<Args> {
  return (...args) => filters.every((filter) => filter(...args));
}

/** Returns a filter that accepts an event if any of these filters does. */
export function anyOf<Args extends readonly unknown[]>(...filters: readonly Filter<Args>[]): Filter<Args> {
  return (...args) => filters.some((filter) => filter(...args));
}

/**
 * Returns the negation of a filter or condition.
 *
 * @example { reconcilePrecondition: not(crdPresent(Route)) }
 */
export function not<Args extends readonly unknown[]>(filter: Filter<Args>): Filter<Args>;
export function not<Args extends readonly unknown[], Result>(
  condition: (...args: Args) => Result,
): (...args: Args) => Result;
export function not<Args extends readonly unknown[]>(decide: (...args: Args) => unknown): (...args: Args) => unknown {
  // The negation has the same properties as the condition, such as the kind that it needs.
  return Object.assign((...args: Args) => negated(decide(...args)), decide);
}

function negated(result: unknown): unknown {
  if (result instanceof Promise) return result.then(negated);
  if (typeof result !== "object" || result === null || !("isMet" in result)) return !(result as boolean);
  return { ...result, isMet: !(result.isMet as boolean) };
}

/** Creates the event gate of an event source. If a filter throws, the event passes, because no event may be lost. */
export function createEventGate<Resource>(
  { onAdd, onUpdate, onDelete, generic }: EventFilters<Resource> = {},
  health: HealthRecord,
) {
  const passes = <Args extends readonly unknown[]>(part: string, filter: Filter<Args> | undefined, ...args: Args) =>
    filter === undefined || health.guard(part, () => filter(...args), true, args[0]);
  const passesGeneric = (resource: Resource) => passes("the generic filter", generic, resource);
  return {
    passesGeneric,
    passesAdd: (resource: Resource) => passesGeneric(resource) && passes("the filter onAdd", onAdd, resource),
    passesUpdate: (resource: Resource, old: Resource) =>
      passesGeneric(resource) && passes("the filter onUpdate", onUpdate, resource, old),
    passesDelete: (resource: Resource, isFinalStateUnknown: boolean) =>
      passesGeneric(resource) && passes("the filter onDelete", onDelete, resource, isFinalStateUnknown),
  };
}

/** The filters of an event source. `passesGeneric` only applies the `generic` filter. */
export type EventGate<Resource> = ReturnType<typeof createEventGate<Resource>>;

// Enough to find the cause if a function fails for thousands of objects.
const MAX_REASONS = 3;

/** Health of an event source. It is unhealthy while any part fails. One line is logged when it becomes unhealthy, and one when it recovers. */
export class HealthRecord {
  readonly #source: string;
  readonly #problems = new Map<string, string>();
  /** The last failure of a function, by part, to limit logging: a function may fail for every other object. */
  readonly #guarded = new Map<string, string>();
  #logger: Logger | undefined;
  #controller: string | undefined;
  #wasReported = false;

  constructor(source: string) {
    this.#source = source;
  }

  get health(): SourceHealth {
    if (this.#logger === undefined) return { status: "unknown" };
    if (this.#problems.size === 0) return { status: "healthy" };
    const reasons = [...this.#problems.values()].slice(0, MAX_REASONS);
    const more = this.#problems.size - reasons.length;
    return { status: "unhealthy", reason: reasons.join("; ") + (more > 0 ? `; and ${more} more` : "") };
  }

  start({ logger, controller }: { readonly logger: Logger; readonly controller: string }): void {
    this.#logger = logger;
    this.#controller = controller;
    this.#problems.clear();
    this.#guarded.clear();
    this.#wasReported = false;
  }

  stop(): void {
    this.#logger = undefined;
    this.#problems.clear();
  }

  fail(part: string, error: unknown): void {
    this.#report(part, error, !this.#wasReported);
  }

  /** Records that a part works, or no longer exists. */
  succeed(part: string): void {
    if (!this.#problems.delete(part) || this.#problems.size > 0 || !this.#wasReported) return;
    this.#wasReported = false;
    this.#logger?.info({ source: this.#source }, `event source "${this.#source}" works again`);
  }

  /** Calls a user function. Its error is rethrown. */
  run<Result>(part: string, call: () => Result): Result {
    return userCalls.run(this.#callOf(part), call);
  }

  /** Calls a user function for `object`. If it throws, the source is unhealthy until it succeeds again, and `fallback` is returned. */
  guard<Result>(part: string, call: () => Result, fallback: Result, object?: unknown): Result {
    try {
      const result = synchronous(userCalls.run(this.#callOf(part, object), call));
      this.succeed(part);
      return result;
    } catch (error) {
      this.#noteGuarded(part, error);
      return fallback;
    }
  }

  /** Calls a user function without waiting for its result. If it fails, the source is unhealthy until it succeeds again. */
  callUnawaited(part: string, call: () => unknown): void {
    callUnawaited(() => userCalls.run(this.#callOf(part), call), {
      onSuccess: () => this.succeed(part),
      onFailure: (error) => this.#noteGuarded(part, error),
    });
  }

  #callOf(part: string, object?: unknown): UserCall {
    return { what: `${part} of event source "${this.#source}"`, controller: this.#controller, object };
  }

  #noteGuarded(part: string, error: unknown): void {
    const message = messageOf(error);
    this.#report(part, error, this.#guarded.get(part) !== message);
    this.#guarded.set(part, message);
  }

  #report(part: string, error: unknown, isNews: boolean): void {
    const message = `${part} failed: ${messageOf(error)}`;
    this.#problems.set(part, message);
    const text = `event source "${this.#source}": ${message}`;
    if (!isNews) return this.#logger?.debug({ source: this.#source }, text);
    this.#wasReported = true;
    this.#logger?.warn({ source: this.#source }, text);
  }
}

/** Validates keys returned by a user function. Throws for a value of another type, with the message from `messageFor`. */
export function checkedKeys(values: Iterable<unknown>, messageFor: (type: string) => string): readonly ObjectKey[] {
  const keys = [...values];
  for (const key of keys) if (typeof key !== "string") throw new TypeError(messageFor(typeNameOf(key)));
  return keys as ObjectKey[];
}

/** Returns the name of a value's type, for errors. */
export function typeNameOf(value: unknown): string {
  return value === null ? "null" : typeof value;
}
