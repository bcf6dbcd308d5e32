import { at, countAt, objectsAt, textAt } from "../builtin/read-path.js";
import { type JsonObject, memberOf, objectAt, stringAt } from "../json.js";
import { ageOf, humanDuration } from "./age.js";
import { type Printer, containerCells, formatLabels, formatSelector } from "./printer.js";

const CONTAINERS = "spec.template.spec.containers";
const CREATED = "metadata.creationTimestamp";
const WIDE = ["Containers*", "Images*", "Selector*"];

export const deploymentPrinter: Printer = {
  columns: ["Ready", "Up-to-date", "Available", "Age", ...WIDE],
  cells: (object, now) => [
    `${countAt(object, "status.readyReplicas")}/${countAt(object, "spec.replicas")}`,
    countAt(object, "status.updatedReplicas"),
    countAt(object, "status.availableReplicas"),
    ageOf(at(object, CREATED), now),
    ...containerCells(object, CONTAINERS),
    formatSelector(at(object, "spec.selector")),
  ],
};

export const replicaSetPrinter: Printer = {
  columns: ["Desired:integer", "Current:integer", "Ready:integer", "Age", ...WIDE],
  cells: (object, now) => [...replicaCells(object, now), formatSelector(at(object, "spec.selector"))],
};

/** ReplicationControllers, whose selector is a map. */
export const replicationControllerPrinter: Printer = {
  columns: replicaSetPrinter.columns,
  cells: (object, now) => [...replicaCells(object, now), formatLabels(at(object, "spec.selector"))],
};

function replicaCells(object: JsonObject, now: Date) {
  return [
    countAt(object, "spec.replicas"),
    countAt(object, "status.replicas"),
    countAt(object, "status.readyReplicas"),
    ageOf(at(object, CREATED), now),
    ...containerCells(object, CONTAINERS),
  ];
}

export const statefulSetPrinter: Printer = {
  columns: ["Ready", "Age", "Containers*", "Images*"],
  cells: (object, now) => [
    `${countAt(object, "status.readyReplicas")}/${countAt(object, "spec.replicas")}`,
    ageOf(at(object, CREATED), now),
    ...containerCells(object, CONTAINERS),
  ],
};

export const daemonSetPrinter: Printer = {
  columns: [
    ...["Desired:integer", "Current:integer", "Ready:integer", "Up-to-date:integer", "Available:integer"],
    ...["Node Selector", "Age", ...WIDE],
  ],
  cells: (object, now) => [
    countAt(object, "status.desiredNumberScheduled"),
    countAt(object, "status.currentNumberScheduled"),
    countAt(object, "status.numberReady"),
    countAt(object, "status.updatedNumberScheduled"),
    countAt(object, "status.numberAvailable"),
    formatLabels(at(object, "spec.template.spec.nodeSelector")),
    ageOf(at(object, CREATED), now),
    ...containerCells(object, CONTAINERS),
    formatSelector(at(object, "spec.selector")),
  ],
};

export const jobPrinter: Printer = {
  columns: ["Status", "Completions", "Duration", "Age", ...WIDE],
  cells: (job, now) => [
    jobStatusOf(job),
    completionsOf(job),
    jobDurationOf(job, now),
    ageOf(at(job, CREATED), now),
    ...containerCells(job, CONTAINERS),
    formatSelector(at(job, "spec.selector")),
  ],
};

function jobStatusOf(job: JsonObject): string {
  const has = (type: string) =>
    objectsAt(job, "status.conditions").some((one) => one["type"] === type && one["status"] === "True");
  const ended = ["Complete", "Failed"].find(has);
  if (ended !== undefined) return ended;
  if (memberOf(objectAt(job, "metadata"), "deletionTimestamp") !== undefined) return "Terminating";
  return ["Suspended", "FailureTarget", "SuccessCriteriaMet"].find(has) ?? "Running";
}

function completionsOf(job: JsonObject): string {
  const succeeded = countAt(job, "status.succeeded");
  if (at(job, "spec.completions") !== undefined) return `${succeeded}/${countAt(job, "spec.completions")}`;
  const parallelism = countAt(job, "spec.parallelism");
  return parallelism > 1 ? `${succeeded}/1 of ${parallelism}` : `${succeeded}/1`;
}

function jobDurationOf(job: JsonObject, now: Date): string {
  const start = textAt(job, "status.startTime");
  if (start === "") return "";
  const end = textAt(job, "status.completionTime");
  return humanDuration((end === "" ? now.getTime() : Date.parse(end)) - Date.parse(start));
}

export const cronJobPrinter: Printer = {
  columns: ["Schedule", "Timezone", "Suspend:boolean", "Active:integer", "Last Schedule", "Age", ...WIDE],
  cells: (object, now) => {
    const lastSchedule = at(object, "status.lastScheduleTime");
    return [
      textAt(object, "spec.schedule"),
      textAt(object, "spec.timeZone") || "<none>",
      at(object, "spec.suspend") === true ? "True" : "False",
      objectsAt(object, "status.active").length,
      lastSchedule === undefined ? "<none>" : ageOf(lastSchedule, now),
      ageOf(at(object, CREATED), now),
      ...containerCells(object, "spec.jobTemplate.spec.template.spec.containers"),
      formatSelector(at(object, "spec.jobTemplate.spec.selector")),
    ];
  },
};

export const podTemplatePrinter: Printer = {
  columns: ["Containers", "Images", "Pod Labels"],
  cells: (object) => [
    ...containerCells(object, "template.spec.containers"),
    formatLabels(at(object, "template.metadata.labels")),
  ],
};

export const controllerRevisionPrinter: Printer = {
  columns: ["Controller", "Revision", "Age"],
  cells: (object, now) => {
    const owner = objectsAt(object, "metadata.ownerReferences").find((one) => one["controller"] === true);
    return [
      owner === undefined ? "<none>" : ownerText(owner),
      countAt(object, "revision"),
      ageOf(at(object, CREATED), now),
    ];
  },
};

function ownerText(owner: JsonObject): string {
  const [group, version] = (stringAt(owner, "apiVersion") ?? "").split("/");
  const kind = (stringAt(owner, "kind") ?? "").toLowerCase();
  const resource = version === undefined ? kind : `${kind}.${group}`;
  return `${resource}/${stringAt(owner, "name") ?? ""}`;
}

/** The scale subresource of a workload. */
export const scalePrinter: Printer = {
  columns: ["Desired:integer", "Available:integer", "Age"],
  cells: (scale, now) => [
    countAt(scale, "spec.replicas"),
    countAt(scale, "status.replicas"),
    ageOf(at(scale, "metadata.creationTimestamp"), now),
  ],
};
