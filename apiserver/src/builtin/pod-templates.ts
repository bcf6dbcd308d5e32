import { resourceNameOf } from "./resource-name.js";

/** Where objects have a template of Pods, by their resource. */
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

/** Gives the path of the template of Pods that an object has; undefined for other types. */
export function podTemplatePathOf(type: { readonly plural: string; readonly group: string }): string | undefined {
  return POD_TEMPLATES[resourceNameOf(type)];
}
