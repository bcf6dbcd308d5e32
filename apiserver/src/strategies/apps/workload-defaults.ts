import { type JsonObject, clone, deepEqual, memberOf, objectAt, stringAt } from "../../json.js";
import { wasGivenEmpty } from "../../builtin/normal-form.js";

/** Gives an update strategy of type RollingUpdate its parameters. */
export function defaultRollingUpdate(strategy: JsonObject): void {
  strategy["type"] ??= "RollingUpdate";
  if (strategy["type"] === "RollingUpdate") strategy["rollingUpdate"] ??= {};
}

/** Gives an update strategy of a DaemonSet its type and parameters: those of another type count for nothing if they are missing. */
export function defaultDaemonUpdate(strategy: JsonObject): void {
  defaultRollingUpdate(strategy);
  const parameters = objectAt(strategy, "rollingUpdate");
  if (parameters !== undefined && strategy["type"] !== "RollingUpdate") {
    parameters["maxUnavailable"] ??= 0;
    parameters["maxSurge"] ??= 0;
  }
}

/** Gives an update strategy of a StatefulSet its type, and with that alone its parameters. */
export function defaultStatefulStrategy(strategy: JsonObject): void {
  if (memberOf(strategy, "type") === undefined) strategy["rollingUpdate"] ??= {};
  strategy["type"] ??= "RollingUpdate";
}

/** Sets what Kubernetes sets in Jobs, but not in the job templates of CronJobs; the selector needs the Job's uid. */
export function defaultJob(job: JsonObject, uid: string | undefined): void {
  const spec = objectAt(job, "spec");
  if (spec === undefined) return;
  if (memberOf(spec, "completions") === undefined && memberOf(spec, "parallelism") === undefined) {
    spec["completions"] = 1;
  }
  spec["parallelism"] ??= 1;
  spec["backoffLimit"] ??= memberOf(spec, "backoffLimitPerIndex") === undefined ? 6 : 2 ** 31 - 1;
  spec["completionMode"] ??= "NonIndexed";
  spec["suspend"] ??= false;
  spec["manualSelector"] ??= false;
  spec["podReplacementPolicy"] ??= objectAt(spec, "podFailurePolicy") === undefined ? "TerminatingOrFailed" : "Failed";
  copyTemplateLabels(job, spec);
  // Of a Job without labels these are none until it is read.
  if (uid !== undefined && spec["manualSelector"] !== true) selectOwnPods(job, spec, uid);
}

function selectOwnPods(job: JsonObject, spec: JsonObject, uid: string): void {
  const name = stringAt(objectAt(job, "metadata"), "name") ?? "";
  const template = (spec["template"] ??= {}) as JsonObject;
  const metadata = objectAt(template, "metadata") ?? {};
  // Labels that the Job has from its Pods are shared with these, as they are in kube-apiserver, and grow with them.
  // Labels with other values that the user wrote stay, and are refused later.
  const labels = objectAt(metadata, "labels") ?? {};
  labels["batch.kubernetes.io/controller-uid"] ??= uid;
  labels["batch.kubernetes.io/job-name"] ??= name;
  labels["controller-uid"] ??= uid;
  labels["job-name"] ??= name;
  metadata["labels"] = labels;
  template["metadata"] = metadata;
  const selector = objectAt(spec, "selector") ?? {};
  selector["matchLabels"] = { "batch.kubernetes.io/controller-uid": uid, ...objectAt(selector, "matchLabels") };
  spec["selector"] = selector;
}

const TEMPLATE_GENERATION = "deprecated.daemonset.template.generation";

/** Keeps the number of templates that a DaemonSet has had, in an annotation that clients cannot set on an existing one. */
export function keepTemplateCount(daemonSet: JsonObject, old: JsonObject | undefined): void {
  const metadata = objectAt(daemonSet, "metadata") ?? {};
  const given = objectAt(metadata, "annotations");
  // Who leaves it out of an update sets it to 0 for as long as fields are attributed.
  metadata["annotations"] = { [TEMPLATE_GENERATION]: old === undefined ? "1" : "0", ...given };
}

/** Counts the template of a DaemonSet if it is another one. */
export function countTemplate(daemonSet: JsonObject, old: JsonObject): void {
  const before = stringAt(objectAt(objectAt(old, "metadata"), "annotations"), TEMPLATE_GENERATION) ?? "0";
  const isSame = deepEqual(templateOf(daemonSet), templateOf(old));
  const metadata = objectAt(daemonSet, "metadata") ?? {};
  metadata["annotations"] = {
    ...objectAt(metadata, "annotations"),
    [TEMPLATE_GENERATION]: isSame ? before : String(Number(before) + 1),
  };
}

/** Gives a Job without labels those of its Pods, as reading it from the store does. */
export function relabelJob(job: JsonObject): void {
  const spec = objectAt(job, "spec");
  if (spec !== undefined) copyTemplateLabels(job, spec);
}

function templateOf(object: JsonObject | undefined): JsonObject {
  return objectAt(objectAt(object, "spec"), "template") ?? {};
}

/** Gives a ReplicationController the labels of its pods, as selector and as labels of its own. */
export function defaultReplicationController(controller: JsonObject): void {
  const spec = objectAt(controller, "spec");
  const labels = objectAt(objectAt(objectAt(spec, "template"), "metadata"), "labels");
  if (spec === undefined || labels === undefined) return;
  spec["selector"] ??= clone(labels);
  copyTemplateLabels(controller, spec);
}

function copyTemplateLabels(object: JsonObject, spec: JsonObject): void {
  const labels = objectAt(objectAt(objectAt(spec, "template"), "metadata"), "labels");
  const metadata = objectAt(object, "metadata");
  if (labels !== undefined && metadata !== undefined) metadata["labels"] ??= labels;
}

/** Completes the scaling rules of an autoscaler that declares a behavior, and its metrics. */
export function defaultAutoscaler(spec: JsonObject): void {
  const utilization = { type: "Utilization", averageUtilization: 80 };
  spec["metrics"] ??= [{ type: "Resource", resource: { name: "cpu", target: utilization } }];
  const behavior = objectAt(spec, "behavior");
  if (behavior === undefined) return;
  const withoutPolicies = ["scaleUp", "scaleDown"].filter((key) => wasGivenEmpty(objectAt(behavior, key), "policies"));
  behavior["scaleUp"] = {
    stabilizationWindowSeconds: 0,
    selectPolicy: "Max",
    policies: [
      { type: "Pods", value: 4, periodSeconds: 15 },
      { type: "Percent", value: 100, periodSeconds: 15 },
    ],
    ...objectAt(behavior, "scaleUp"),
  };
  behavior["scaleDown"] = {
    selectPolicy: "Max",
    policies: [{ type: "Percent", value: 100, periodSeconds: 15 }],
    ...objectAt(behavior, "scaleDown"),
  };
  for (const key of withoutPolicies) delete objectAt(behavior, key)?.["policies"];
}

/** Where autoscaling/v1 keeps the metrics that it has no fields for. */
const OTHER_METRICS = "autoscaling.alpha.kubernetes.io/metrics";

/** Sets what an autoscaler of version 1 without any metric aims at. */
export function defaultUtilization(scaler: JsonObject): void {
  const [spec, annotations] = [objectAt(scaler, "spec"), objectAt(objectAt(scaler, "metadata"), "annotations")];
  if (scaler["apiVersion"] !== "autoscaling/v1" || spec === undefined) return;
  if (memberOf(annotations, OTHER_METRICS) === undefined) spec["targetCPUUtilizationPercentage"] ??= 80;
}
