import type { Diagnostic } from "../../diagnostic.js";
import type { ParseExpression } from "../expression.js";
import { conditionsOf, ruleOfController, type ResolvedProject, type Rule } from "../resolved-project.js";

/** Finds texts of `when:` that are not one harmless expression. */
export function checkConditionExpression(parse: ParseExpression): Rule {
  return ruleOfController(({ spec: { document }, dependents }) =>
    dependents.flatMap((dependent) =>
      conditionsOf(dependent).flatMap(({ condition: { when }, path }): Diagnostic[] => {
        const parsed = when === undefined ? undefined : parse(when);
        if (parsed?.kind !== "problem") return [];
        const at = [...path, "when"];
        const position = document.characterAt(at, parsed.offset);
        return [{ severity: "error", rule: "when-syntax", message: parsed.message, ...document.valueAt(at), position }];
      }),
    ),
  );
}

/** Tells whether any condition of a project is an expression. */
export function hasExpressions({ controllers }: ResolvedProject): boolean {
  return controllers.some(({ dependents }) =>
    dependents.some((dependent) => conditionsOf(dependent).some(({ condition }) => condition.when !== undefined)),
  );
}
