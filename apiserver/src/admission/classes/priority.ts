// Admission plugin Priority: resolves the PriorityClass of a Pod and rejects Pods whose class does not exist.
import { forbidden } from "../../errors/status-error.js";
import { type JsonObject, objectAt, stringAt } from "../../json.js";
import { metadataOf } from "../../object/object-meta.js";
import { type AdmissionPlugin, type AdmittedWrite, refOfWrite } from "../admission.js";

const CLASSES = { group: "scheduling.k8s.io", version: "v1", plural: "priorityclasses" };
const BY_DEFAULT = { value: 0, preemptionPolicy: "PreemptLowerPriority" };

export const priority: AdmissionPlugin = {
  resources: ["pods", "priorityclasses.scheduling.k8s.io"],
  mutate: setPriority,
  validate: checkOneDefault,
};

/** Sets the priority and preemption policy of a new Pod, in place. An update that omits them keeps the old values. */
function setPriority(write: AdmittedWrite): void {
  const { context, operation, subresource, object, oldObject } = write;
  const isOfPod = context.resource.type.plural === "pods" && subresource === "";
  const spec = isOfPod ? objectAt(object, "spec") : undefined;
  if (spec === undefined) return;
  if (operation === "CREATE") setFromClass(write, spec);
  for (const key of ["priority", "preemptionPolicy"]) {
    const before = objectAt(oldObject, "spec")?.[key];
    if (before !== undefined) spec[key] ??= before;
  }
}

function setFromClass(write: AdmittedWrite, spec: JsonObject): void {
  const { context } = write;
  const refuse = (detail: string): Error => forbidden(refOfWrite(write), detail);
  const name = stringAt(spec, "priorityClassName") ?? "";
  const found = name === "" ? globalDefault(context) : classNamed(context, name);
  if (found === undefined && name !== "") throw refuse(`no PriorityClass with name ${name} was found`);
  if (found !== undefined && name === "") spec["priorityClassName"] = stringAt(metadataOf(found), "name") ?? "";
  const { value, preemptionPolicy } = { ...BY_DEFAULT, ...found };
  const given = spec["priority"];
  if (given !== undefined && given !== value) {
    throw refuse(
      `the integer value of priority (${String(given)}) must not be provided in pod spec; ` +
        `priority admission controller computed ${String(value)} from the given PriorityClass name`,
    );
  }
  const policy = spec["preemptionPolicy"];
  if (policy !== undefined && policy !== preemptionPolicy) {
    throw refuse(
      `the string value of PreemptionPolicy (${String(policy)}) must not be provided in pod spec; ` +
        `priority admission controller computed ${String(preemptionPolicy)} from the given PriorityClass name`,
    );
  }
  spec["priority"] = value;
  spec["preemptionPolicy"] = preemptionPolicy;
}

/** Throws 403 if another PriorityClass is already the global default. */
function checkOneDefault(write: AdmittedWrite): void {
  const { context, operation, object } = write;
  if (context.resource.type.plural !== CLASSES.plural || object?.["globalDefault"] !== true) return;
  const present = globalDefault(context);
  const name = present === undefined ? "" : (stringAt(metadataOf(present), "name") ?? "");
  const isOther = operation === "CREATE" || name !== stringAt(metadataOf(object), "name");
  const detail = `PriorityClass ${name} is already marked as default. Only one default can exist`;
  if (present !== undefined && isOther) throw forbidden(refOfWrite(write), detail);
}

type Context = AdmittedWrite["context"];

function classNamed({ registry }: Context, name: string): JsonObject | undefined {
  return registry.find(CLASSES)?.store.get(name)?.object;
}

/** If several classes are global defaults, the one with the lowest value applies. */
function globalDefault({ registry }: Context): JsonObject | undefined {
  const classes = registry.find(CLASSES)?.store.list("") ?? [];
  const byDefault = classes.map(({ object }) => object).filter(({ globalDefault }) => globalDefault === true);
  return byDefault.sort((a, b) => Number(a["value"]) - Number(b["value"]))[0];
}
