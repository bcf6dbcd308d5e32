import { didYouMean, quote, type Diagnostic } from "../../../diagnostic.js";
import { presentNames } from "../../moved-names.js";
import { dependenciesOf, ruleOfController } from "../../build/resolved-project.js";

/** Finds names in `dependsOn` and `itemsDependOn` that are no dependents. */
export const checkUnknownDependent = ruleOfController(({ spec, dependents }) =>
  dependents.flatMap((dependent) => {
    const { document, eventSources } = spec;
    const present = presentNames(spec.moved);
    const others = dependents.map(({ name }) => name).filter((other) => other !== dependent.name);
    return dependenciesOf(dependent).flatMap(({ name, path }): Diagnostic[] => {
      if (name === dependent.name || others.includes(name)) return [];
      return [
        {
          severity: "error",
          rule: "unknown-dependent",
          message: `dependent ${quote(dependent.name)} depends on ${quote(name)}, which spec.dependents does not have`,
          ...document.valueAt(path),
          ...(eventSources.has(name)
            ? { hint: `remove it: ${quote(name)} is an event source, which is read before any dependent is reconciled` }
            : present.has(name)
              ? { hint: `write ${quote(present.get(name) ?? "")}, which it is called now` }
              : (didYouMean(name, others) ?? { hint: adviceFor(name, others) })),
        },
      ];
    });
  }),
);

function adviceFor(name: string, others: readonly string[]): string {
  const add = `add ${quote(name)} to spec.dependents, or remove it here`;
  return others.length === 0 ? add : `${add}; other dependents: ${others.map(quote).join(", ")}`;
}
