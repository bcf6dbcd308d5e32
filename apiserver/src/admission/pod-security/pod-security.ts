// Admission plugin PodSecurity: enforces the Pod Security Standard of the namespace on Pods. For workloads with a Pod template it only warns and
// audits.
import { POD_TEMPLATES, podTemplatePathOf } from "../../builtin/pod-templates.js";
import { at, objectsAt } from "../../builtin/read-path.js";
import { forbidden, invalid } from "../../errors/status-error.js";
import { type JsonObject, deepEqual, isObject, objectAt, stringAt } from "../../json.js";
import { kindRefOf, metadataOf } from "../../object/object-meta.js";
import { type AdmissionPlugin, type AdmittedWrite, refOfWrite } from "../admission.js";
import { BASELINE } from "./baseline-checks.js";
import { RESTRICTED } from "./restricted-checks.js";
import type { CheckedPod, Violation } from "./security-check.js";
import { type SecurityLevel, demandsOf, shownLevel, strictness } from "./security-levels.js";

const NAMESPACES = { group: "", version: "v1", plural: "namespaces" };
const PODS = { group: "", version: "v1", plural: "pods" };
const PREFIX = "pod-security.kubernetes.io/";
/** The minor version of Kubernetes that `latest` stands for. */
const LATEST = 36;
const CHECKED_PARTS = ["", "ephemeralcontainers", "resize"];

export const podSecurity: AdmissionPlugin = {
  resources: ["namespaces", "pods", ...Object.keys(POD_TEMPLATES)],
  validate: checkPodSecurity,
};

/** Throws 403 if a Pod violates the enforced level; adds warnings and audit annotations for the other modes. */
function checkPodSecurity(write: AdmittedWrite): void {
  const { context, object, subresource } = write;
  const { type } = context.resource;
  if (object === undefined || (write.operation !== "CREATE" && write.operation !== "UPDATE")) return;
  const isCore = type.group === "";
  if (isCore && type.plural === "namespaces") return subresource === "" ? checkNamespace(write, object) : undefined;
  const isPod = isCore && type.plural === "pods";
  if (isPod) return CHECKED_PARTS.includes(subresource) && isChanged(write) ? evaluate(write, object, true) : undefined;
  const path = podTemplatePathOf(type);
  const template = path === undefined ? undefined : at(object, path);
  if (subresource === "" && isObject(template)) evaluate(write, template, false);
}

function evaluate(write: AdmittedWrite, pod: JsonObject, enforces: boolean): void {
  const { context } = write;
  const { levels } = demandsOf(labelsOfNamespace(write));
  if (enforces) {
    context.auditAnnotations.set(`${PREFIX}enforce-policy`, shownLevel(levels.enforce));
    const problem = problemOf(pod, levels.enforce);
    if (problem !== "") throw forbidden(refOfWrite(write), `violates PodSecurity ${problem}`);
  }
  const audited = problemOf(pod, levels.audit);
  if (audited !== "") context.auditAnnotations.set(`${PREFIX}audit-violations`, `would violate PodSecurity ${audited}`);
  const warned = problemOf(pod, levels.warn);
  if (warned !== "") context.warnings.push(`would violate PodSecurity ${warned}`);
}

function labelsOfNamespace({ context }: AdmittedWrite): JsonObject | undefined {
  const stored = context.registry.find(NAMESPACES)?.store.get(context.namespace ?? "");
  return stored === undefined ? undefined : objectAt(metadataOf(stored.object), "labels");
}

function problemOf(pod: JsonObject, level: SecurityLevel): string {
  const violations = violationsOf(pod, level);
  if (violations.length === 0) return "";
  return `"${shownLevel(level)}": ${violations.map(({ reason, detail }) => `${reason} (${detail})`).join(", ")}`;
}

function violationsOf(pod: JsonObject, { level, version }: SecurityLevel): Violation[] {
  if (level === "privileged") return [];
  const minor = version === "latest" ? LATEST : Math.min(Number(version.replace("v1.", "")), LATEST);
  const restrictions = level === "restricted" ? RESTRICTED.filter(({ since }) => minor >= since) : [];
  const overridden = restrictions.map(({ overrides }) => overrides);
  const checks = [
    ...BASELINE.filter((check) => !overridden.includes(check)),
    ...restrictions.map(({ check }) => check),
  ];
  const annotations = objectAt(objectAt(pod, "metadata"), "annotations") ?? {};
  const checked: CheckedPod = { annotations, spec: objectAt(pod, "spec") ?? {}, minor };
  return checks.flatMap((check) => check(checked) ?? []);
}

// An update that changes neither images nor the number of containers is exempt.
function isChanged({ object, oldObject }: AdmittedWrite): boolean {
  if (oldObject === undefined) return true;
  const lists = ["containers", "initContainers", "ephemeralContainers"];
  const imagesOf = (pod: JsonObject | undefined) =>
    lists.map((list) => objectsAt(pod ?? {}, `spec.${list}`).map(({ image = "" }) => image));
  return !deepEqual(imagesOf(object), imagesOf(oldObject));
}

function checkNamespace(write: AdmittedWrite, namespace: JsonObject): void {
  const { context, oldObject } = write;
  const [now, before] = [namespace, oldObject].map((one) =>
    demandsOf(one === undefined ? undefined : objectAt(metadataOf(one), "labels")),
  ) as [ReturnType<typeof demandsOf>, ReturnType<typeof demandsOf>];
  const isNew = oldObject === undefined || !deepEqual(texts(now.errors), texts(before.errors));
  const name = stringAt(metadataOf(namespace), "name") ?? "";
  if (now.errors.length > 0 && isNew) throw invalid(kindRefOf(context.resource.type, name), now.errors);
  const [level, old] = [now.levels.enforce, before.levels.enforce];
  const isLooser = level.version === old.version && strictness(level) <= strictness(old);
  if (oldObject !== undefined && !isLooser) context.warnings.push(...existingWarnings(write, name, level));
}

function texts(errors: readonly { field: string; message: string }[]): string[] {
  return errors.map(({ field, message }) => `${field} ${message}`);
}

// Warns of existing Pods that violate the new enforce level of their namespace.
function existingWarnings({ context }: AdmittedWrite, namespace: string, level: SecurityLevel): string[] {
  const pods = context.registry.find(PODS)?.store.list(`${namespace}/`) ?? [];
  const byReason = new Map<string, string[]>();
  for (const { object } of pods) {
    const reasons = violationsOf(object, level).map(({ reason }) => reason);
    const name = stringAt(metadataOf(object), "name") ?? "";
    if (reasons.length > 0) byReason.set(reasons.join(", "), [...(byReason.get(reasons.join(", ")) ?? []), name]);
  }
  if (byReason.size === 0) return [];
  const others = (count: number) => (count === 0 ? "" : ` (and ${count} other ${count === 1 ? "pod" : "pods"})`);
  const lines = [...byReason].map(([reasons, names]) => `${names.sort()[0]}${others(names.length - 1)}: ${reasons}`);
  const what = `violate the new PodSecurity enforce level "${shownLevel(level)}"`;
  return [`existing pods in namespace "${namespace}" ${what}`, ...lines.sort()];
}
