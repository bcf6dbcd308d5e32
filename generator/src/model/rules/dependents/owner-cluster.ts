import { quote, type Diagnostic } from "../../../diagnostic.js";
import { ruleOfController } from "../../build/resolved-project.js";

/** Finds owner references into other clusters, whose garbage collectors do not know the primary: they delete the dependent. */
export const checkOwnerCluster = ruleOfController(({ spec: { document }, primary, dependents }) =>
  dependents.flatMap(({ name, spec: { cluster, deletion }, path }): Diagnostic[] => {
    if (cluster === undefined || deletion !== "garbageCollected") return [];
    return [
      {
        severity: "error",
        rule: "owner-cluster",
        message: `a ${primary?.kind ?? "primary"} cannot own dependent ${quote(name)}: the dependent is in cluster ${quote(cluster)}, where the primary does not exist`,
        ...document.valueAt([...path, "deletion"]),
        hint: "remove it, and the operator deletes the object before the primary; or state deletion: orphan, and it stays",
      },
    ];
  }),
);
