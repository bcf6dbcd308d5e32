import type { ResourceDefinition } from "../base/resource-definition.js";
import { isKubernetes, type DependentDefinition } from "../workflow/definition/workflow-definition.js";
import type { ControllerDefinition } from "./controller-definition.js";

/** Returns the finalizer that a controller puts on objects of a kind, as JOSDK names it. */
export function defaultFinalizerOf({ plural, group }: ResourceDefinition): string {
  // Finalizers have to be qualified by a domain, which the core group and groups without a dot are not.
  const qualified = group === "" ? plural : `${plural}.${group}`;
  return qualified.includes(".") ? `${qualified}/finalizer` : `${qualified}.gen-operator.dev/finalizer`;
}

/** Returns the finalizer that the primaries of a controller get; undefined if it needs none. */
export function finalizerOf(definition: ControllerDefinition): string | undefined {
  const { workflow, reconciler, onAllEvents = false } = definition;
  if (onAllEvents) return undefined;
  const cleansUp =
    reconciler?.cleanup !== undefined ||
    workflow.dependents.some(needsCleanup) ||
    Object.values(workflow.removed ?? {}).some(({ policy }) => policy === "orphan");
  return cleansUp ? finalizerNameOf(definition) : undefined;
}

// What the garbage collector deletes needs none, nor what is only read; what is to be orphaned has to be untied before.
function needsCleanup(dependent: DependentDefinition): boolean {
  if (!isKubernetes(dependent)) return dependent.delete !== undefined;
  const { mode, garbageCollected, onDelete, operations } = dependent;
  return mode !== "readOnly" && operations?.delete !== false && (!garbageCollected || onDelete === "orphan");
}

/** Returns the name of the finalizer of a controller, whether or not it needs one. */
export function finalizerNameOf({ finalizer, workflow }: ControllerDefinition): string {
  return finalizer ?? defaultFinalizerOf(workflow.primary);
}
