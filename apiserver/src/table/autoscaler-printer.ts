import { at, countAt, objectsAt, textAt } from "../builtin/read-path.js";
import { type JsonObject, objectAt, stringAt } from "../json.js";
import { ageOf } from "./age.js";
import type { Printer } from "./printer.js";

const MAX_METRICS = 2;
const SOURCES: Record<string, string> = {
  Resource: "resource",
  ContainerResource: "containerResource",
  Pods: "pods",
  Object: "object",
  External: "external",
};

/** HorizontalPodAutoscalers in autoscaling/v1 and v2. */
export const autoscalerPrinter: Printer = {
  columns: ["Reference", "Targets", "MinPods", "MaxPods", "Replicas", "Age"],
  cells: (object, now) => [
    `${textAt(object, "spec.scaleTargetRef.kind")}/${textAt(object, "spec.scaleTargetRef.name")}`,
    targetsOf(object),
    textAt(object, "spec.minReplicas") || "<unset>",
    countAt(object, "spec.maxReplicas"),
    countAt(object, "status.currentReplicas"),
    ageOf(at(object, "metadata.creationTimestamp"), now),
  ],
};

function targetsOf(object: JsonObject): string {
  const utilization = at(object, "spec.targetCPUUtilizationPercentage");
  if (utilization !== undefined) {
    const current = at(object, "status.currentCPUUtilizationPercentage");
    return `cpu: ${current === undefined ? "<unknown>" : `${String(current)}%`}/${String(utilization)}%`;
  }
  const metrics = objectsAt(object, "spec.metrics");
  if (metrics.length === 0) return "<none>";
  const current = objectsAt(object, "status.currentMetrics");
  const texts = metrics.slice(0, MAX_METRICS).map((metric, index) => metricText(metric, current[index]));
  const more = metrics.length > MAX_METRICS ? ` + ${metrics.length - MAX_METRICS} more...` : "";
  return texts.join(", ") + more;
}

function metricText(metric: JsonObject, current: JsonObject | undefined): string {
  const type = stringAt(metric, "type") ?? "";
  const source = objectAt(metric, SOURCES[type] ?? "");
  if (source === undefined) return "<unknown type>";
  const target = objectAt(source, "target") ?? {};
  const now = objectAt(objectAt(current, SOURCES[type] ?? ""), "current") ?? {};
  const unit = target["averageUtilization"] !== undefined ? "%" : "";
  const member = ["averageUtilization", "averageValue", "value"].find((key) => target[key] !== undefined) ?? "value";
  const reached = now[member] === undefined ? "<unknown>" : `${String(now[member])}${unit}`;
  const isPerPod = member === "averageValue" && (type === "External" || type === "Object");
  const prefix = type === "Resource" || type === "ContainerResource" ? `${stringAt(source, "name") ?? ""}: ` : "";
  return `${prefix}${reached}/${String(target[member] ?? "<auto>")}${unit}${isPerPod ? " (avg)" : ""}`;
}
