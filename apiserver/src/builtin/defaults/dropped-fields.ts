// Fields that Kubernetes 1.36 reads and forgets before it checks the object: those of features that are switched off, and what it has no use for.
import { objectAt, type JsonObject } from "../../json.js";
import { objectsAt } from "../read-path.js";

const POD_SPEC = ["schedulingGroup"];

/** By plural and group: where the fields are, and their names. */
const DISABLED: { readonly [type: string]: { readonly at: string; readonly fields: readonly string[] } } = {
  "leases.coordination.k8s.io": { at: "spec", fields: ["preferredHolder", "strategy"] },
  "csidrivers.storage.k8s.io": { at: "spec", fields: ["preventPodSchedulingIfMissing"] },
  "pods.": { at: "spec", fields: POD_SPEC },
  "podtemplates.": { at: "template.spec", fields: POD_SPEC },
  "replicationcontrollers.": { at: "spec.template.spec", fields: POD_SPEC },
  "deployments.apps": { at: "spec.template.spec", fields: POD_SPEC },
  "replicasets.apps": { at: "spec.template.spec", fields: POD_SPEC },
  "statefulsets.apps": { at: "spec.template.spec", fields: POD_SPEC },
  "daemonsets.apps": { at: "spec.template.spec", fields: POD_SPEC },
  "jobs.batch": { at: "spec.template.spec", fields: POD_SPEC },
  "cronjobs.batch": { at: "spec.jobTemplate.spec.template.spec", fields: POD_SPEC },
};

/** Takes such fields off an object. */
export function dropFields(type: { readonly plural: string; readonly group: string }, object: JsonObject): void {
  if (type.plural === "serviceaccounts" && type.group === "") keepNames(objectsAt(object, "secrets"));
  const disabled = DISABLED[`${type.plural}.${type.group}`];
  if (disabled === undefined) return;
  const holder = disabled.at.split(".").reduce((at: JsonObject | undefined, key) => objectAt(at, key), object);
  if (holder !== undefined) for (const field of disabled.fields) delete holder[field];
}

function keepNames(references: readonly JsonObject[]): void {
  for (const reference of references)
    for (const member of Object.keys(reference)) if (member !== "name") delete reference[member];
}
