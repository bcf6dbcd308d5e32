// Runs controllers. Each reconciles objects of one kind when they or the objects that they depend on change; a key is never reconciled twice at once.
import { clearTimeout, elapsedMs, setTimeout } from "../../clock.js";
import type { KeyedCertificate } from "../../x509/authority.js";
import { ApiError, type Requests } from "./api-client.js";
import type { Cluster } from "./cluster.js";
import { type KubernetesObject, keyOfObject } from "./kubernetes-object.js";

/** Dependencies of a reconcile. */
export interface ControllerContext {
  cluster: Cluster;
  /** Reads objects that are not cached. */
  client: Requests;
  /** The time of the server. */
  now(): Date;
  /** The duration of a Pod start and of other simulated delays, in milliseconds. */
  delayMs: number;
  /** CA certificate of the server as PEM. */
  ca: string | undefined;
  /** The CA that signs client certificates; the server trusts it. */
  authority: KeyedCertificate | undefined;
}

/** A controller of one kind; kinds are identified by `plural.group`. */
export interface Controller<T extends KubernetesObject = KubernetesObject> {
  kind: string;
  /** Maps changed objects of other kinds to keys of this kind. */
  watches?: Record<string, (changed: KubernetesObject, cluster: Cluster) => string[]>;
  /** Reconciles an object; returns the milliseconds after which it is requeued, if any. */
  reconcile(object: T, context: ControllerContext): Promise<number | undefined | void>;
  /** Called after an object was deleted. */
  gone?(key: string, context: ControllerContext): Promise<void>;
}

/** Running controllers, which are notified of changes. */
export interface Controllers {
  kinds: string[];
  changed(kind: string, object: KubernetesObject): void;
  start(context: ControllerContext): void;
  /** Requeues all waiting keys, because the clock was changed. */
  wake(): void;
  close(): void;
}

const CONCURRENCY = 8;
const CONFLICT_PAUSE_MS = 20;

/** Creates controllers; changes are buffered until `start`. */
export function createControllers(
  controllers: Controller[],
  onError: (error: unknown, key: string) => void,
): Controllers {
  let context: ControllerContext | undefined;
  const early: [string, KubernetesObject][] = [];
  const runs = controllers.map((controller) => {
    const work = async (key: string): Promise<void> => {
      if (context === undefined) return;
      const object = context.cluster.get(controller.kind, key);
      try {
        const again = await (object === undefined
          ? controller.gone?.(key, context)
          : controller.reconcile(object, context));
        if (typeof again === "number") queue.add(key, again);
      } catch (error) {
        // The cache was stale; the watch event is about to arrive.
        if (!isOutdated(error)) throw error;
        queue.add(key, CONFLICT_PAUSE_MS);
      }
    };
    const queue: KeyedQueue = new KeyedQueue({ work, concurrency: CONCURRENCY, onError });
    return { controller, queue };
  });
  const changed: Controllers["changed"] = (kind, object) => {
    if (context === undefined) {
      early.push([kind, object]);
      return;
    }
    for (const { controller, queue } of runs) {
      if (controller.kind === kind) queue.add(keyOfObject(object.metadata));
      for (const key of controller.watches?.[kind]?.(object, context.cluster) ?? []) queue.add(key);
    }
  };
  return {
    kinds: [...new Set(controllers.flatMap(({ kind, watches = {} }) => [kind, ...Object.keys(watches)]))],
    changed,
    start(started) {
      context = started;
      for (const [kind, object] of early.splice(0)) changed(kind, object);
    },
    wake() {
      for (const { queue } of runs) queue.wake();
    },
    close() {
      for (const { queue } of runs) queue.close();
    },
  };
}

/** True for a conflict, or if the object was deleted or its namespace is terminating. */
function isOutdated(error: unknown): boolean {
  if (!(error instanceof ApiError)) return false;
  return error.status === 409 || error.status === 404 || error.message.includes("is being terminated");
}

/** Options of a KeyedQueue. */

interface KeyedQueueOptions {
  work: (key: string) => Promise<void>;
  concurrency: number;
  /** Called for each failed attempt, which is retried. */
  onError: (error: unknown, key: string) => void;
}

const FIRST_RETRY_MS = 25;
const LONGEST_RETRY_MS = 5_000;

/**
 * Work queue of keys; a key is never processed twice at once.
 *
 * A key that is added while it is processed is processed again afterwards. Failed keys are retried with exponential backoff.
 */
export class KeyedQueue {
  readonly #options: KeyedQueueOptions;
  readonly #ready = new Set<string>();
  readonly #running = new Set<string>();
  readonly #timers = new Map<string, { timer: NodeJS.Timeout; dueAt: number }>();
  readonly #failures = new Map<string, number>();
  #isClosed = false;

  constructor(options: KeyedQueueOptions) {
    this.#options = options;
  }

  /** Enqueues a key after a delay; for a waiting key, the earlier due time wins. */
  add(key: string, delayMs = 0): void {
    if (this.#isClosed || this.#ready.has(key)) return;
    const waiting = this.#timers.get(key);
    const dueAt = elapsedMs() + delayMs;
    if (waiting !== undefined && waiting.dueAt <= dueAt) return;
    clearTimeout(waiting?.timer);
    this.#timers.delete(key);
    if (delayMs <= 0) {
      this.#ready.add(key);
      this.#startWork();
    } else {
      const timer = setTimeout(() => {
        this.#timers.delete(key);
        this.add(key);
      }, delayMs);
      timer.unref();
      this.#timers.set(key, { timer, dueAt });
    }
  }

  /** Enqueues all delayed keys now, because the clock that their delay was computed from was changed. */
  wake(): void {
    for (const key of [...this.#timers.keys()]) this.add(key);
  }

  /** Drops all keys; work in progress is not interrupted. */
  close(): void {
    this.#isClosed = true;
    this.#ready.clear();
    for (const { timer } of this.#timers.values()) clearTimeout(timer);
    this.#timers.clear();
  }

  #startWork(): void {
    for (const key of this.#ready) {
      if (this.#running.size >= this.#options.concurrency) return;
      if (this.#running.has(key)) continue;
      this.#ready.delete(key);
      this.#running.add(key);
      void this.#work(key);
    }
  }

  async #work(key: string): Promise<void> {
    try {
      await this.#options.work(key);
      this.#failures.delete(key);
    } catch (error) {
      const failures = this.#failures.get(key) ?? 0;
      this.#failures.set(key, failures + 1);
      if (!this.#isClosed) this.#options.onError(error, key);
      this.add(key, Math.min(FIRST_RETRY_MS * 2 ** failures, LONGEST_RETRY_MS));
    } finally {
      this.#running.delete(key);
      this.#startWork();
    }
  }
}
