import { readFileSync } from "node:fs";
import type { JsonObject } from "../json.js";
import { packageFile } from "../package-file.js";
import { resourceNameOf } from "./resource-name.js";

/** What a built-in schema does not say about its type; recorded from a kube-apiserver 1.36. */
export interface TypeFacts {
  /** Members that keep an explicit "", 0, false or []; of all others a zero is as good as absent. */
  keepsZero?: string[];
  /** Members that are shown as null when they are absent or an empty list. */
  nullIfUnset?: string[];
  /** Members whose empty default in the schema is not shown. */
  dropsEmpty?: string[];
  /** Defaults besides those of the schema. */
  defaults?: JsonObject;
}

const FACTS_FILE = packageFile("data/kubernetes-1.36-defaults.json");
const NONE: TypeFacts = {};

let memoisedFacts: Record<string, TypeFacts> | undefined;

/** Gives the facts of a named built-in schema. */
export function typeFactsOf(schemaName: string | undefined): TypeFacts {
  memoisedFacts ??= JSON.parse(readFileSync(FACTS_FILE, "utf8")) as Record<string, TypeFacts>;
  return (schemaName === undefined ? undefined : memoisedFacts[schemaName]) ?? NONE;
}

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
