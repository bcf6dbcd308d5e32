import { at, countAt, objectsAt, textAt } from "../builtin/read-path.js";
import { type JsonObject, compareText, objectAt, stringAt } from "../json.js";
import { ageOf } from "./age.js";
import type { Printer } from "./printer.js";

const ROLE_LABEL = "node-role.kubernetes.io/";

export const nodePrinter: Printer = {
  columns: [
    ...["Status", "Roles", "Age", "Version", "Internal-IP*", "External-IP*", "OS-Image*", "Kernel-Version*"],
    "Container-Runtime*",
  ],
  cells: (node, now) => {
    const info = (key: string) => textAt(node, `status.nodeInfo.${key}`);
    return [
      nodeStatusOf(node),
      rolesOf(node),
      ageOf(at(node, "metadata.creationTimestamp"), now),
      info("kubeletVersion"),
      addressOf(node, "InternalIP"),
      addressOf(node, "ExternalIP"),
      info("osImage") || "<unknown>",
      info("kernelVersion") || "<unknown>",
      info("containerRuntimeVersion") || "<unknown>",
    ];
  },
};

function nodeStatusOf(node: JsonObject): string {
  const ready = objectsAt(node, "status.conditions").find((condition) => condition["type"] === "Ready");
  const status = ready === undefined ? "Unknown" : ready["status"] === "True" ? "Ready" : "NotReady";
  return at(node, "spec.unschedulable") === true ? `${status},SchedulingDisabled` : status;
}

function rolesOf(node: JsonObject): string {
  const labels = objectAt(objectAt(node, "metadata"), "labels") ?? {};
  const roles = Object.keys(labels).flatMap((key) => {
    if (key.startsWith(ROLE_LABEL)) return key.length > ROLE_LABEL.length ? [key.slice(ROLE_LABEL.length)] : [];
    return key === "kubernetes.io/role" && labels[key] !== "" ? [String(labels[key])] : [];
  });
  return [...new Set(roles)].sort(compareText).join(",") || "<none>";
}

function addressOf(node: JsonObject, type: string): string {
  const address = objectsAt(node, "status.addresses").find((one) => one["type"] === type);
  return stringAt(address, "address") ?? "<none>";
}

/** Events of core/v1 and events.k8s.io/v1. */
export const eventPrinter: Printer = {
  columns: ["Last Seen", "Type", "Reason", "Object", "Subobject*", "Source*", "Message", "First Seen*", "Count*"],
  cells: (event, now) => {
    const either = (core: string, newer: string) => at(event, core) ?? at(event, newer);
    const first = either("firstTimestamp", "deprecatedFirstTimestamp") ?? at(event, "eventTime");
    const last = either("lastTimestamp", "deprecatedLastTimestamp") ?? first;
    const object = objectAt(event, "involvedObject") ?? objectAt(event, "regarding") ?? {};
    const series = objectAt(event, "series");
    const count = countAt(event, "count") || countAt(event, "deprecatedCount") || 1;
    return [
      ageOf(series === undefined ? last : at(series, "lastObservedTime"), now),
      textAt(event, "type"),
      textAt(event, "reason"),
      [textAt(object, "kind").toLowerCase(), textAt(object, "name")].filter((part) => part !== "").join("/"),
      textAt(object, "fieldPath"),
      sourceOf(event),
      String(either("message", "note") ?? "").trim(),
      ageOf(first, now),
      series === undefined ? count : countAt(series, "count"),
      textAt(event, "metadata.name"),
    ];
  },
};

function sourceOf(event: JsonObject): string {
  const source = objectAt(event, "source") ?? objectAt(event, "deprecatedSource") ?? {};
  const controller = textAt(event, "reportingComponent") || textAt(event, "reportingController");
  const host = textAt(source, "host") || textAt(event, "reportingInstance");
  const component = textAt(source, "component") || controller;
  return [component, host].filter((part) => part !== "").join(", ");
}
