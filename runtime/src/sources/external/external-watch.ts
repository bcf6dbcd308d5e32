// How the resources of external dependents are known: by an event source of the dependent's own, or by one of the user.
import type { KubernetesObject, ObjectKey } from "../../base/kubernetes-object.js";
import type { Activation } from "../activation.js";
import type { EventSource, IndexedPrimaries } from "../event-source.js";
import { sharedSource, type NamedSources } from "../kind/dependent-source.js";
import type { InboundChannel } from "./inbound.js";
import { cachingInboundSource } from "./caching-inbound-source.js";
import type { IdOf } from "./external-cache.js";
import type { ExternalSource, FetchContext, MaybePromise } from "./external-source.js";
import { isolated } from "./isolated-source.js";
import { perPrimaryPollingSource } from "./per-primary-polling-source.js";
import { createPollingSource } from "./polling-source.js";

/** Where the resources of an external dependent come from. `Context` is what the `fetch` of one primary is called with. */
export type ExternalOrigin<Primary = KubernetesObject, Context = FetchContext, Resource = unknown> =
  | {
      readonly kind: "poll";
      readonly intervalMs: number;
      /** How long one fetch may take. Default: 60,000 */
      readonly fetchTimeoutMs?: number;
      readonly fetch: (
        context: Pick<FetchContext, "signal">,
      ) => MaybePromise<ReadonlyMap<ObjectKey, readonly Resource[]>>;
    }
  | {
      readonly kind: "perPrimaryPoll";
      readonly intervalMs: number;
      readonly fetchTimeoutMs?: number;
      readonly fetch: (primary: Primary, context: Context) => MaybePromise<readonly Resource[]>;
    }
  | {
      readonly kind: "inbound";
      readonly fetchTimeoutMs?: number;
      readonly fetch?: (primary: Primary, context: Context) => MaybePromise<readonly Resource[]>;
      readonly channel?: InboundChannel<Resource>;
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

/** What the source of an external dependent is made of. */
export interface ExternalSourceFacts {
  readonly sources: NamedSources;
  readonly primaries: IndexedPrimaries;
  /** Returns what runs a source of dependents; undefined for a source of the user. */
  activationOf(source: EventSource): Activation | undefined;
}

/** Returns what the driver of an external dependent works with. Throws if it shares an event source that cannot be shared so. */
export function createExternalDependentSource(
  watch: ExternalWatch,
  { sources, primaries, activationOf }: ExternalSourceFacts,
): ExternalDependentSource {
  const { name, origin } = watch;
  const wanted = origin.kind === "eventSource" ? origin.name : name;
  const source = checkRecording(watch, sharedSource(name, { wanted, sources }));
  const activation = watch.isActivatedLater ? activationOf(source) : undefined;
  return {
    source,
    isShared: origin.kind === "eventSource",
    secondariesOf: (primary) => source.secondariesOf(primary),
    load: async (primary, signal) => source.load?.(primary, signal),
    recordCreated: (...args) => source.recordCreated?.(...args),
    recordUpdated: (...args) => source.recordUpdated?.(...args),
    recordDeleted: (...args) => source.recordDeleted?.(...args),
    invalidate: (primary) => source.invalidate?.(primary),
    async activate(primary) {
      await activation?.activate(name, primary);
      const object = activation && primaries.get(primary)?.object;
      if (object !== undefined) await source.load?.(object, new AbortController().signal);
    },
    deactivate: async (primary) => activation?.deactivate(name, primary),
  };
}

type Records = "recordCreated" | "recordUpdated" | "recordDeleted" | "invalidate";
type RecordingSource = EventSource & Partial<Pick<ExternalSource<unknown>, Records>>;

function checkRecording({ name, isWritten }: ExternalWatch, source: EventSource): RecordingSource {
  // By what it can do: a source may come from another copy of this package.
  const isRecording = ["recordCreated", "recordUpdated", "recordDeleted"].every((member) => member in source);
  if (!isWritten || isRecording) return source as RecordingSource;
  throw new Error(
    `dependent "${name}" cannot share event source "${source.name}": that takes no resources of the controller's own (recordCreated, ` +
      "recordUpdated, recordDeleted); use a polling or a caching inbound source, or only read it",
  );
}
