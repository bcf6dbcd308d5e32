// How the resources of external dependents are known: by an event source of the dependent's own, or by one of the user.
import type { KubernetesObject, ObjectKey } from "../../base/kubernetes-object.js";
import type { EventSource, EventSourceContext } from "../event-source.js";
import type { InboundChannel } from "./inbound.js";
import { cachingInboundSource } from "./caching-inbound-source.js";
import type { IdOf } from "./external-cache.js";
import type { ExternalSource, FetchContext, MaybePromise } from "./external-source.js";
import { isolated } from "./isolated-source.js";
import { perPrimaryPollingSource } from "./per-primary-polling-source.js";
import { createPollingSource } from "./polling-source.js";

type Resources = readonly unknown[];

/** Where the resources of an external dependent come from. */
export type ExternalOrigin =
  | {
      readonly kind: "poll";
      readonly intervalMs: number;
      readonly fetchTimeoutMs?: number;
      readonly fetch: (context: FetchContext) => MaybePromise<ReadonlyMap<ObjectKey, Resources>>;
    }
  | {
      readonly kind: "perPrimaryPoll";
      readonly intervalMs: number;
      readonly fetchTimeoutMs?: number;
      readonly fetch: (primary: KubernetesObject, context: FetchContext) => MaybePromise<Resources>;
    }
  | {
      readonly kind: "inbound";
      readonly fetchTimeoutMs?: number;
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
  /** Starts it for a primary, and fetches what that has; what fails now is thrown when it is read. */
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

/** Creates the event source of a dependent's own; undefined if it shares one of the user's. */
export function createExternalSource({ name, origin, idOf }: ExternalWatch): ExternalSource<unknown> | undefined {
  const shared = { name, type: name, idOf };
  switch (origin.kind) {
    case "eventSource":
      return undefined;
    case "poll": {
      const { kind: _, ...rest } = origin;
      return isolated(createPollingSource({ ...shared, ...rest }, { isAwaited: false }));
    }
    case "perPrimaryPoll": {
      const { kind: _, ...rest } = origin;
      return isolated(perPrimaryPollingSource({ ...shared, ...rest }));
    }
    case "inbound": {
      const { kind: _, ...rest } = origin;
      return isolated(cachingInboundSource({ ...shared, ...rest }));
    }
  }
}

/** Returns what the driver of an external dependent works with. Throws if it shares an event source that cannot be shared so. */
export function createExternalDependentSource(
  watch: ExternalWatch,
  own: ExternalSource<unknown> | undefined,
  { contextOf, named, names }: ExternalSourcesOptions,
): ExternalDependentSource {
  const source = own ?? sharedSourceOf(watch, named, names);
  const activation =
    own !== undefined && watch.isActivatedLater ? new ExternalActivation(own, () => contextOf(own)) : undefined;
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
  readonly #own: ExternalSource<unknown>;
  readonly #contextOf: () => EventSourceContext;
  readonly #users = new Set<ObjectKey>();
  #started: Promise<void> | undefined;

  constructor(own: ExternalSource<unknown>, contextOf: () => EventSourceContext) {
    this.#own = own;
    this.#contextOf = contextOf;
  }

  async activate(primary: ObjectKey): Promise<void> {
    this.#users.add(primary);
    const context = this.#contextOf();
    this.#started ??= this.#own.start(context);
    await this.#started;
    const object = context.primaries.get(primary)?.object;
    if (object !== undefined) await this.#own.load?.(object, new AbortController().signal);
  }

  async deactivate(primary: ObjectKey): Promise<void> {
    this.#users.delete(primary);
    if (this.#users.size > 0 || this.#started === undefined) return;
    this.#started = undefined;
    await this.#own.stop();
  }
}
