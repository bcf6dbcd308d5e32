import { quote, type Diagnostic } from "../../diagnostic.js";
import type { WorkflowSpec } from "../../input/workflow-spec.js";

/** Returns the diagnostics without those that a dependent accepts, and a warning for each acceptance of nothing. */
export function acceptWarnings(diagnostics: readonly Diagnostic[], workflows: readonly WorkflowSpec[]): Diagnostic[] {
  const unused: Diagnostic[] = [];
  const accepted = new Set<Diagnostic>();
  for (const { name: controller, dependents, document } of workflows)
    for (const [dependent, { accept = [] }] of dependents)
      for (const [index, { rule }] of accept.entries()) {
        const isMeant = (each: Diagnostic) => each.rule === rule && each.about === `${controller}/${dependent}`;
        const meant = diagnostics.filter(isMeant);
        for (const each of meant) accepted.add(each);
        if (meant.length > 0) continue;
        unused.push({
          severity: "warning",
          rule: "unused-acceptance",
          message: `dependent ${quote(dependent)} accepts the warning ${quote(rule)}, but no such warning is about it`,
          ...document.valueAt(["spec", "dependents", dependent, "accept", index, "rule"]),
          hint: "remove the entry of accept",
        });
      }
  return [...diagnostics.filter((each) => !accepted.has(each)), ...unused];
}
