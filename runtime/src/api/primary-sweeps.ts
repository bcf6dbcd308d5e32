// Sweeps clean up after primaries that no reconcile cleans up, because they were deleted without a finalizer or no longer match the selector. What is
// blocked or left behind is reported.
import type { WaitingPrimary } from "../base/activity.js";
import {
  type KubernetesObject,
  type ObjectKey,
  type ResourceDefinition,
  describeObject,
  keyOf,
  refOfKey,
} from "../base/kubernetes-object.js";
import { type Logger, messageOf } from "../base/logger.js";
import { systemClock } from "../base/wait.js";
import type { ApiClient } from "../client/api-client.js";
import { Sweeper } from "../reconcile/cleanup.js";
import { StuckPrimaries } from "../reconcile/primary-events.js";
import type { PrimaryReconciler } from "../reconcile/primary-reconciler.js";
import type { LinkedPrimary } from "../workflow/dependent-reconciler.js";
import type { ControllerCore, ControllerParts, SweepName, Sweepers } from "./controller-parts.js";

interface CleanupOptions {
  readonly signal: AbortSignal;
  readonly logger: Logger;
}

/** A kind of cleanup outside of reconciles. */
interface Sweep {
  /** Cleans up after one primary, with the result of a Sweeper's `cleanUp`. */
  cleanUp(runner: PrimaryReconciler, primary: KubernetesObject, options: CleanupOptions): Promise<number>;
  /** Returns the message for a failed cleanup of the primary with this name. */
  failureOf(name: string): string;
  /** The message in `stuck` that precedes the error. */
  readonly problem: string;
  /** Whether to also record an Event for a failure. */
  readonly isRecorded: boolean;
}

const SWEEPS: { readonly [Name in SweepName]: Sweep } = {
  deleted: {
    failureOf: (name) => `cleanup of deleted primary ${name} failed`,
    problem: "cleanup after deletion failed",
    isRecorded: true,
    cleanUp: (runner, object, options) => runner.cleanups.cleanUpDeleted(object, options),
  },
  unselected: {
    failureOf: (name) => `cleanup of ${name}, which no longer matches the selector of the controller, failed`,
    problem: "it no longer matches the selector, and its cleanup failed",
    isRecorded: false,
    cleanUp: (runner, object, options) => runner.cleanUpUnselected(object, options),
  },
};

export function createSweepers(core: ControllerCore): Sweepers {
  const { cleanupPolicy, cleanUpUnselected } = core.definition;
  return {
    ...(cleanupPolicy === "sweep" && { deleted: createSweeper(core, SWEEPS.deleted) }),
    ...(cleanUpUnselected === true && { unselected: createSweeper(core, SWEEPS.unselected) }),
  };
}

function createSweeper({ definition, operator, runner, controller: queue }: ControllerCore, sweep: Sweep): Sweeper {
  const { name: controller, workflow } = definition;
  const { logger, events } = operator;
  return new Sweeper({
    clock: systemClock,
    isReconciling: (object) => queue.isReconciling(object),
    cleanUp: (object, signal) => sweep.cleanUp(runner, object, { signal, logger }),
    onFailure: (about, error, retryAfterMs) => {
      const note = `${sweep.failureOf(describeObject(workflow.primary, about.metadata))}: ${messageOf(error)}; trying again`;
      logger.warn({ controller, primary: keyOf(about.metadata), retryAfterMs: Math.round(retryAfterMs) }, note);
      if (sweep.isRecorded)
        events.record({ controller, about }, { type: "Warning", reason: "CleanupFailed", action: "Delete", note });
    },
  });
}

export function sweepFailures(sweepers: Sweepers): readonly WaitingPrimary[] {
  return (["deleted", "unselected"] as const).flatMap((name) =>
    (sweepers[name]?.failures ?? []).map(({ primary, error }) => ({
      primary: keyOf(primary.metadata),
      reason: `${SWEEPS[name].problem}: ${messageOf(error)}`,
    })),
  );
}

/** Cleans up after deleted primaries: those that objects are linked to and that are not in the cache. */
export function sweepDeleted(parts: ControllerParts): void {
  const { sweepers, runner, stopping } = parts;
  if (sweepers.deleted === undefined || !parts.isPrepared() || stopping.signal.aborted) return;
  const linked = runner.workflows.linkedPrimaries((key, uid) => isKnown(parts, key, uid));
  for (const stub of stubsOf(parts, linked)) sweepers.deleted.add(stub);
}

export function createStuck(core: ControllerCore, { unselected }: Sweepers): StuckPrimaries {
  const { operator, runner, sources, finalizer, stopping } = core;
  const { client, logger, events } = operator;
  const { name: controller, workflow, labelSelector, fieldSelector } = core.definition;
  const { primary: definition } = workflow;
  const selectors = [labelSelector, fieldSelector].filter((each) => each !== undefined);
  return new StuckPrimaries({
    ...{ controller, definition, logger, events, finalizer, clock: systemClock, signal: stopping.signal },
    selector: selectors.length === 0 ? undefined : selectors.join(","),
    cleanUp: unselected && ((primary) => unselected.add(primary)),
    list: (signal) => listPrimaries(client, { definition, namespaces: sources.namespaces, signal }),
    isSelected: (primary) =>
      isKnown(core, keyOf(primary.metadata), primary.metadata.uid) || sources.unknownFor(primary) !== undefined,
    isGone: (primary, signal) => runner.cleanups.isGone(primary, signal),
    leftOf: (primary) => runner.workflows.leftOf(primary),
    linked: () =>
      stubsOf(
        core,
        runner.workflows.primariesOfOrdered((key, uid) => isKnown(core, key, uid)),
      ),
  });
}

async function* listPrimaries(
  client: ApiClient,
  options: { definition: ResourceDefinition; namespaces: readonly string[] | undefined; signal: AbortSignal },
): AsyncGenerator<readonly KubernetesObject[], void> {
  const { definition, namespaces, signal } = options;
  const isNamespaced = definition.scope === "Namespaced";
  for (const namespace of isNamespaced ? (namespaces ?? [undefined]) : [undefined])
    yield* client.listMetadata({ definition }, { namespace, signal });
}

function isKnown({ primaries }: ControllerCore, key: ObjectKey, uid: string | undefined): boolean {
  return primaries.get(key)?.object.metadata.uid === uid;
}

// While the watch of a namespace is not synced, a primary in it that is not in the cache may still exist.
function stubsOf(
  { definition, sources }: ControllerCore,
  linked: readonly LinkedPrimary[],
): readonly KubernetesObject[] {
  const { apiVersion, kind } = definition.workflow.primary;
  const stubs = linked.map(({ key, uid }) => ({ apiVersion, kind, metadata: { ...refOfKey(key), uid } }));
  return stubs.filter((stub) => sources.unknownFor(stub) === undefined);
}
