// What the server writes into a Pod right before it looks at it.
import { type JsonObject, type JsonValue, arrayAt, memberOf, objectAt } from "../../json.js";
import { objectsAt, textAt } from "../../builtin/read-path.js";

/** Says of a new Pod with gates that it waits for these. */
export function holdGated(pod: JsonObject, now: string): void {
  const status = objectAt(pod, "status");
  if (status === undefined || (arrayAt(objectAt(pod, "spec"), "schedulingGates") ?? []).length === 0) return;
  const message = "Scheduling is blocked due to non-empty scheduling gates";
  const blocked = { type: "PodScheduled", status: "False", reason: "SchedulingGated", message };
  status["conditions"] = [{ ...blocked, lastProbeTime: null, lastTransitionTime: now }];
}

const OPERATORS = { matchLabelKeys: "In", mismatchLabelKeys: "NotIn" };

/** Tells the selectors of a new Pod, in place, what its own labels are where it names their keys. */
export function selectOwnLabels(pod: JsonObject): void {
  const labels = objectAt(objectAt(pod, "metadata"), "labels") ?? {};
  for (const kind of ["podAffinity", "podAntiAffinity"]) {
    const path = `spec.affinity.${kind}`;
    for (const weighted of objectsAt(pod, `${path}.preferredDuringSchedulingIgnoredDuringExecution`))
      selectLabels(objectAt(weighted, "podAffinityTerm") ?? {}, labels);
    for (const term of objectsAt(pod, `${path}.requiredDuringSchedulingIgnoredDuringExecution`))
      selectLabels(term, labels);
  }
  for (const constraint of objectsAt(pod, "spec.topologySpreadConstraints")) selectLabels(constraint, labels);
}

function selectLabels(holder: JsonObject, labels: JsonObject): void {
  const selector = objectAt(holder, "labelSelector");
  if (selector === undefined) return;
  const added = Object.entries(OPERATORS).flatMap(([list, operator]) =>
    (arrayAt(holder, list) ?? []).flatMap((key): JsonValue[] => {
      const value = memberOf(labels, String(key));
      return value === undefined ? [] : [{ key, operator, values: [value] }];
    }),
  );
  if (added.length > 0) selector["matchExpressions"] = [...(arrayAt(selector, "matchExpressions") ?? []), ...added];
}

const GENERATION = "observedGeneration";

/** Keeps, in place, which generation the status of a Pod is about where a write does not tell; conditions of one type have theirs in order. */
export function keepObservedGenerations(pod: JsonObject, live: JsonObject): void {
  const [status, before] = [pod, live].map((one) => objectAt(one, "status") ?? {}) as [JsonObject, JsonObject];
  keepGeneration(status, before);
  const known = objectsAt(before, "conditions");
  for (const condition of objectsAt(status, "conditions")) {
    const place = known.findIndex((one) => textAt(one, "type") === textAt(condition, "type"));
    if (place >= 0) keepGeneration(condition, known.splice(place, 1)[0] ?? {});
  }
}

function keepGeneration(holder: JsonObject, before: JsonObject): void {
  const generation = memberOf(before, GENERATION);
  if ((memberOf(holder, GENERATION) ?? 0) === 0 && generation !== undefined) holder[GENERATION] = generation;
}
