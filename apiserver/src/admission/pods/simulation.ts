// Rejects misspelled simulation annotations: without this check, a Pod that is meant to fail would run.
import { POD_TEMPLATES } from "../../builtin/pod-templates.js";
import { invalidError } from "../../errors/field-error.js";
import { invalid } from "../../errors/status-error.js";
import { type JsonObject, objectAt, stringAt } from "../../json.js";
import { kindRefOf, metadataOf } from "../../object/object-meta.js";
import { readSimulation } from "../../simulate-annotations.js";
import type { AdmissionPlugin, AdmittedWrite } from "../admission.js";

/** Only in this server, if it simulates Pods; kube-apiserver has no such plugin. */
export const simulation: AdmissionPlugin = {
  resources: ["pods", ...Object.keys(POD_TEMPLATES)],
  validate: checkSimulation,
};

/** Validates the simulation annotations of a Pod or of the Pod template of a workload. */
function checkSimulation({ context, subresource, object }: AdmittedWrite): void {
  const { type } = context.resource;
  if (object === undefined || subresource !== "") return;
  const [field, annotations] = annotationsOf(type.kind, object);
  if (annotations === undefined) return;
  try {
    readSimulation(annotations);
  } catch (error) {
    const name = stringAt(metadataOf(object), "name") ?? "";
    throw invalid(kindRefOf(type, name), [invalidError(field, "simulate/…", (error as Error).message)]);
  }
}

function annotationsOf(kind: string, object: JsonObject): [field: string, annotations: JsonObject | undefined] {
  if (kind === "Pod") return ["metadata.annotations", objectAt(metadataOf(object), "annotations")];
  const spec = objectAt(object, "spec");
  const inner = kind === "CronJob" ? objectAt(objectAt(spec, "jobTemplate"), "spec") : spec;
  const path = kind === "CronJob" ? "spec.jobTemplate.spec" : "spec";
  const metadata = objectAt(objectAt(inner, "template"), "metadata");
  return [`${path}.template.metadata.annotations`, objectAt(metadata, "annotations")];
}
