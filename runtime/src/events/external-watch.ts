// How the resources of external dependents are known: by an event source of the dependent's own, or by one of the user.
import type { KubernetesObject, ObjectKey } from "../base/kubernetes-object.js";
import type { EventSource, EventSourceContext } from "../cluster/event-source.js";
import type { InboundChannel } from "../cluster/inbound.js";
import { cachingInboundSource } from "./caching-inbound-source.js";
import type { IdOf } from "./external-cache.js";
import type { ExternalSource, FetchContext, MaybePromise } from "./external-source.js";
import { perPrimaryPollingSource } from "./per-primary-polling-source.js";
import { pollingSource } from "./polling-source.js";

type Resources = readonly unknown[];

/** Where the resources of an external dependent come from. */
export type ExternalOrigin =
  | {
      readonly kind: "poll";
      readonly intervalMs: number;
      readonly fetch: (context: FetchContext) => MaybePromise<ReadonlyMap<ObjectKey, Resources>>;
    }
  | {
      readonly kind: "perPrimaryPoll";
      readonly intervalMs: number;
      readonly fetch: (primary: KubernetesObject, context: FetchContext) => MaybePromise<Resources>;
    }
  | {
      readonly kind: "inbound";
      readonly fetch?: (primary: KubernetesObject, context: FetchContext) => MaybePromise<Resources>;
      readonly channel?: InboundChannel<unknown>;
    }
  | { readonly kind: "eventSource"; readonly name: string };

/** What a controller wants to know of one of its external dependents. */
export interface ExternalWatch {
  /** Also the name, and the type, of the event source of its own. */
  readonly name: string;
  readonly origin: ExternalOrigin;
  readonly idOf: IdOf<unknown>;
  /** Whether the event source starts only when it is activated. */
  readonly isActivatedLater: boolean;
  /** Whether the dependent changes its resources, so that the event source has to take what it did. */
  readonly isWritten: boolean;
}

/** The event source of an external dependent, as its driver needs it. */
export interface ExternalDependentSource extends Pick<EventSource, "secondariesOf" | "load"> {
  /** Whether other dependents may look at it, too. */
  readonly isShared: boolean;
  readonly source: EventSource;
  recordCreated(primary: ObjectKey, resource: unknown): void;
  recordUpdated(primary: ObjectKey, resource: unknown, previous: unknown): void;
  recordDeleted(primary: ObjectKey, resource: unknown): void;
  invalidate(primary: ObjectKey): void;
  /** Starts it for a primary, and fetches what that has; throws if it fails now. */
  activate(primary: ObjectKey): Promise<void>;
  /** Says that a primary does not need it; with the last one it is stopped. */
  deactivate(primary: ObjectKey): Promise<void>;
}

/** What the sources of external dependents are made of. */
export interface ExternalSourcesOptions {
  contextOf(source: EventSource): EventSourceContext;
  /** Returns an event source by its name. */
  named(name: string): EventSource | undefined;
  /** Returns the names of all event sources. */
  names(): readonly string[];
}

/** An external dependent with the event source of its own. */
export interface OwnExternalSource {
  readonly source: ExternalSource<unknown>;
  /** Calls back with every fetch that fails from now on; returns how to end that. */
  onFailure(tell: (error: unknown) => void): () => void;
}

/** Creates the event source of a dependent's own; undefined if it shares one of the user's. */
export function createExternalSource({ name, origin, idOf }: ExternalWatch): OwnExternalSource | undefined {
  if (origin.kind === "eventSource") return undefined;
  const listeners = new Set<(error: unknown) => void>();
  const onFailure = (tell: (error: unknown) => void) => {
    listeners.add(tell);
    return () => void listeners.delete(tell);
  };
  const told = async <Result>(fetch: () => MaybePromise<Result>): Promise<Result> => {
    try {
      return await fetch();
    } catch (error) {
      for (const tell of listeners) tell(error);
      throw error;
    }
  };
  const shared = { name, type: name, idOf };
  if (origin.kind === "poll") {
    const { intervalMs, fetch } = origin;
    return { source: pollingSource({ ...shared, intervalMs, fetch: (by) => told(() => fetch(by)) }), onFailure };
  }
  if (origin.kind === "inbound") {
    const { kind: _, ...rest } = origin;
    return { source: cachingInboundSource({ ...shared, ...rest }), onFailure };
  }
  const { intervalMs, fetch } = origin;
  return { source: perPrimaryPollingSource({ ...shared, intervalMs, fetch }), onFailure };
}

