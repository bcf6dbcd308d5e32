import { didYouMean, quote, type Diagnostic } from "../../diagnostic.js";
import { ruleOfController } from "../resolved-project.js";

/** Finds names in `dependsOn` that are no dependents. */
export const checkUnknownDependent = ruleOfController(({ spec: { document, dependents, name } }) =>
  [...dependents].flatMap(([dependent, { dependsOn = [] }]) => {
    const others = [...dependents.keys()].filter((other) => other !== dependent);
    return dependsOn.flatMap((other, index): Diagnostic[] => {
      if (dependents.has(other)) return [];
      return [
        {
          severity: "error",
          rule: "unknown-dependent",
          message: `${quote(other)} is not a dependent of ${quote(name)}`,
          ...document.valueAt(["spec", "dependents", dependent, "dependsOn", index]),
          ...(didYouMean(other, others) ??
            (others.length > 0 ? { hint: `others: ${others.map(quote).join(", ")}` } : {})),
        },
      ];
    });
  }),
);
