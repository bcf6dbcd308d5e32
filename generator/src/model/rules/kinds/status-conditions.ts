import { quote, type Diagnostic } from "../../../diagnostic.js";
import { resolveRef } from "../../definitions.js";
import type { ResourceModel } from "../../project-model.js";
import { ownSchema, schemasOf, takesStatusCondition } from "../../schema/raw-schema.js";
import { ruleOfController, type ResolvedController, type Rule } from "../../build/resolved-project.js";

/** Finds primaries that cannot have the conditions that the runtime is to keep, and controllers that would write the same ones. */
export const checkStatusConditions: Rule = (project) => [
  ...checkKinds(project),
  ...project.controllers.flatMap(checkPrefix),
  ...project.controllers.flatMap((controller, index) => checkShared(controller, project.controllers.slice(0, index))),
];

function checkPrefix({ spec: { statusConditions, controller, document } }: ResolvedController): Diagnostic[] {
  if (controller.conditionPrefix === undefined || statusConditions !== undefined) return [];
  return [
    {
      severity: "error",
      rule: "status-conditions",
      message: "conditionPrefix has no effect: the operator keeps no conditions",
      ...document.keyAt(["spec", "controller", "conditionPrefix"]),
      hint: "set statusConditions: managed, or remove conditionPrefix",
    },
  ];
}

// Each would overwrite what the other one has found, for ever. Different selectors may have no primary in common.
function checkShared(controller: ResolvedController, others: readonly ResolvedController[]): Diagnostic[] {
  const { spec, primary } = controller;
  if (spec.statusConditions === undefined || primary === undefined) return [];
  const types = conditionTypesIn(controller);
  const other = others.find(
    (each) =>
      each.spec.statusConditions !== undefined &&
      each.primary?.kind === primary.kind &&
      each.primary.group === primary.group &&
      !mayBeDisjoint(controller, each) &&
      conditionTypesIn(each).some((type) => types.includes(type)),
  );
  if (other === undefined) return [];
  const shared = conditionTypesIn(other).find((type) => types.includes(type));
  return [
    {
      severity: "error",
      rule: "status-conditions",
      message: `controllers ${quote(other.spec.name)} and ${quote(spec.name)} both keep the condition ${shared} in the status of each ${primary.kind}`,
      ...spec.document.valueAt(["spec", "statusConditions"]),
      hint:
        spec.controller.conditionPrefix === undefined
          ? `set conditionPrefix of the controller, such as ${spec.name.split("-").map(upperFirst).join("")}`
          : "set another conditionPrefix",
    },
  ];
}

// As the runtime names them.
function conditionTypesIn({ spec: { controller, dependents } }: ResolvedController): string[] {
  const { conditionPrefix: prefix = "" } = controller;
  const ofDependents = [...dependents.keys()].map((name) => `${prefix}${upperFirst(name)}Ready`);
  return [`${prefix}Ready`, `${prefix}Paused`, ...ofDependents];
}

function upperFirst(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function mayBeDisjoint({ spec: one }: ResolvedController, { spec: other }: ResolvedController): boolean {
  return (["labelSelector", "fieldSelector", "namespaces"] as const).some((by) => {
    const [mine, theirs] = [one.controller[by], other.controller[by]];
    return mine !== undefined && theirs !== undefined && JSON.stringify(mine) !== JSON.stringify(theirs);
  });
}

const checkKinds = ruleOfController(({ spec: { statusConditions, document }, primary }): Diagnostic[] => {
  if (statusConditions === undefined || primary === undefined) return [];
  const problem = problemOf(primary);
  if (problem === undefined) return [];
  return [
    {
      severity: "error",
      rule: "status-conditions",
      message: `${primary.kind} ${problem}`,
      ...document.valueAt(["spec", "statusConditions"]),
      hint:
        "give its CRD status.conditions: a list of objects with type, status (one of True, False and Unknown), reason, message,\n" +
        "lastTransitionTime and observedGeneration, which has x-kubernetes-list-type: map and x-kubernetes-list-map-keys: [type]",
    },
  ];
});

function problemOf({ schema, definitions, hasStatusSubresource }: ResourceModel): string | undefined {
  if (!hasStatusSubresource) return "has no status subresource";
  const status = schemasOf(resolveRef(schema, definitions).schema, "properties").get("status");
  const fields = status === undefined ? new Map() : schemasOf(resolveRef(status, definitions).schema, "properties");
  const conditions = fields.get("conditions");
  if (conditions === undefined) return "has no status.conditions";
  const list = resolveRef(conditions, definitions).schema;
  const items = ownSchema(list, "items");
  if (items === undefined || !takesStatusCondition(resolveRef(items, definitions).schema))
    return "has status.conditions that cannot be those of metav1.Condition";
  const keys = list["x-kubernetes-list-map-keys"];
  const isShared = list["x-kubernetes-list-type"] === "map" && Array.isArray(keys) && keys.join() === "type";
  return isShared
    ? undefined
    : "has status.conditions that only one field manager can write, as the list has no x-kubernetes-list-type: map";
}
