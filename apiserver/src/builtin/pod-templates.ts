import { resourceNameOf } from "./resource-name.js";

/** Paths of the Pod templates of workloads, by resource. */
export const POD_TEMPLATES: { readonly [resource: string]: string } = {
  "deployments.apps": "spec.template",
  "replicasets.apps": "spec.template",
  "statefulsets.apps": "spec.template",
  "daemonsets.apps": "spec.template",
  "jobs.batch": "spec.template",
  "cronjobs.batch": "spec.jobTemplate.spec.template",
  replicationcontrollers: "spec.template",
  podtemplates: "template",
};

/** Returns the path of the Pod template of a type; undefined if it has none. */
export function podTemplatePathOf(type: { readonly plural: string; readonly group: string }): string | undefined {
  return POD_TEMPLATES[resourceNameOf(type)];
}
