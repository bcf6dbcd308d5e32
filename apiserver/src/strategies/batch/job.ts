import { at, objectsAt, textAt } from "../../builtin/read-path.js";
import { type FieldError, invalidError, requiredError } from "../../errors/field-error.js";
import { type JsonObject, type JsonValue, clone, deepEqual, memberOf, objectAt, stringAt } from "../../json.js";
import {
  checkImmutable,
  checkLabelName,
  checkLabelSelector,
  checkNotNegative,
  checkOneOf,
  checkPrefixedPath,
  goMap,
  goSelector,
  selectorMatches,
} from "../../validation/fields.js";
import { copyTemplateLabels, dropPodFields, podTemplateDefaults } from "../pod-template/defaults.js";
import { checkPodTemplate } from "../pod-template/pod-spec.js";
import { POD_NAMES, nameWarnings, templateWarnings } from "../pod-template/warnings.js";
import type { Strategy } from "../strategy.js";
import { checkFailurePolicy, checkSuccessPolicy, goFailurePolicy, goSuccessPolicy } from "./job-policies.js";
import { checkJobStatus } from "./job-status.js";

export const jobStrategy: Strategy = {
  checksMetadata: ["object", "change"],
  generation: "spec",
  defaultPropagation: "Orphan",
  // An absent list of labels defaults to the labels of the Pod template, which are complete only after all other defaults.
  settlesOnUpdate: "without-labels",
  defaults: (job, { uid }) => defaultJob(job, uid),
  structDefaults: podTemplateDefaults,
  dropFields: (job) => dropPodFields(at(job, "spec.template.spec")),
  prepareForUpdate: relabelJob,
  reread: relabelJob,
  validate: checkJob,
  validateStatus: checkJobStatus,
  warnings: (job, old) => [
    ...nameWarnings(POD_NAMES, job, old),
    ...templateWarnings("spec.template", job, old),
    ...indexWarnings("spec", objectAt(job, "spec")),
  ],
};

/** Warns about an indexed Job with too many indexes to track. */
export function indexWarnings(path: string, spec: JsonObject | undefined): string[] {
  const [completions, parallelism] = ["completions", "parallelism"].map((key) => Number(memberOf(spec, key) ?? 0));
  const isVast = Number(completions) > MANY.completions && Number(parallelism) > MANY.parallelism;
  if (!isVast || memberOf(spec, "completionMode") !== "Indexed") return [];
  const effect = "Kubernetes might not be able to track completedIndexes when a big number of indexes fail";
  return [
    `${path}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, ${effect}`,
  ];
}

const MAX_MANAGER = 63;
const MAX_INDEXED = 100_000;
const MAX_OF_VAST = 10_000;

function checkJob(job: JsonObject, old: JsonObject | undefined): FieldError[] {
  const spec = objectAt(job, "spec") ?? {};
  const ofSpec = [...checkJobSpec("spec", spec), ...checkSelector(spec)];
  return [
    ...ofSpec,
    // kube-apiserver validates the spec of an update twice and reports its errors twice.
    ...(old === undefined ? checkHostName(textAt(job, "metadata.name"), spec) : ofSpec),
    ...checkOwnLabels(job, spec),
    ...(old === undefined ? [] : checkJobUpdate(spec, old)),
  ];
}

// The hostnames of the Pods of an indexed Job consist of its name and the index.
function checkHostName(name: string, spec: JsonObject): FieldError[] {
  const completions = memberOf(spec, "completions");
  if (memberOf(spec, "completionMode") !== "Indexed" || typeof completions !== "number" || completions < 1) return [];
  const last = `${name}-${completions - 1}`;
  if (checkLabelName("", last).length === 0) return [];
  return [invalidError("metadata.name", name, `will not able to create pod with invalid DNS label: ${last}`)];
}

// The selector is generated on create; it must not be missing on update.
function checkSelector(spec: JsonObject): FieldError[] {
  const selector = objectAt(spec, "selector");
  const labels = templateLabels(spec);
  const unreadable = checkLabelSelector("spec.selector", selector);
  if (unreadable.length > 0) return unreadable;
  if (selector !== undefined && selectorMatches(selector, labels ?? {})) return [];
  const detail = "`selector` does not match template `labels`";
  return [
    ...(selector === undefined ? [requiredError("spec.selector")] : []),
    invalidError("spec.template.metadata.labels", labels === undefined ? null : goMap(labels), detail),
  ];
}

function templateLabels(spec: JsonObject): JsonObject | undefined {
  return objectAt(objectAt(objectAt(spec, "template"), "metadata"), "labels");
}

