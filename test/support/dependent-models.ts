import type { KubernetesDependentModel, ResourceModel } from "#generator/model/project-model.js";

/** Returns a dependent that waits for what it depends on. */
export function dependentOf(
  name: string,
  resource: ResourceModel,
  dependsOn: readonly string[] = [],
): KubernetesDependentModel {
  return { name, resource, dependsOn, waitsFor: dependsOn, filters: {}, isGarbageCollected: true, conditions: {} };
}
