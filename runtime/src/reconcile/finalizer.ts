import type { ControllerDefinition } from "./controller-definition.js";
import { isKubernetes, type DependentDefinition } from "../workflow/definition/workflow-definition.js";
import { isApiError } from "../base/errors.js";
import { keyOf, type KubernetesObject, type ObjectMeta, type JsonPatchOperation } from "../base/kubernetes-object.js";
import type { ResourceDefinition } from "../base/resource-definition.js";
import type { DecodedResource } from "../decode/decode-resource.js";
import { isAnswerTo, uidTest, type JsonWrite } from "./json-write.js";
import { jsonDiff } from "../match/json-patch.js";

const MAX_ATTEMPTS = 10;

/** With what the finalizer of an object is changed. */
export interface FinalizerPatch extends JsonWrite {
  readonly finalizer: string;
}

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

/** What an object gets besides its finalizer, in the same request. */
export interface FinalizerAddition extends FinalizerPatch {
  /** Returns the annotations that an object lacks; it gets none if absent. */
  readonly annotationsFor?: ((object: KubernetesObject) => { readonly [name: string]: string }) | undefined;
}

/**
 * Puts a finalizer on an object by a JSON patch; returns its new state, or undefined if it is gone or being deleted.
 *
 * Returns `entry` itself if somebody else put it there meanwhile.
 */
export async function patchFinalizerIn(
  entry: DecodedResource,
  options: FinalizerAddition,
): Promise<DecodedResource | undefined> {
  const { finalizer, annotationsFor } = options;
  const result = await patchFinalizers(entry.object, options, (current) => {
    const { metadata } = current;
    const { finalizers = [] } = metadata;
    if (metadata.deletionTimestamp !== undefined) return "stop";
    const annotations = { ...metadata.annotations, ...annotationsFor?.(current) };
    const after = {
      ...metadata,
      finalizers: finalizers.includes(finalizer) ? finalizers : [...finalizers, finalizer],
      ...(Object.keys(annotations).length > 0 ? { annotations } : {}),
    };
    const operations = jsonDiff({ metadata }, { metadata: after });
    return operations.length === 0 ? "done" : { after, operations };
  });
  return result === "done" ? entry : result;
}

/** Removes a finalizer, which lets an object go that is being deleted. */
export async function removeFinalizer(object: KubernetesObject, options: FinalizerPatch): Promise<void> {
  const { finalizer } = options;
  await patchFinalizers(object, options, ({ metadata }) => {
    const { finalizers = [] } = metadata;
    const index = finalizers.indexOf(finalizer);
    if (index === -1) return "done";
    const path = `/metadata/finalizers/${index}`;
    const after = { ...metadata, finalizers: finalizers.filter((_, each) => each !== index) };
    return {
      after,
      operations: [
        { op: "test", path, value: finalizer },
        { op: "remove", path },
      ],
    };
  });
}

interface FinalizerChange {
  readonly operations: readonly JsonPatchOperation[];
  /** The metadata afterwards, if nobody else changes them. */
  readonly after: ObjectMeta;
}

/**
 * Patches an object, and anew what is there then if somebody else changed it at the same time. Returns its new state, "done" if there
 * was nothing to do, and undefined if the object is gone or `changeOf` says so.
 */
async function patchFinalizers(
  object: KubernetesObject,
  { definition, client, cache, fieldManager, fieldManagers }: FinalizerPatch,
  changeOf: (current: KubernetesObject) => FinalizerChange | "done" | "stop",
): Promise<DecodedResource | "done" | undefined> {
  const { uid } = object.metadata;
  const key = keyOf(object.metadata);
  let current: KubernetesObject | undefined = object;
  for (let attempt = 1; ; attempt++) {
    if (current === undefined || current.metadata.uid !== uid) return undefined;
    const change = changeOf(current);
    if (change === "stop") return undefined;
    if (change === "done") return "done";
    cache.beginWrite(key);
    let written: { entry: DecodedResource; isOwn: boolean } | undefined;
    try {
      const operations = [uidTest(uid), ...change.operations];
      const entry = await client.jsonPatch({ definition }, object.metadata, {
        operations,
        fieldManager,
        fieldManagers,
      });
      written = { entry, isOwn: isAnswerTo({ ...current, metadata: change.after }, entry.object) };
      return entry;
    } catch (error) {
      if (isApiError(error, 404)) return undefined;
      // An answer that was lost may have been that it is done.
      const isConflict =
        isApiError(error, 409) || isApiError(error, 422) || (error as Error).name === "ConnectionError";
      if (!isConflict || attempt === MAX_ATTEMPTS) throw error;
    } finally {
      cache.endWrite(key, written);
    }
    current = await client.get({ definition }, object.metadata);
  }
}

/** Returns the finalizer that the primaries of a controller get; undefined if it needs none. */
export function finalizerOf(definition: ControllerDefinition): string | undefined {
  const { workflow, reconciler, reconcilesOnAllEvents = false } = definition;
  if (reconcilesOnAllEvents) return undefined;
  const cleansUp =
    reconciler?.cleanup !== undefined ||
    workflow.dependents.some(needsCleanup) ||
    Object.values(workflow.removed ?? {}).some(({ policy }) => policy === "orphan");
  return cleansUp ? finalizerNameOf(definition) : undefined;
}

// What the garbage collector deletes needs none, nor what is only read; what is to be orphaned has to be untied before.
function needsCleanup(dependent: DependentDefinition): boolean {
  if (!isKubernetes(dependent)) return dependent.external.delete !== undefined;
  const { mode, isGarbageCollected, onDelete, operations } = dependent;
  return mode !== "readOnly" && operations?.delete !== false && (!isGarbageCollected || onDelete === "orphan");
}

/** Returns the name of the finalizer of a controller, whether or not it needs one. */
export function finalizerNameOf({ finalizer, workflow }: ControllerDefinition): string {
  return finalizer ?? defaultFinalizerOf(workflow.primary);
}
