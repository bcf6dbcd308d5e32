import { type JsonObject, arrayAt, isObject, objectAt } from "../json.js";
import { finalizersOf, metadataOf, now } from "./object-meta.js";

/** One entry of `status.conditions`. */
interface Condition {
  type: string;
  status: "True" | "False";
  reason?: string;
  message?: string;
  observedGeneration?: number;
  /** Shown by conditions of Pods, although nobody sets it. */
  lastProbeTime?: null;
}

/** Sets a condition in place; its time moves only when its status does. */
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

/** True if the object has the condition with status True. */
export function hasCondition(object: JsonObject, type: string): boolean {
  return conditionOf(object, type)?.["status"] === "True";
}

/** Holds a definition until its objects are gone. */
export const CLEANUP_FINALIZER = "customresourcecleanup.apiextensions.k8s.io";

/** Marks a definition that is about to be deleted so that its objects go first. */
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

/** True for the type of definitions themselves. */
export function isDefinition(type: { group: string; plural: string }): boolean {
  return type.group === "apiextensions.k8s.io" && type.plural === "customresourcedefinitions";
}

/** Builds the condition of a definition that is being deleted. */
export function terminating(reason: string, message: string): Condition {
  return { type: "Terminating", status: "True", reason, message };
}
