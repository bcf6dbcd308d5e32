import type { Diagnostic } from "../../diagnostic.js";
import { findCycles } from "../dependency-graph.js";
import { ruleOfController } from "../resolved-project.js";

/** Finds dependents that depend on themselves, directly or through others. */
export const checkDependencyCycle = ruleOfController(({ spec: { document, dependents } }) => {
  const graph = new Map([...dependents].map(([name, { dependsOn = [] }]) => [name, dependsOn]));
  return findCycles(graph).map((cycle): Diagnostic => {
    const [first = "", second = ""] = cycle;
    const index = graph.get(first)?.indexOf(second) ?? 0;
    return {
      severity: "error",
      rule: "dependency-cycle",
      message: `dependents wait for each other: ${cycle.join(" → ")}`,
      ...document.valueAt(["spec", "dependents", first, "dependsOn", index]),
    };
  });
});
