import type { Diagnostic } from "../../../diagnostic.js";
import { findCycles } from "../../build/dependency-graph.js";
import { dependenciesOf, edgesOf, ruleOfController } from "../../build/resolved-project.js";

/** Finds dependents that depend on themselves, directly or through others. */
export const checkDependencyCycle = ruleOfController(({ spec: { document }, dependents }) =>
  findCycles(edgesOf(dependents)).map((cycle): Diagnostic => {
    const edge = dependents
      .filter(({ name }) => name === cycle[0])
      .flatMap(dependenciesOf)
      .find(({ name }) => name === cycle[1]);
    return {
      severity: "error",
      rule: "dependency-cycle",
      message: `dependents wait for each other: ${cycle.join(" → ")}`,
      ...document.valueAt(edge?.path ?? []),
    };
  }),
);
