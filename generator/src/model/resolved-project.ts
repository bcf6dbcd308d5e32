import type { Diagnostic } from "../diagnostic.js";
import type { CONDITION_NAMES, ConditionSpec, DependentSpec, WorkflowSpec } from "../input/workflow-spec.js";
import type { YamlPath } from "../input/yaml-document.js";
import type { ConditionName, ResourceModel } from "./project-model.js";
import type { ResourceCatalog } from "./resource-catalog.js";

/** A project whose names of kinds were looked up; what was not found is left out. */
export interface ResolvedProject {
  readonly catalog: ResourceCatalog;
  readonly controllers: readonly ResolvedController[];
}

/** A workflow spec with its kinds. */
export interface ResolvedController {
  readonly spec: WorkflowSpec;
  readonly primary?: ResourceModel;
  readonly dependents: readonly ResolvedDependent[];
}

/** A dependent of a workflow spec with its kind. */
export interface ResolvedDependent {
  readonly name: string;
  readonly spec: DependentSpec;
  readonly path: YamlPath;
  readonly resource?: ResourceModel;
}

/** Finds one kind of mistake. */
export type Rule = (project: ResolvedProject) => Diagnostic[];

/** Finds one kind of mistake that lies within one controller. */
export function ruleOfController(
  check: (controller: ResolvedController, project: ResolvedProject) => Diagnostic[],
): Rule {
  return (project) => project.controllers.flatMap((controller) => check(controller, project));
}

/** A condition of a dependent, and the way to it. */
export interface LocatedCondition {
  readonly name: ConditionName;
  readonly condition: ConditionSpec;
  readonly path: YamlPath;
}

const CONDITIONS: typeof CONDITION_NAMES = [
  "activationCondition",
  "reconcilePrecondition",
  "readyPostcondition",
  "deletePostcondition",
];

/** Returns the conditions of a dependent in the order of a reconcile. */
export function conditionsOf({ spec, path }: ResolvedDependent): LocatedCondition[] {
  return CONDITIONS.flatMap((name) => {
    const condition = spec[name];
    return condition === undefined ? [] : [{ name, condition, path: [...path, name] }];
  });
}