/** Returns what the driver of an external dependent works with. Throws if it shares an event source that cannot be shared so. */
export function createExternalDependentSource(
  watch: ExternalWatch,
  own: OwnExternalSource | undefined,
  { contextOf, named, names }: ExternalSourcesOptions,
): ExternalDependentSource {
  const source = own?.source ?? sharedSourceOf(watch, named, names);
  const activation =
    own !== undefined && watch.isActivatedLater ? new ExternalActivation(own, () => contextOf(own.source)) : undefined;
  return {
    source,
    isShared: own === undefined,
    secondariesOf: (primary) => source.secondariesOf(primary),
    load: async (primary, signal) => source.load?.(primary, signal),
    recordCreated: (...args) => source.recordCreated?.(...args),
    recordUpdated: (...args) => source.recordUpdated?.(...args),
    recordDeleted: (...args) => source.recordDeleted?.(...args),
    invalidate: (primary) => source.invalidate?.(primary),
    activate: async (primary) => activation?.activate(primary),
    deactivate: async (primary) => activation?.deactivate(primary),
  };
}

type Records = "recordCreated" | "recordUpdated" | "recordDeleted" | "invalidate";
type RecordingSource = EventSource & Partial<Pick<ExternalSource<unknown>, Records>>;

function sharedSourceOf(
  { name, origin, isWritten }: ExternalWatch,
  named: ExternalSourcesOptions["named"],
  names: ExternalSourcesOptions["names"],
): RecordingSource {
  const wanted = origin.kind === "eventSource" ? origin.name : name;
  const source = named(wanted);
  if (source === undefined) {
    const all = names().join(", ") || "none";
    throw new Error(`dependent "${name}" shares event source "${wanted}", which does not exist; there are ${all}`);
  }
  // By what it can do: a source may come from another copy of this package.
  const isRecording = ["recordCreated", "recordUpdated", "recordDeleted"].every((member) => member in source);
  if (isWritten && !isRecording)
    throw new Error(
      `dependent "${name}" cannot share event source "${wanted}": that takes no resources of the controller's own (recordCreated, ` +
        "recordUpdated, recordDeleted); use a polling or a caching inbound source, or only read it",
    );
  return source as RecordingSource;
}

/** The event source of a dependent's own, as the primaries need it. */
class ExternalActivation {
  readonly #own: OwnExternalSource;
  readonly #contextOf: () => EventSourceContext;
  readonly #users = new Set<ObjectKey>();
  readonly #refused = new Set<ObjectKey>();
  #started: Promise<void> | undefined;

  constructor(own: OwnExternalSource, contextOf: () => EventSourceContext) {
    this.#own = own;
    this.#contextOf = contextOf;
  }

  async activate(primary: ObjectKey): Promise<void> {
    this.#users.add(primary);
    const context = this.#contextOf();
    this.#started ??= this.#start(context);
    try {
      await this.#startedOrFailed(this.#started);
    } catch (error) {
      this.#refused.add(primary);
      throw error;
    }
    const object = context.primaries.get(primary)?.object;
    if (object !== undefined) await this.#own.source.load?.(object, new AbortController().signal);
  }

  async deactivate(primary: ObjectKey): Promise<void> {
    this.#users.delete(primary);
    this.#refused.delete(primary);
    if (this.#users.size > 0 || this.#started === undefined) return;
    this.#started = undefined;
    await this.#own.source.stop();
  }

  async #start(context: EventSourceContext): Promise<void> {
    await this.#own.source.start(context);
    // Whoever was refused is told when the state is known after all.
    const refused = [...this.#refused];
    this.#refused.clear();
    if (refused.length > 0) context.notify(refused);
  }

  // A reconcile must not wait as long as a service is down.
  async #startedOrFailed(started: Promise<void>): Promise<void> {
    let end = () => {};
    const failed = new Promise<never>((_, reject) => (end = this.#own.onFailure(reject)));
    try {
      await Promise.race([started, failed]);
    } finally {
      end();
    }
  }
}
