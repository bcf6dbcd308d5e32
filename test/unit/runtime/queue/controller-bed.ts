// A controller on a clock that stands still, whose reconciles do what the test says.
import type { DecodedResource, KubernetesObject, ObjectKey } from "#runtime/base/kubernetes-object.js";
import { unseenDeletionOf } from "#runtime/cache/resource-cache.js";
import {
  Controller,
  type PrimaryOutcome,
  type ReconcileScope,
  type ReconcileEvent,
} from "#runtime/queue/controller.js";
import type { ControllerDefinition } from "#runtime/reconcile/controller-definition.js";
import type { Suspects } from "#runtime/queue/work-queue.js";
import { VirtualClock } from "../../../support/runtime/virtual-clock.js";
import { page } from "../workflow/graphs.js";

/** The key of the primary that the functions of a bed mean unless they are told otherwise. */
export const KEY = "home/one";

/** What a reconcile returns that found nothing to do. */
export const SUCCESS: PrimaryOutcome = {
  kind: "reconcile",
  isFinalizerRemoved: false,
  wroteStatus: false,
  wroteResource: false,
};

/** Returns the outcome of a reconcile that failed. */
export function failureOf(error: unknown = new Error("no"), isHandled = false): PrimaryOutcome {
  return { ...SUCCESS, failure: { error, isHandled } };
}

/** What a reconcile was called with when it started. */
export interface Started {
  readonly key: ObjectKey;
  readonly at: number;
  readonly scope: ReconcileScope;
  readonly object: KubernetesObject;
  readonly attempt: number;
  readonly isLastAttempt: boolean;
}

/** What a bed is made of. */
export interface BedOptions extends Partial<ControllerDefinition> {
  /** False to leave the start to the test. */
  readonly isStarted?: boolean;
  /** Draws how long intervals are; the shortest retry and the longest resync unless given. */
  readonly random?: () => number;
  /** Told about every reconcile besides the record. */
  readonly observer?: (event: ReconcileEvent) => void;
  /** The suspects of this controller and others, with the clock that they share. */
  readonly shared?: { readonly clock: VirtualClock; readonly suspects: Suspects };
  readonly isUndone?: (entry: DecodedResource) => boolean;
  readonly inputsOf?: (entry: DecodedResource) => string | undefined;
}

/** Creates a controller without dependents, a cache that the test fills, and a record of all that happens. */
export function createBed({
  isStarted = true,
  isUndone = () => false,
  inputsOf = () => undefined,
  observer,
  random = () => 0,
  shared,
  ...definition
}: BedOptions = {}) {
  const { clock = new VirtualClock(), suspects } = { ...shared };
  const cache = new Map<ObjectKey, DecodedResource>();
  const started: Started[] = [];
  const events: ReconcileEvent[] = [];
  const released: ObjectKey[] = [];
  const lines: { readonly level: string; readonly message: string; readonly fields: object }[] = [];
  const logAs = (level: string) => (fields: object, message: string) => void lines.push({ level, message, fields });
  let outcomeOf: (scope: ReconcileScope) => PrimaryOutcome | Promise<PrimaryOutcome> = () => SUCCESS;
  const run = async (scope: ReconcileScope): Promise<PrimaryOutcome> => {
    const { key, entry, retry } = scope;
    started.push({ key, at: clock.now(), scope, object: entry.object, ...retry });
    return outcomeOf(scope);
  };
  const controller = new Controller(
    { name: "page", workflow: { primary: page, dependents: [] }, ...definition },
    {
      primaries: cache,
      runner: { run, isUndone, inputsOf, release: (key) => void released.push(key) },
      logger: { debug: logAs("debug"), info: logAs("info"), warn: logAs("warn"), error: logAs("error") },
      observer: (event) => {
        events.push(event);
        observer?.(event);
      },
      clock,
      random,
      suspects,
    },
  );
  if (isStarted) controller.start();
  let version = 0;

  /** Brings a state of a primary, as a cache does. */
  const observe = (metadata: Partial<KubernetesObject["metadata"]> = {}, options: { isInitial?: boolean } = {}) => {
    const generation = ++version;
    const named = { name: "one", namespace: "home", uid: "u1", generation, resourceVersion: `${version}`, ...metadata };
    const object: KubernetesObject = { apiVersion: "example.com/v1", kind: "Page", metadata: named };
    const key = `${named.namespace}/${named.name}`;
    const old = cache.get(key)?.object;
    cache.set(key, { object });
    const { isInitial = false } = options;
    const isAnother = old !== undefined && old.metadata.uid !== named.uid;
    if (isAnother) controller.onPrimaryChange(unseenDeletionOf(old, isInitial));
    const change = { key, object, isInitial };
    controller.onPrimaryChange(
      old === undefined || isAnother ? { ...change, kind: "added" } : { ...change, kind: "updated", old },
    );
    return object;
  };

  /** Brings the deletion of a primary. */
  const observeDeletion = (key: ObjectKey = KEY, { isFinalStateUnknown = false } = {}) => {
    const object = cache.get(key)!.object;
    cache.delete(key);
    controller.onPrimaryChange({ kind: "deleted", key, object, old: object, isInitial: false, isFinalStateUnknown });
  };

  /** Brings a change of something that belongs to a primary. */
  const observeSecondary = (key: ObjectKey = KEY, source = "web") => controller.onSecondaryChange([key], { source });

  /** Lets everything that is due run to its end. */
  const settle = async () => {
    for (let turn = 0; turn < 4; turn++) await new Promise((resolve) => setImmediate(resolve));
  };
  const advance = async (ms: number) => {
    clock.advance(ms);
    await settle();
  };

  /** Makes every reconcile from now on wait until the returned function gives its outcome; one call for each reconcile. */
  const hold = () => {
    const waiting: ((outcome: PrimaryOutcome) => void)[] = [];
    outcomeOf = () => new Promise((resolve) => waiting.push(resolve));
    return async (outcome: PrimaryOutcome = SUCCESS) => {
      waiting.shift()?.(outcome);
      await settle();
    };
  };
  const respond = (next: typeof outcomeOf) => void (outcomeOf = next);

  return {
    controller,
    clock,
    cache,
    started,
    events,
    released,
    lines,
    observe,
    observeDeletion,
    observeSecondary,
    settle,
    advance,
    hold,
    respond,
    /** The times at which reconciles started. */
    times: () => started.map(({ at }) => at),
    /** What waits for the clock. */
    nextIn: () => (clock.nextDueAt === undefined ? undefined : clock.nextDueAt - clock.now()),
  };
}
