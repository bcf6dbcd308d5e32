import type { KubernetesObject, ObjectKey } from "#runtime/base/kubernetes-object.js";
import {
  Controller,
  type PrimaryLookup,
  type PrimaryOutcome,
  type ReconcileObserver,
} from "#runtime/queue/controller.js";
import type { ControllerDefinition } from "#runtime/reconcile/controller-definition.js";
import { shops } from "./kinds.js";
import { createLogger } from "#runtime/base/logger.js";

const NOTHING_DONE: PrimaryOutcome = {
  kind: "reconcile",
  isFinalizerRemoved: false,
  wroteStatus: false,
  wroteResource: false,
};

/** The options of a controller whose reconciles do nothing. */
export interface NoOpOptions extends Pick<ControllerDefinition, "maxConcurrentReconciles"> {
  readonly primaries: PrimaryLookup;
  /** Called for each reconcile; a returned promise is awaited. */
  onReconcile(key: ObjectKey): Promise<unknown> | void;
  /** Notified of each completed reconcile, as the metrics observer is. Default: none */
  readonly observer?: ReconcileObserver;
}

/** Creates a controller of the runtime whose reconciles find nothing to do. */
export function createNoOpController({ primaries, onReconcile, observer, ...settings }: NoOpOptions): Controller {
  const definition = { name: "shop", workflow: { primary: shops, dependents: [] }, ...settings };
  const runner = {
    async run({ key }: { key: ObjectKey }) {
      const work = onReconcile(key);
      if (work !== undefined) await work;
      return NOTHING_DONE;
    },
    isUndone: () => false,
    inputsOf: () => undefined,
    release: () => {},
  };
  return new Controller(definition, { primaries, runner, logger: createLogger("warn"), observer });
}

/** Creates an empty primary. */
export function createShop(namespace: string, name: string, generation = 1): KubernetesObject {
  const uid = `${namespace}/${name}`;
  const metadata = { name, namespace, uid, generation, resourceVersion: String(generation) };
  return { apiVersion: shops.apiVersion, kind: shops.kind, metadata };
}
