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

/** What a controller without work is made of. */
export interface NoOpOptions extends Pick<ControllerDefinition, "maxConcurrentReconciles"> {
  readonly primaries: PrimaryLookup;
  /** Called for every reconcile; what it returns is waited for. */
  onReconcile(key: ObjectKey): Promise<unknown> | void;
  /** Told about every reconcile that ended, as everybody has who wants metrics; nobody unless given. */
  readonly observer?: ReconcileObserver;
}

/** Creates the runtime's controller with reconciles that find nothing to do. */
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

/** A primary without anything in it. */
export function createShop(namespace: string, name: string, generation = 1): KubernetesObject {
  const uid = `${namespace}/${name}`;
  const metadata = { name, namespace, uid, generation, resourceVersion: String(generation) };
  return { apiVersion: shops.apiVersion, kind: shops.kind, metadata };
}
