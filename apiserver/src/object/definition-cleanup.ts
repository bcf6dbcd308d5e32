import type { JsonObject } from "../json.js";
import { setCondition, type Condition } from "./conditions.js";
import { finalizersOf, metadataOf } from "./object-meta.js";

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
