// Admission plugin RuntimeClass: adds the overhead and the scheduling constraints of the RuntimeClass to Pods.
import { pathSegmentProblems } from "../../validation/names.js";
import { quote } from "../../errors/go-format.js";
import { forbidden, plainError } from "../../errors/status-error.js";
import { type JsonObject, arrayAt, deepEqual, isObject, memberOf, objectAt, stringAt } from "../../json.js";
import { type AdmissionPlugin, type AdmittedWrite, refOfWrite } from "../admission.js";

const CLASSES = { group: "node.k8s.io", version: "v1", plural: "runtimeclasses" };
const OTHER = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";
const WITHOUT = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead";

export const runtimeClass: AdmissionPlugin = {
  resources: ["pods"],
  mutate: setRuntimeClass,
  validate: checkRuntimeClass,
};

/** Sets the overhead of a new Pod and merges the node selector and tolerations of its RuntimeClass, in place. */
function setRuntimeClass(write: AdmittedWrite): void {
  const spec = specOf(write);
  const found = spec === undefined ? undefined : classOf(write, spec);
  if (spec === undefined || found === undefined) return;
  const overhead = overheadOf(found);
  if (overhead !== undefined) {
    const given = objectAt(spec, "overhead") ?? {};
    if (Object.keys(given).length > 0 && !deepEqual(given, overhead)) throw forbidden(refOfWrite(write), OTHER);
    spec["overhead"] = overhead;
  }
  const scheduling = objectAt(found, "scheduling");
  if (scheduling !== undefined) schedule(write, spec, scheduling);
}

/** Throws 403 unless the overhead of a new Pod equals that of its RuntimeClass. */
function checkRuntimeClass(write: AdmittedWrite): void {
  const spec = specOf(write);
  if (spec === undefined) return;
  const found = classOf(write, spec);
  const [wanted, given] = [found === undefined ? undefined : overheadOf(found), objectAt(spec, "overhead")];
  if (wanted === undefined && given !== undefined) throw forbidden(refOfWrite(write), WITHOUT);
  if (wanted !== undefined && !deepEqual(wanted, given)) throw forbidden(refOfWrite(write), OTHER);
}

function specOf({ operation, subresource, object }: AdmittedWrite): JsonObject | undefined {
  return operation === "CREATE" && subresource === "" ? objectAt(object, "spec") : undefined;
}

function classOf(write: AdmittedWrite, spec: JsonObject): JsonObject | undefined {
  const name = memberOf(spec, "runtimeClassName");
  if (typeof name !== "string") return undefined;
  if (name === "") throw plainError("resource name may not be empty");
  const problems = pathSegmentProblems(name);
  if (problems.length > 0) throw plainError(`invalid resource name ${quote(name)}: [${problems.join(" ")}]`);
  const found = write.context.registry.find(CLASSES)?.store.get(name)?.object;
  if (found === undefined) throw forbidden(refOfWrite(write), `pod rejected: RuntimeClass ${quote(name)} not found`);
  return found;
}

function overheadOf(found: JsonObject): JsonObject | undefined {
  const overhead = objectAt(found, "overhead");
  return overhead === undefined ? undefined : (objectAt(overhead, "podFixed") ?? {});
}

function schedule(write: AdmittedWrite, spec: JsonObject, scheduling: JsonObject): void {
  const [own, labels] = [objectAt(spec, "nodeSelector") ?? {}, objectAt(scheduling, "nodeSelector") ?? {}];
  for (const [key, value] of Object.entries(labels)) {
    const given = memberOf(own, key);
    if (given === undefined || given === value) continue;
    const ofClass = `runtimeClass.scheduling.nodeSelector[${key}] = ${String(value)}`;
    throw forbidden(refOfWrite(write), `conflict: ${ofClass}; pod.spec.nodeSelector[${key}] = ${String(given)}`);
  }
  const selector = { ...own, ...labels };
  if (Object.keys(selector).length > 0) spec["nodeSelector"] = selector;
  const added = arrayAt(scheduling, "tolerations") ?? [];
  if (added.length === 0) return;
  spec["tolerations"] = withoutCovered([...(arrayAt(spec, "tolerations") ?? []), ...added].filter(isObject));
}

/** Removes tolerations that another one covers. Of equal tolerations the first is kept. */
function withoutCovered(tolerations: JsonObject[]): JsonObject[] {
  const kept: JsonObject[] = [];
  for (const [index, one] of tolerations.entries()) {
    const later = tolerations.slice(index + 1).some((other) => !deepEqual(one, other) && covers(other, one));
    if (!later && !kept.some((other) => covers(other, one))) kept.push(one);
  }
  return kept;
}

function covers(wide: JsonObject, one: JsonObject): boolean {
  if (deepEqual(wide, one)) return true;
  const text = (of: JsonObject, key: string) => stringAt(of, key) ?? "";
  const isForAll = text(wide, "key") === "" && text(wide, "operator") === "Exists";
  if (text(one, "key") !== text(wide, "key") && !isForAll) return false;
  if (text(one, "effect") !== text(wide, "effect") && text(wide, "effect") !== "") return false;
  const [limit, seconds] = [wide, one].map((of) => memberOf(of, "tolerationSeconds"));
  const isShorter =
    text(wide, "effect") === "NoExecute" &&
    limit !== undefined &&
    (seconds === undefined || Number(seconds) > Number(limit));
  if (isShorter) return false;
  if (text(wide, "operator") === "Exists") return true;
  return text(one, "operator") === "Equal" && text(one, "value") === text(wide, "value");
}
