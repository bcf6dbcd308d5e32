import { type JsonObject, arrayAt, isObject, objectAt } from "../json.js";
import { finalizersOf, metadataOf, now } from "./object-meta.js";

/** A condition in `status.conditions`. */
interface Condition {
  type: string;
  status: "True" | "False";
  reason?: string;
  message?: string;
  observedGeneration?: number;
  /** Pod conditions have this field, although nothing sets it. */
  lastProbeTime?: null;
}

/** Sets a condition in place. lastTransitionTime changes only with the status. */
export function setCondition(object: JsonObject, condition: Condition): void {
  const status = objectAt(object, "status") ?? {};
  const conditions = arrayAt(status, "conditions") ?? [];
  const present = conditionOf(object, condition.type);
  const hasChanged = present === undefined || present["status"] !== condition.status;
  const next = { lastTransitionTime: hasChanged ? now() : (present["lastTransitionTime"] ?? now()), ...condition };
  const others =
    present === undefined ? [...conditions, next] : conditions.map((one) => (one === present ? next : one));
  object["status"] = { ...status, conditions: others };
}

/** Returns the condition of a type; undefined if the object has none. */
export function conditionOf(object: JsonObject, type: string): JsonObject | undefined {
  const conditions = arrayAt(objectAt(object, "status"), "conditions") ?? [];
  return conditions.filter(isObject).find((condition) => condition["type"] === type);
}

/** Reports whether the object has the condition with status True. */
export function hasCondition(object: JsonObject, type: string): boolean {
  return conditionOf(object, type)?.["status"] === "True";
}

/** Blocks the deletion of a CustomResourceDefinition until its custom resources are deleted. */
export const CLEANUP_FINALIZER = "customresourcecleanup.apiextensions.k8s.io";

/** Adds the cleanup finalizer to a CustomResourceDefinition that is to be deleted, and sets its condition Terminating. */
export function holdDefinition(crd: JsonObject): void {
  const finalizers = finalizersOf(crd);
  if (finalizers.includes(CLEANUP_FINALIZER)) return;
  metadataOf(crd)["finalizers"] = [...finalizers, CLEANUP_FINALIZER];
  setCondition(
    crd,
    terminating(
      "InstanceDeletionPending",
      "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    ),
  );
}

/** Reports whether a type is CustomResourceDefinition. */
export function isDefinition(type: { group: string; plural: string }): boolean {
  return type.group === "apiextensions.k8s.io" && type.plural === "customresourcedefinitions";
}

/** Builds the condition Terminating of a CustomResourceDefinition. */
export function terminating(reason: string, message: string): Condition {
  return { type: "Terminating", status: "True", reason, message };
}