function checkOwnLabels(job: JsonObject, spec: JsonObject): FieldError[] {
  if (memberOf(spec, "manualSelector") === true || objectAt(spec, "selector") === undefined) return [];
  const labels = templateLabels(spec);
  const [uid, name] = [textAt(job, "metadata.uid"), textAt(job, "metadata.name")];
  const wanted = {
    "controller-uid": uid,
    "job-name": name,
    "batch.kubernetes.io/controller-uid": uid,
    "batch.kubernetes.io/job-name": name,
  };
  const selector = objectAt(spec, "selector") ?? {};
  const isOwn = checkLabelSelector("", selector).length > 0 || selectorMatches(selector, wanted);
  const detail = "`selector` not auto-generated";
  const ofSelector = isOwn ? [] : [invalidError("spec.selector", goSelector(selector), detail)];
  return Object.entries(wanted)
    .flatMap(([key, value]) => {
      const path = `spec.template.metadata.labels[${key}]`;
      const given = memberOf(labels, key);
      if (given === undefined) return [requiredError(path, `must be '${value}'`)];
      return given === value ? [] : [invalidError(path, goMap(labels ?? {}), `must be '${value}'`)];
    })
    .concat(ofSelector);
}

export function checkJobSpec(path: string, spec: JsonObject): FieldError[] {
  const template = objectAt(spec, "template") ?? {};
  const counts = [
    ...["parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished"],
    ...["backoffLimitPerIndex", "maxFailedIndexes"],
  ];
  return [
    ...counts.flatMap((key) => checkNotNegative(`${path}.${key}`, memberOf(spec, key))),
    ...checkCompletions(path, spec),
    ...checkManager(`${path}.managedBy`, memberOf(spec, "managedBy")),
    ...checkFailurePolicy(path, spec),
    ...checkSuccessPolicy(`${path}.successPolicy`, spec),
    ...checkReplacement(`${path}.podReplacementPolicy`, spec),
    ...(memberOf(spec, "maxFailedIndexes") !== undefined && memberOf(spec, "backoffLimitPerIndex") === undefined
      ? [requiredError(`${path}.backoffLimitPerIndex`, "when maxFailedIndexes is specified")]
      : []),
    ...checkPodTemplate(`${path}.template`, template),
    ...checkRestarting(`${path}.template.spec.restartPolicy`, spec, textAt(template, "spec.restartPolicy")),
  ];
}

function checkRestarting(field: string, spec: JsonObject, policy: string): FieldError[] {
  if (policy === "" || policy === "Always") return [requiredError(field, 'valid values: "OnFailure", "Never"')];
  if (policy !== "OnFailure" && policy !== "Never") return checkOneOf(field, policy, ["OnFailure", "Never"]);
  if (policy === "Never" || objectAt(spec, "podFailurePolicy") === undefined) return [];
  return [invalidError(field, policy, 'only "Never" is supported when podFailurePolicy is specified')];
}

function checkReplacement(field: string, spec: JsonObject): FieldError[] {
  const policies = objectAt(spec, "podFailurePolicy") === undefined ? ["Failed", "TerminatingOrFailed"] : ["Failed"];
  return checkOneOf(field, memberOf(spec, "podReplacementPolicy"), policies);
}

function checkManager(path: string, manager: JsonValue | undefined): FieldError[] {
  return typeof manager === "string" ? checkPrefixedPath(path, manager, MAX_MANAGER) : [];
}

function checkCompletions(path: string, spec: JsonObject): FieldError[] {
  const mode = memberOf(spec, "completionMode");
  const ofIndexed = ["backoffLimitPerIndex", "maxFailedIndexes"];
  if (mode !== "Indexed") {
    return [
      ...checkOneOf(`${path}.completionMode`, mode, ["NonIndexed", "Indexed"]),
      ...ofIndexed.flatMap((key) => {
        const value = memberOf(spec, key);
        return value === undefined || (mode ?? "NonIndexed") !== "NonIndexed"
          ? []
          : [invalidError(`${path}.${key}`, value, "requires indexed completion mode")];
      }),
    ];
  }
  const [completions, failed] = ["completions", "maxFailedIndexes"].map((key) => memberOf(spec, key));
  const most = (key: string, limit: number, when: string) => {
    const value = memberOf(spec, key);
    return typeof value === "number" && value > limit
      ? [invalidError(`${path}.${key}`, value, `must be less than or equal to ${limit}${when}`)]
      : [];
  };
  const isVast =
    typeof completions === "number" &&
    completions > MAX_INDEXED &&
    memberOf(spec, "backoffLimitPerIndex") !== undefined;
  const limited = ` when completions are above ${MAX_INDEXED} and used with backoff limit per index`;
  return [
    ...(completions === undefined ? [requiredError(`${path}.completions`, "when completion mode is Indexed")] : []),
    ...most("parallelism", MAX_INDEXED, " when completion mode is Indexed"),
    ...(typeof failed === "number" && typeof completions === "number" && failed > completions
      ? [invalidError(`${path}.maxFailedIndexes`, failed, "must be less than or equal to completions")]
      : []),
    ...most("maxFailedIndexes", MAX_INDEXED, ""),
    ...(isVast && failed === undefined
      ? [requiredError(`${path}.maxFailedIndexes`, `must be specified when completions is above ${MAX_INDEXED}`)]
      : []),
    ...(isVast ? ["parallelism", "maxFailedIndexes"].flatMap((key) => most(key, MAX_OF_VAST, limited)) : []),
  ];
}

