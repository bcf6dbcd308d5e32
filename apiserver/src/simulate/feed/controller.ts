// Runs controllers: each has objects that it brings about, one at a time, whenever they or what they depend on change.
import { clearTimeout, elapsedMs, setTimeout } from "../../clock.js";
import type { KeyedCertificate } from "../../x509/authority.js";
import { ApiError, type Requests } from "./api-client.js";
import type { Cluster } from "./cluster.js";
import { type KubernetesObject, keyOfObject } from "./kubernetes-object.js";

/** What reconciles may use. */
export interface ControllerContext {
  cluster: Cluster;
  /** Asks the server for what no cache holds. */
  client: Requests;
  /** The time of the server. */
  now(): Date;
  /** The time that the start of a pod takes, and other things that take time. */
  delayMs: number;
  /** The authority of the server, as PEM. */
  ca: string | undefined;
  /** What signs the certificates of clients that the server trusts. */
  authority: KeyedCertificate | undefined;
}

/** A controller of objects of one kind; kinds are named by `plural.group`. */
export interface Controller<T extends KubernetesObject = KubernetesObject> {
  kind: string;
  /** Kinds whose changes concern objects of this kind, and which: by key. */
  watches?: Record<string, (changed: KubernetesObject, cluster: Cluster) => string[]>;
  /** Brings an object about; returns after which time it is to be called again, in milliseconds. */
  reconcile(object: T, context: ControllerContext): Promise<number | undefined | void>;
  /** Called for an object that is gone. */
  gone?(key: string, context: ControllerContext): Promise<void>;
}

/** Controllers that can be told of changes. */
export interface Controllers {
  kinds: string[];
  changed(kind: string, object: KubernetesObject): void;
  start(context: ControllerContext): void;
  /** The clock was shifted. */
  wake(): void;
  close(): void;
}

const CONCURRENCY = 8;
const CONFLICT_PAUSE_MS = 20;

/** Makes controllers that act once they are started. */
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
        // The watch is about to tell what we did not know.
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

/** Another wrote first, or the object or its namespace is on its way out. */
function isOutdated(error: unknown): boolean {
  if (!(error instanceof ApiError)) return false;
  return error.status === 409 || error.status === 404 || error.message.includes("is being terminated");
}

/** What a queue does with its keys. */

interface KeyedQueueOptions {
  work: (key: string) => Promise<void>;
  concurrency: number;
  /** Learns of every failed attempt; it will be made again. */
  onError: (error: unknown, key: string) => void;
}

const FIRST_RETRY_MS = 25;
const LONGEST_RETRY_MS = 5_000;

/**
 * Works on keys, never on one key twice at once.
 *
 * A key that is added while it is worked on is worked on again afterwards. Work that fails is tried again after growing pauses.
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

  /** Schedules a key; of two due times of a waiting key the earlier one counts. */
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

  /** Works at once on the keys that wait: the clock by which they were to wait has changed. */
  wake(): void {
    for (const key of [...this.#timers.keys()]) this.add(key);
  }

  /** Forgets all keys; work that is going on ends by itself. */
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
