import type { ResourceOperations } from "../apply/resource-operations.js";
import type { EventDraft, ReconcileReason } from "../base/activity.js";
import type { Defined, KubernetesObject, ResourceReader } from "../base/kubernetes-object.js";
import type { Logger } from "../base/logger.js";
import type { ApiClient } from "../client/api-client.js";
import type { EventSource } from "../sources/event-source.js";
import type { OtherWorkflows, WorkflowInvocation } from "./run.js";

declare const lookups: unique symbol;

/**
 * The part of the `secondary` type that tells which event sources cache only a part of some resources. No object has this property at run time.
 * `Lookups` has the result types of `secondary` and `secondaries` of the context for these classes.
 */
export interface KeepsLess<Lookups> {
  readonly [lookups]?: Lookups;
}

/** The lookups of a context with this `secondary`; `unknown`, which adds nothing, if event sources cache complete objects. */
export type LookupsOf<Secondary> = Secondary extends KeepsLess<infer Lookups> ? NonNullable<Lookups> : unknown;

/** Selects one of several secondary resources with a type. */
export interface SecondaryOptions {
  /** The name of the event source to look in. Default: all with the type */
  readonly source?: string;
  /** The name of the object, which does not have to belong to the primary. */
  readonly name?: string;
  /** The namespace of the named object. Default: the namespace of the primary */
  readonly namespace?: string;
}

/** Selects from the secondary resources with a type. */
export interface SecondariesOptions {
  /** The name of the event source to look in. Default: all with the type */
  readonly source?: string;
  /** Whether an object that several event sources know is returned only once, in its latest version. Default: false */
  readonly deduplicated?: boolean;
}

/** The event sources of a controller. A reconcile may add and remove them. */
export interface EventSources {
  /** Returns the event source with this name; undefined if there is none. */
  get(name: string): EventSource | undefined;
  /** Adds an event source and waits until it has synced. If one with this name is registered already, returns that one. */
  register(source: EventSource): Promise<EventSource>;
  /** Stops and removes an event source. No effect if there is none with this name. */
  deregister(name: string): Promise<void>;
}

/** Arguments of `isFulfilled`. */
export interface ExpectationArguments<Primary> {
  readonly primary: Primary;
  readonly context: Context<Primary>;
}

/** Something that is expected to happen within some time, such as the end of a rollout. */
export interface Expectation<Primary> {
  readonly name: string;
  /** The time in milliseconds after which the primary is reconciled, even without an event. */
  readonly timeoutMs: number;
  /** Reports whether it has happened. Must only depend on the current state. Called whenever a reconcile checks the expectation. */
  isFulfilled(args: ExpectationArguments<Primary>): boolean | Promise<boolean>;
}

/** The state of an expectation. One that has timed out stays, and may still be fulfilled later. */
export interface ExpectationResult {
  readonly name: string;
  readonly status: "fulfilled" | "timedOut" | "notYetFulfilled";
}

/** The expectation of a primary across reconciles; at most one at a time (JOSDK's ExpectationManager). It is lost when the process restarts. */
export interface Expectations<Primary> {
  /** The name of the expectation; undefined if there is none. */
  readonly current: string | undefined;
  /** Replaces the expectation. */
  expect(expectation: Expectation<Primary>): void;
  /** Replaces the expectation unless the new one is fulfilled already. Resolves with whether it was replaced. */
  expectUnlessFulfilled(expectation: Expectation<Primary>): Promise<boolean>;
  /** Returns the state of the expectation, and removes it if it is fulfilled; undefined if there is none, or none with this name. */
  check(name?: string): Promise<ExpectationResult | undefined>;
  /** Removes the expectation. */
  remove(): void;
}

/** Records Events about one object. */
export interface Events {
  /** Records an Event and returns immediately. Events that cannot be written are logged and dropped. */
  record(draft: EventDraft): void;
}

/** What user functions need besides the objects, in one reconcile. */
export interface Context<Primary = KubernetesObject> {
  /** Aborted when the operator stops, when the reconcile times out, or when the primary is paused or gets a deletionTimestamp. */
  readonly signal: AbortSignal;
  /**
   * The fencing token: a number that increases with every new leader (`leaseTransitions`), so that external systems can reject late requests of a
   * former leader. Undefined without leader election, and after leadership is lost.
   */
  readonly fencingToken?: number | undefined;
  /** The operator's client, for requests that no dependent covers. */
  readonly client: ApiClient;
  readonly logger: Logger;
  /** `attempt` is the number of retries that the retry policy has granted since the last success. */
  readonly retry: { readonly attempt: number; readonly isLastAttempt: boolean };
  /** Why the primary is reconciled; intended for logs. */
  readonly reasons: readonly ReconcileReason[];
  /** Reports whether the primary is reconciled again immediately after this reconcile, so that writing a status now is unnecessary. */
  isNextReconcileImminent(): boolean;
  /** Whether the primary has been deleted; only possible with `onAllEvents`. */
  readonly isPrimaryDeleted: boolean;
  /** Whether the watch missed the deletion, so that `primary` may be stale. */
  readonly isPrimaryFinalStateUnknown: boolean;
  readonly primaries: ResourceReader<Primary>;
  /** Writes objects that no dependent covers. The next read sees the result, and the event of the write causes no reconcile. */
  readonly resources: ResourceOperations;
  readonly expectations: Expectations<Primary>;
  /** Records Events about the primary (`kubectl describe`). Events with the same reason and action are counted as one. */
  readonly events: Events;
  /** Passes values between the functions of one reconcile. */
  readonly attributes: Map<unknown, unknown>;
  /**
   * Returns the secondary resource with a type; undefined if there is none. Throws if several belong to the primary. Also throws if no event source
   * has the type, unless a currently inactive dependent has it.
   */
  secondary<Resource extends KubernetesObject>(
    type: Defined<Resource>,
    options?: SecondaryOptions,
  ): Resource | undefined;
  secondary<Resource = unknown>(type: string, options?: SecondaryOptions): Resource | undefined;
  /**
   * Returns all secondary resources with a type that belong to the primary, sorted by key within each event source. Throws for an unknown type, like
   * `secondary`.
   */
  secondaries<Resource extends KubernetesObject>(
    type: Defined<Resource>,
    options?: SecondariesOptions,
  ): readonly Resource[];
  secondaries<Resource = unknown>(
    type: string,
    options?: Omit<SecondariesOptions, "deduplicated">,
  ): readonly Resource[];
  readonly eventSources: EventSources;
  /** Runs the controller's workflow if its invocation is explicit; otherwise its functions reject. */
  readonly workflow?: WorkflowInvocation;
  readonly workflows: OtherWorkflows;
}
