import { didYouMean, quote, type Diagnostic } from "../../diagnostic.js";
import { ruleOfController } from "../resolved-project.js";

/** Finds names in `dependsOn` and `itemsDependOn` that are no dependents. */
export const checkUnknownDependent = ruleOfController(({ spec: { document, dependents, name } }) =>
  [...dependents].flatMap(([dependent, spec]) => {
    const others = [...dependents.keys()].filter((other) => other !== dependent);
    return (["dependsOn", "itemsDependOn"] as const).flatMap((list) =>
      (spec[list] ?? []).flatMap((other, index): Diagnostic[] => {
        if (dependents.has(other)) return [];
        return [
          {
            severity: "error",
            rule: "unknown-dependent",
            message: `${quote(other)} is not a dependent of ${quote(name)}`,
            ...document.valueAt(["spec", "dependents", dependent, list, index]),
            ...(didYouMean(other, others) ??
              (others.length > 0 ? { hint: `others: ${others.map(quote).join(", ")}` } : {})),
          },
        ];
      }),
    );
  }),
);
