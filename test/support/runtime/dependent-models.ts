import type {
  ExternalDependentModel,
  KubernetesDependentModel,
  ResourceModel,
} from "#generator/model/project-model.js";

/** Returns a dependent that waits for its dependencies. */
export function dependentOf(
  name: string,
  resource: ResourceModel,
  dependsOn: readonly string[] = [],
): KubernetesDependentModel {
  return {
    name,
    resource,
    dependsOn,
    waitsFor: dependsOn,
    follows: dependsOn,
    filters: {},
    deletion: "garbageCollected",
    conditions: {},
  };
}

/** Returns an external dependent that can be created, and that declares its type in its file. */
export function externalOf(name: string, source: ExternalDependentModel["external"]["source"]): ExternalDependentModel {
  const external = { source, type: { kind: "declared" }, capabilities: ["create"] } as const;
  return { name, external, dependsOn: [], waitsFor: [], follows: [], conditions: {} };
}
