import type { Connection } from "../cluster/connection.js";
import { isKubernetes, type KubernetesDependent } from "../workflow/workflow-definition.js";
import { checkDependents } from "./check-dependents.js";
import type { ControllerDefinition } from "./controller-definition.js";
import { defaultFinalizerOf } from "./finalizer.js";

/** Returns the finalizer that the primaries of a controller get; undefined if it needs none. */
export function finalizerOf(definition: ControllerDefinition): string | undefined {
  const { workflow, reconciler, reconcilesOnAllEvents = false } = definition;
  if (reconcilesOnAllEvents) return undefined;
  const cleansUp =
    reconciler?.cleanup !== undefined ||
    workflow.dependents.some((each) => !isKubernetes(each) || needsCleanup(each)) ||
    Object.values(workflow.removed ?? {}).some(({ policy }) => policy === "orphan");
  return cleansUp ? finalizerNameOf(definition) : undefined;
}

// What the garbage collector deletes needs none, nor what is only read; what is to be orphaned has to be untied before.
function needsCleanup({ mode, isGarbageCollected, onDelete }: KubernetesDependent): boolean {
  return mode !== "readOnly" && (!isGarbageCollected || onDelete === "orphan");
}

/** Returns the name of the finalizer of a controller, whether or not it needs one. */
export function finalizerNameOf({ finalizer, workflow }: ControllerDefinition): string {
  return finalizer ?? defaultFinalizerOf(workflow.primary);
}

/** Throws if the settings of a controller cannot work, saying which and what to do. */
export function checkController(definition: ControllerDefinition): void {
  const { name, workflow, reconciler, finalizer, filters } = definition;
  const fail = (problem: string) => new Error(`controller "${name}" ${problem}`);
  if (finalizer !== undefined && !isQualified(finalizer))
    throw fail(`has the finalizer "${finalizer}"; it needs a domain, as "${defaultFinalizerOf(workflow.primary)}" has`);
  if (definition.reconcilesOnAllEvents === true) {
    if (reconciler?.cleanup !== undefined)
      throw fail(
        "reconciles on all events, and there is no cleanup then; reconcile() is called for deleted primaries, with context.isPrimaryDeleted",
      );
    if (workflow.dependents.length > 0)
      throw fail(
        `reconciles on all events, and has dependents (${workflow.dependents.map((each) => each.name).join(", ")}); a workflow needs the ` +
          "finalizers that this mode is without: leave either out",
      );
  }
  const onDelete = (filters as { onDelete?: unknown } | undefined)?.onDelete;
  if (onDelete !== undefined)
    throw fail("has a filter onDelete; deletions of primaries are always taken, but for what filters.generic rejects");
  if (Array.isArray(definition.namespaces) && definition.namespaces.length === 0)
    throw fail("has an empty list of namespaces; leave it out to watch all of them");
  checkNumbers(definition, fail);
  checkDependents(workflow, fail);
}

function checkNumbers(definition: ControllerDefinition, fail: (problem: string) => Error): void {
  const { maxConcurrentReconciles, maxReconciliationIntervalMs } = definition;
  if (maxConcurrentReconciles !== undefined && !(maxConcurrentReconciles >= 1))
    throw fail(`has ${maxConcurrentReconciles} for maxConcurrentReconciles; it needs 1 or more`);
  if (maxReconciliationIntervalMs !== undefined && Number.isNaN(maxReconciliationIntervalMs))
    throw fail("has a maxReconciliationIntervalMs that is not a number; 0 means never");
}

/** Returns the namespaces that a controller watches, all of them if undefined. Throws if it asks for one that the connection lacks. */
export function namespacesOf(
  { name, namespaces }: Pick<ControllerDefinition, "name" | "namespaces">,
  { namespace, origin }: Pick<Connection, "namespace" | "origin">,
): readonly string[] | undefined {
  if (namespaces !== "current") return namespaces;
  if (namespace !== undefined) return [namespace];
  throw new Error(
    `controller "${name}" watches the namespace of its connection, and ${origin} has none; state one there, or list the namespaces`,
  );
}

// A domain, a slash, and a name (1.36, ValidateFinalizerName: a qualified name, with a domain unless it is Kubernetes' own).
function isQualified(finalizer: string): boolean {
  const match =
    /^([a-z0-9]([-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)\/([A-Za-z0-9]([-\w.]*[A-Za-z0-9])?)$/.exec(
      finalizer,
    );
  return match !== null && match[1]!.length <= 253 && match[4]!.length <= 63;
}
