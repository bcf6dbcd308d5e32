import { didYouMean, quote, type Diagnostic } from "../../diagnostic.js";
import { dependenciesOf, ruleOfController } from "../resolved-project.js";

/** Finds names in `dependsOn` and `itemsDependOn` that are no dependents. */
export const checkUnknownDependent = ruleOfController(({ spec: { document, name: controller }, dependents }) =>
  dependents.flatMap((dependent) => {
    const others = dependents.map(({ name }) => name).filter((other) => other !== dependent.name);
    return dependenciesOf(dependent).flatMap(({ name, path }): Diagnostic[] => {
      if (name === dependent.name || others.includes(name)) return [];
      return [
        {
          severity: "error",
          rule: "unknown-dependent",
          message: `${quote(name)} is not a dependent of ${quote(controller)}`,
          ...document.valueAt(path),
          ...(didYouMean(name, others) ??
            (others.length > 0 ? { hint: `others: ${others.map(quote).join(", ")}` } : {})),
        },
      ];
    });
  }),
);
