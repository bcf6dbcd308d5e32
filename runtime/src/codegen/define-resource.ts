import type { KubernetesObject } from "../base/kubernetes-object.js";
import type { ResourceDefinition, Schema } from "../base/resource-definition.js";

/** The facts of a kind that generated code states. */
export interface ResourceFacts {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly scope: "Namespaced" | "Cluster";
  readonly hasStatusSubresource: boolean;
  readonly isCustom: boolean;
  readonly schema: Schema;
}

/** Defines a kind from its facts. */
export function defineResource<Resource extends KubernetesObject>(facts: ResourceFacts): ResourceDefinition<Resource> {
  const apiVersion = facts.group === "" ? facts.version : `${facts.group}/${facts.version}`;
  return Object.freeze({ ...facts, apiVersion });
}

/** Builds an object of a kind: `init` with the kind's apiVersion and kind. */
export function createResource<Resource extends KubernetesObject>(
  definition: ResourceDefinition<Resource>,
  init: object,
): Resource {
  return { apiVersion: definition.apiVersion, kind: definition.kind, ...init } as Resource;
}

/** Tells whether a value is an object of the kind, by apiVersion and kind alone. */
export function isResource<Resource extends KubernetesObject>(
  definition: ResourceDefinition<Resource>,
  value: unknown,
): value is Resource {
  if (typeof value !== "object" || value === null) return false;
  const { apiVersion, kind } = value as Partial<KubernetesObject>;
  return apiVersion === definition.apiVersion && kind === definition.kind;
}
