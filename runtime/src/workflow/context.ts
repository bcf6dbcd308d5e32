import type { ResourceOperations } from "../apply/resource-operations.js";
import type { EventDraft, ReconcileReason } from "../base/activity.js";
import type { Defined, KubernetesObject, ResourceReader } from "../base/kubernetes-object.js";
import type { Logger } from "../base/logger.js";
import type { ApiClient } from "../client/api-client.js";
import type { EventSource } from "../sources/event-source.js";
import type { OtherWorkflows, WorkflowInvocation } from "./run.js";

declare const lookups: unique symbol;

/**
 * The part of `secondary` by which the types of a function know that event sources keep less of some resources than their classes say. No
 * object has the property. `Lookups` has what `secondary` and `secondaries` of the context return for these classes.
 */
export interface KeepsLess<Lookups> {
  readonly [lookups]?: Lookups;
}

/** The lookups of a context beside a `secondary`; `unknown`, which adds nothing, where event sources keep whole objects. */
export type LookupsOf<Secondary> = Secondary extends KeepsLess<infer Lookups> ? NonNullable<Lookups> : unknown;

/** Which of the secondary resources of a type is meant, where there may be several. */
export interface SecondaryOptions {
  /** The name of the event source that knows it. Default: any of the type */
  readonly source?: string;
  /** The name of the object, which need not belong to the primary. */
  readonly name?: string;
  /** The namespace of the named object. Default: that of the primary */
  readonly namespace?: string;
}

/** Which of the secondary resources of a type are meant. */
export interface SecondariesOptions {
  /** The name of the event source that knows them. Default: all of the type */
  readonly source?: string;
  /** Whether an object that several event sources know is returned once, in its latest version. Default: false */
  readonly deduplicated?: boolean;
}

/** The event sources of a controller, as a reconcile may change them. */
export interface EventSources {
  /** Returns the event source of this name; undefined if there is none. */
  get(name: string): EventSource | undefined;
  /** Adds an event source and waits until its state is known; returns the one of this name if there is one already. */
  register(source: EventSource): Promise<EventSource>;
  /** Stops and removes an event source; nothing happens if there is none of this name. */
  deregister(name: string): Promise<void>;
}

/** The state by which an expectation is judged. */
export interface ExpectationArguments<Primary> {
  readonly primary: Primary;
  readonly context: Context<Primary>;
}

/** Something that has to come true in a while, such as the end of a rollout. */
export interface Expectation<Primary> {
  readonly name: string;
  /** When this time is over, the primary is reconciled. */
  readonly timeoutMs: number;
  /** Judges by the state alone; called whenever a reconcile checks. */
  isFulfilled(args: ExpectationArguments<Primary>): boolean | Promise<boolean>;
}

/** What became of an expectation. One that timed out stays, and may be fulfilled later. */
export interface ExpectationResult {
  readonly name: string;
  readonly status: "fulfilled" | "timedOut" | "notYetFulfilled";
}

/** What is expected of a primary across reconciles, one thing at a time (JOSDK ExpectationManager). It does not outlive the process. */
export interface Expectations<Primary> {
  /** The name of the expectation, if there is one. */
  readonly current: string | undefined;
  /** Replaces the expectation. */
  expect(expectation: Expectation<Primary>): void;
  /** Replaces the expectation unless the new one is fulfilled already; tells whether it was replaced. */
  expectUnlessFulfilled(expectation: Expectation<Primary>): Promise<boolean>;
  /** Tells what became of the expectation, and forgets it if it is fulfilled; undefined if there is none (of this name). */
  check(name?: string): Promise<ExpectationResult | undefined>;
  /** Forgets the expectation. */
  remove(): void;
}

/** Records Events about one object. */
export interface Events {
  /** Records an Event; returns at once. What cannot be written is logged, and lost. */
  record(draft: EventDraft): void;
}

/** What functions of the user may need besides the objects, in one reconcile. */
export interface Context<Primary = KubernetesObject> {
  /** Aborted when the operator stops or the reconcile is given up. */
  readonly signal: AbortSignal;
  /**
   * A number that grows with every new leader (`leaseTransitions`), for systems outside Kubernetes that can refuse what a former leader sends
   * late; undefined without leader election, and when the leadership is lost.
   */
  readonly fencingToken?: number | undefined;
  /** The client of the operator, for what no dependent covers. */
  readonly client: ApiClient;
  readonly logger: Logger;
  /** The attempt is 0 unless the reconciles before failed. */
  readonly retry: { readonly attempt: number; readonly isLastAttempt: boolean };
  /** Why the primary is reconciled; meant for logs. */
  readonly reasons: readonly ReconcileReason[];
  /** Tells whether the primary is reconciled again as soon as this reconcile ends, so that a status is needless now. */
  isNextReconcileImminent(): boolean;
  /** Whether the primary is gone; only a controller that reconciles on all events is called then. */
  readonly isPrimaryDeleted: boolean;
  /** Whether the watch missed the deletion, so that `primary` may be older than the last state. */
  readonly isPrimaryFinalStateUnknown: boolean;
  readonly primaries: ResourceReader<Primary>;
  /** Writes what no dependent covers, so that the next read sees it and its own event causes no reconcile. */
  readonly resources: ResourceOperations;
  readonly expectations: Expectations<Primary>;
  /** Records Events about the primary (`kubectl describe`); those of one reason and action are counted as one. */
  readonly events: Events;
  /** What the functions of one reconcile hand to each other. */
  readonly attributes: Map<unknown, unknown>;
  /**
   * Returns the secondary resource of a type; undefined if there is none. Throws if several belong to the primary, and if no event source has
   * the type, unless a dependent that is inactive now has it.
   */
  secondary<Resource extends KubernetesObject>(
    type: Defined<Resource>,
    options?: SecondaryOptions,
  ): Resource | undefined;
  secondary<Resource = unknown>(type: string, options?: SecondaryOptions): Resource | undefined;
  /** Returns all secondary resources of a type that belong to the primary, of each event source sorted by key; throws where `secondary` does for the type. */
  secondaries<Resource extends KubernetesObject>(
    type: Defined<Resource>,
    options?: SecondariesOptions,
  ): readonly Resource[];
  secondaries<Resource = unknown>(
    type: string,
    options?: Omit<SecondariesOptions, "deduplicated">,
  ): readonly Resource[];
  readonly eventSources: EventSources;
  /** Runs the workflow of the controller, if its invocation is explicit; rejects otherwise. */
  readonly workflow?: WorkflowInvocation;
  readonly workflows: OtherWorkflows;
}
