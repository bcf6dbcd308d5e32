import { quote, type Diagnostic } from "../../diagnostic.js";
import { ruleOfController } from "../resolved-project.js";

/** Finds dependents that are there and removed at once. */
export const checkRemovedDependent = ruleOfController(({ spec: { document, dependents }, removed }) =>
  removed.flatMap(({ name, path }): Diagnostic[] => {
    if (!dependents.has(name)) return [];
    return [
      {
        severity: "error",
        rule: "removed-dependent",
        message: `${quote(name)} is a dependent of the workflow, so it is not removed`,
        ...document.keyAt(path),
        hint: "remove it here, or under dependents",
      },
    ];
  }),
);
