import { quote, type Diagnostic } from "../../diagnostic.js";
import type { ConditionName } from "../project-model.js";
import { conditionsOf, ruleOfController } from "../resolved-project.js";

// `deleted` holds before the first creation, so anywhere else it would hold at the wrong time; `ready` never holds before creation.
const USES: { readonly [name: string]: readonly ConditionName[] } = {
  ready: ["readyPostcondition"],
  deleted: ["deletePostcondition"],
  crdPresent: ["activationCondition", "reconcilePrecondition"],
};

/** Finds built-in conditions where they make no sense. */
export const checkBuiltinCondition = ruleOfController(({ spec: { document }, dependents }) =>
  dependents.flatMap((dependent) =>
    conditionsOf(dependent).flatMap(({ name, condition: { builtin }, path }): Diagnostic[] => {
      const uses = builtin === undefined ? undefined : USES[builtin];
      if (builtin === undefined || uses === undefined || uses.includes(name)) return [];
      const suited = Object.keys(USES).filter((other) => USES[other]?.includes(name));
      return [
        {
          severity: "error",
          rule: "builtin-condition",
          message: `the built-in condition ${quote(builtin)} is a ${uses.join(" or ")}, not a ${name}`,
          ...document.valueAt([...path, "builtin"]),
          hint: `for a ${name} there is ${suited.map(quote).join(", ")}`,
        },
      ];
    }),
  ),
);
