import type { Diagnostic } from "../../diagnostic.js";
import { findCycles } from "../dependency-graph.js";
import { edgesOf, ruleOfController } from "../resolved-project.js";

/** Finds dependents that depend on themselves, directly or through others. */
export const checkDependencyCycle = ruleOfController(({ spec: { document }, dependents }) =>
  findCycles(edgesOf(dependents)).map((cycle): Diagnostic => {
    const [first = "", second = ""] = cycle;
    const { dependsOn = [], itemsDependOn = [] } = dependents.find(({ name }) => name === first)?.spec ?? {};
    const list = dependsOn.includes(second) ? "dependsOn" : "itemsDependOn";
    const index = (list === "dependsOn" ? dependsOn : itemsDependOn).indexOf(second);
    return {
      severity: "error",
      rule: "dependency-cycle",
      message: `dependents wait for each other: ${cycle.join(" → ")}`,
      ...document.valueAt(["spec", "dependents", first, list, index]),
    };
  }),
);