// Immutable fields of a Job.

const NO_CHANGE = "field is immutable";

/** Validates that immutable fields, such as the Pod template, are unchanged. */
function checkJobUpdate(spec: JsonObject, old: JsonObject): FieldError[] {
  const before = objectAt(old, "spec") ?? {};
  const isIndexed = memberOf(spec, "completionMode") === "Indexed";
  const kept = (keys: string[]) => checkImmutable("spec", { spec, old: before, keys });
  return [
    ...(isIndexed ? checkTandem(spec, before) : kept(["completions"])),
    ...kept(["selector"]),
    ...checkTemplateKept(spec, before, old),
    ...kept(["completionMode"]),
    ...checkPolicyKept("podFailurePolicy", { spec, before, shown: goFailurePolicy }),
    ...kept(["backoffLimitPerIndex", "managedBy"]),
    ...checkPolicyKept("successPolicy", { spec, before, shown: goSuccessPolicy }),
  ];
}

interface Kept {
  spec: JsonObject;
  before: JsonObject;
  shown(policy: JsonObject): JsonValue;
}

function checkPolicyKept(key: string, { spec, before, shown }: Kept): FieldError[] {
  const policy = objectAt(spec, key);
  if (deepEqual(policy ?? null, objectAt(before, key) ?? null)) return [];
  return [invalidError(`spec.${key}`, policy === undefined ? null : shown(policy), NO_CHANGE)];
}

function checkTandem(spec: JsonObject, old: JsonObject): FieldError[] {
  const completions = memberOf(spec, "completions");
  if (completions === undefined || completions === memberOf(old, "completions")) return [];
  if (completions === memberOf(spec, "parallelism")) return [];
  return [invalidError("spec.completions", completions, "can only be modified in tandem with spec.parallelism")];
}

/** A suspended Job without Pods may change the scheduling directives and resources of its template. */
function checkTemplateKept(spec: JsonObject, before: JsonObject, old: JsonObject): FieldError[] {
  const [now, was] = [spec, before].map((one) => objectAt(one, "template") ?? {}) as [JsonObject, JsonObject];
  if (!mayChange(old)) return deepEqual(now, was) ? [] : [invalidError("spec.template", now, NO_CHANGE)];
  const [pod, podBefore] = [now, was].map((template) => objectAt(template, "spec") ?? {}) as [JsonObject, JsonObject];
  const isSame = deepEqual(fixedPart(pod, podBefore), fixedPart(podBefore, podBefore));
  return isSame ? [] : [invalidError("spec.template.spec", pod, NO_CHANGE)];
}

function mayChange(old: JsonObject): boolean {
  const isStopped = objectsAt(old, "status.conditions").some(
    ({ type, status }) => type === "Suspended" && status === "True",
  );
  const isIdle = at(old, "status.startTime") === undefined || isStopped;
  return at(old, "spec.suspend") === true && isIdle && (at(old, "status.active") ?? 0) === 0;
}

function fixedPart(pod: JsonObject, before: JsonObject): JsonObject {
  const { nodeSelector: _node, tolerations: _tolerations, schedulingGates: _gates, affinity, ...rest } = clone(pod);
  const { nodeAffinity: _affinity, ...others } = (affinity ?? {}) as JsonObject;
  for (const list of ["containers", "initContainers"]) {
    const [now, was] = [objectsAt(rest, list), objectsAt(before, list)];
    if (now.length !== was.length) continue;
    for (const [index, container] of now.entries()) {
      if (container["name"] === was[index]?.["name"]) delete container["resources"];
    }
  }
  return Object.keys(others).length === 0 ? rest : { ...rest, affinity: others };
}

/** Sets the defaults of Jobs, which do not apply to the job templates of CronJobs; the selector requires the UID. */
function defaultJob(job: JsonObject, uid: string | undefined): void {
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
  // If the Job has no labels, the generated labels are copied to it only when it is read.
  if (uid !== undefined && spec["manualSelector"] !== true) selectOwnPods(job, spec, uid);
}

function selectOwnPods(job: JsonObject, spec: JsonObject, uid: string): void {
  const name = stringAt(objectAt(job, "metadata"), "name") ?? "";
  const template = (spec["template"] ??= {}) as JsonObject;
  const metadata = objectAt(template, "metadata") ?? {};
  // If the Job took its labels from the template, both share one map, as in kube-apiserver, so these labels are added to both. Conflicting labels of
  // the user are kept, and rejected by the validation.
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

/** Copies the labels of the Pod template to a Job without labels, as decoding it from storage does. */
export function relabelJob(job: JsonObject): void {
  const spec = objectAt(job, "spec");
  if (spec !== undefined) copyTemplateLabels(job, spec);
}

const MANY = { completions: 100_000, parallelism: 10_000 };
