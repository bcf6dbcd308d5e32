import { quote, type Diagnostic } from "../../diagnostic.js";
import type { ConditionName } from "../project-model.js";
import { formatKind } from "../resource-catalog.js";
import { conditionsOf, ruleOfController, type LocatedCondition, type ResolvedDependent } from "../resolved-project.js";

const NEVER: { readonly [K in ConditionName]: (name: string) => string } = {
  activationCondition: (name) => `${name} never takes part`,
  reconcilePrecondition: (name) => `${name} is never created`,
  readyPostcondition: (name) => `what depends on ${name} is never created`,
  deletePostcondition: (name) => `what ${name} depends on is never deleted, and neither is its primary`,
};

/** Warns of conditions that are the same whatever happens: nodes that can never activate, and conditions without effect. */
export const checkConstantCondition = ruleOfController(({ spec: { document }, dependents }) =>
  dependents.flatMap((dependent) =>
    conditionsOf(dependent).flatMap((located): Diagnostic[] => {
      const problem = problemOf(located, dependent);
      if (problem === undefined) return [];
      const field = located.condition.builtin === undefined ? "when" : "builtin";
      return [
        {
          severity: "warning",
          rule: "constant-condition",
          message: problem,
          ...document.valueAt([...located.path, field]),
        },
      ];
    }),
  ),
);

function problemOf(
  { name: kind, condition: { when, builtin } }: LocatedCondition,
  { name, resource }: ResolvedDependent,
): string | undefined {
  const text = when?.trim();
  if (text === "false") return `this never holds, so ${NEVER[kind](quote(name))}`;
  if (text === "true") return `this always holds, as it would if there were no ${kind}`;
  if (builtin !== "crdPresent" || resource === undefined || resource.isCustom) return undefined;
  return `${formatKind(resource)} needs no CustomResourceDefinition: Kubernetes 1.36 always has it, so this always holds`;
}
