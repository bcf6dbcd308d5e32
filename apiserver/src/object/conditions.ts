import { arrayAt, isObject, objectAt, type JsonObject } from "../json.js";
import { now } from "./object-meta.js";

/** One entry of `status.conditions`. */
export interface Condition {
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
