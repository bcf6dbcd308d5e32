// Runs controllers: each has objects that it brings about, one at a time, whenever they or what they depend on change.
import type { KeyedCertificate } from "../../x509/authority.js";
import { ApiError, type Requests } from "./api-client.js";
import type { Cluster } from "./cluster.js";
import { KeyedQueue } from "./keyed-queue.js";
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
