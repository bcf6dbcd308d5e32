import type { JsonPatchOperation, KubernetesObject } from "../base/kubernetes-object.js";
import type { ResourceDefinition } from "../base/resource-definition.js";
import type { DecodedResource } from "../decode/decode-resource.js";
import { jsonDiff } from "../match/json-patch.js";
import type { WriteTarget } from "../write/send/apply-matcher.js";
import { isKubernetes, type DependentDefinition } from "../workflow/definition/workflow-definition.js";
import { onLatest } from "../write/send/on-latest.js";
import { planJsonPatch, uidTest } from "../write/send/plan.js";
import type { WriteCause } from "../write/send/postponed-write.js";
import type { Sender } from "../write/send/send.js";
import type { ControllerDefinition } from "./controller-definition.js";

/** Returns the finalizer that a controller puts on objects of a kind, as JOSDK names it. */
export function defaultFinalizerOf({ plural, group }: ResourceDefinition): string {
  // Finalizers have to be qualified by a domain, which the core group and groups without a dot are not.
  const qualified = group === "" ? plural : `${plural}.${group}`;
  return qualified.includes(".") ? `${qualified}/finalizer` : `${qualified}.gen-operator.dev/finalizer`;
}

/** Tells whether an object has a finalizer. */
export function hasFinalizer({ metadata }: KubernetesObject, finalizer: string): boolean {
  return metadata.finalizers?.includes(finalizer) ?? false;
}

/** How finalizers are put on primaries, and removed. */
export interface FinalizerWrite {
  readonly target: WriteTarget;
  readonly sender: Sender;
  readonly finalizer: string;
  readonly cause?: WriteCause | undefined;
}

/**
 * Puts a finalizer on an object by a JSON patch; returns its new state, or undefined if it is gone or being deleted.
 *
 * Returns the state that has it if somebody else put it there meanwhile. A finalizer is never held back, whoever takes it off.
 */
export async function patchFinalizerIn(
  entry: DecodedResource,
  { finalizer, ...write }: FinalizerWrite,
): Promise<DecodedResource | undefined> {
  const add = async (state: DecodedResource) => {
    const { metadata } = state.object;
    const { finalizers = [] } = metadata;
    if (metadata.deletionTimestamp !== undefined) return undefined;
    if (finalizers.includes(finalizer)) return state;
    const after = { ...metadata, finalizers: [...finalizers, finalizer] };
    return patch(state, jsonDiff({ metadata }, { metadata: after }), write);
  };
  return onLatest(entry, add, write);
}

/** Removes a finalizer, which lets an object go that is being deleted. */
export async function removeFinalizer(
  object: KubernetesObject,
  { finalizer, ...write }: FinalizerWrite,
): Promise<void> {
  const remove = (state: DecodedResource) => {
    const index = state.object.metadata.finalizers?.indexOf(finalizer) ?? -1;
    const path = `/metadata/finalizers/${index}`;
    const operations = [
      { op: "test", path, value: finalizer },
      { op: "remove", path },
    ] as const;
    return patch(state, index === -1 ? [] : operations, write);
  };
  await onLatest({ object }, remove, write);
}

async function patch(
  before: DecodedResource,
  operations: readonly JsonPatchOperation[],
  { target, sender, cause }: Omit<FinalizerWrite, "finalizer">,
): Promise<DecodedResource> {
  if (operations.length === 0) return before;
  const change = [uidTest(before.object.metadata.uid), ...operations];
  const plan = planJsonPatch(target.definition, before.object, { change, isStatus: false });
  const sent = await sender.send({ target, plan, before, cause, isUrgent: true });
  return sent.kind === "postponed" ? before : sent.entry;
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
