// How the resources of external dependents are known: by an event source of the dependent's own, or by one of the user.
import { keyOf, type KubernetesObject, type ObjectKey } from "../../base/kubernetes-object.js";
import type { EventSource, IndexedPrimaries } from "../event-source.js";
import type { RegisteredSource } from "../registered-source.js";
import { cachingInboundSource, type CachingInboundSourceOptions } from "./caching-inbound-source.js";
import type { IdOf } from "./external-cache.js";
import type { ExternalSource, FetchContext, MaybePromise } from "./external-source.js";
import { perPrimaryPollingSource, type PerPrimaryPollingSourceOptions } from "./per-primary-polling-source.js";
import { pollingSource, type PollingSourceOptions } from "./polling-source.js";

// What the dependent says itself is left out.
type Own = "filters" | "idOf" | "name" | "type";
type FetchOfOne<Primary, Context, Resource> = (primary: Primary, context: Context) => MaybePromise<readonly Resource[]>;

/** Where the resources of an external dependent come from. `Context` is what the `fetch` of one primary is called with. */
export type ExternalOrigin<Primary = KubernetesObject, Context = FetchContext, Resource = unknown> =
  | ({ readonly kind: "poll" } & Omit<PollingSourceOptions<Resource>, Own>)
  | ({ readonly kind: "perPrimaryPoll"; readonly fetch: FetchOfOne<Primary, Context, Resource> } & Omit<
      PerPrimaryPollingSourceOptions<Resource>,
      Own | "fetch"
    >)
  | ({ readonly kind: "inbound"; readonly fetch?: FetchOfOne<Primary, Context, Resource> } & Omit<
      CachingInboundSourceOptions<Resource>,
      Own | "fetch"
    >)
  | { readonly kind: "eventSource"; readonly name: string };

/** What a controller wants to know of one of its external dependents. */
export interface ExternalWatch {
  /** The name of the dependent. An event source of its own has it as name and as type. */
  readonly name: string;
  readonly origin: ExternalOrigin;
  readonly idOf: IdOf<unknown>;
  readonly isActivatedLater: boolean;
  /** Whether the dependent changes its resources, so that the event source has to take what it did. */
  readonly isWritten: boolean;
  /** Called before what is known of a primary is used by a reconcile; resolves with whether it has to be fetched again. Default: it has not */
  readonly prepare?: ((primary: KubernetesObject, signal: AbortSignal) => Promise<boolean>) | undefined;
}

/** The event source of an external dependent, as its reconciler needs it. */
export type ExternalDependentSource = ReturnType<typeof createExternalDependentSource>;

/** Returns the name of the event source of the user that a dependent shares; undefined if it has one of its own. */
export function sharedBy({ origin }: ExternalWatch): string | undefined {
  return origin.kind === "eventSource" ? origin.name : undefined;
}

/** Creates the event source of a dependent's own; undefined if it shares one of the user's. */
export function createExternalSource({
  name,
  origin,
  idOf,
  prepare,
}: ExternalWatch): ExternalSource<unknown> | undefined {
  const own = { name, type: name, idOf };
  if (origin.kind === "eventSource") return undefined;
  if (origin.kind === "poll") return isolated(pollingSource({ ...origin, ...own }, { isAwaited: false }), prepare);
  if (origin.kind === "inbound") return isolated(cachingInboundSource({ ...origin, ...own }), prepare);
  return isolated(perPrimaryPollingSource({ ...origin, ...own }), prepare);
}

/**
 * Returns a source whose `load` never fails: what could not be fetched is thrown when the resources of the primary are read. So a service
 * that is down fails the dependents that need it, and nothing else of the primary.
 */
export function isolated<Source extends ExternalSource<unknown>>(
  source: Source,
  prepare?: ExternalWatch["prepare"],
): Source {
  const failures = new Map<ObjectKey, { readonly error: unknown }>();
  const members: Pick<ExternalSource<unknown>, "load" | "secondariesOf" | "onPrimaryChange" | "stop"> = {
    async load(primary, signal) {
      const key = keyOf(primary.metadata);
      failures.delete(key);
      try {
        if ((await prepare?.(primary, signal)) === true) source.invalidate(key);
        await source.load?.(primary, signal);
      } catch (error) {
        failures.set(key, { error });
      }
    },
    secondariesOf(primary) {
      const failure = failures.get(keyOf(primary.metadata));
      if (failure !== undefined) throw failure.error;
      return source.secondariesOf(primary);
    },
    onPrimaryChange(change) {
      if (change.kind === "deleted") failures.delete(change.key);
      source.onPrimaryChange?.(change);
    },
    stop() {
      failures.clear();
      return source.stop();
    },
  };
  // All else is the source's own, its getters included.
  return Object.assign(Object.create(source) as Source, members);
}

/** Returns what the reconciler of an external dependent works with. Throws if it shares an event source that cannot be shared so. */
export function createExternalDependentSource(
  watch: ExternalWatch,
  registered: RegisteredSource,
  primaries: IndexedPrimaries,
) {
  const source = checkRecording(watch, registered.source);
  const { name } = watch;
  return {
    /** Whether other dependents may look at it, too. */
    isShared: sharedBy(watch) !== undefined,
    secondariesOf: (primary: KubernetesObject) => source.secondariesOf(primary),
    load: async (primary: KubernetesObject, signal: AbortSignal) => source.load?.(primary, signal),
    recordCreated: (...args: Parameters<ExternalSource<unknown>["recordCreated"]>) => source.recordCreated?.(...args),
    recordUpdated: (...args: Parameters<ExternalSource<unknown>["recordUpdated"]>) => source.recordUpdated?.(...args),
    recordDeleted: (...args: Parameters<ExternalSource<unknown>["recordDeleted"]>) => source.recordDeleted?.(...args),
    invalidate: (primary: ObjectKey) => source.invalidate?.(primary),
    /** Starts the source for a primary, and fetches the resources of that. A failure of the fetch is thrown when the resources are read. */
    async activate(primary: ObjectKey) {
      await registered.activate(name, primary);
      const object = registered.role === "user" ? undefined : primaries.get(primary)?.object;
      if (object !== undefined) await source.load?.(object, new AbortController().signal);
    },
    deactivate: (primary: ObjectKey) => registered.deactivate(name, primary),
  };
}

function checkRecording(
  { name, isWritten }: ExternalWatch,
  source: EventSource,
): EventSource & Partial<ExternalSource<unknown>> {
  // By what it can do: a source may come from another copy of this package.
  const isRecording = ["recordCreated", "recordUpdated", "recordDeleted"].every((member) => member in source);
  if (!isWritten || isRecording) return source;
  throw new Error(
    `dependent "${name}" cannot share event source "${source.name}": that takes no resources of the controller's own (recordCreated, ` +
      "recordUpdated, recordDeleted); use a polling or a caching inbound source, or only read it",
  );
}
