import { quote, type Diagnostic } from "../../diagnostic.js";
import { ruleOfController } from "../build/resolved-project.js";

/** Finds owner references into other clusters, whose garbage collectors do not know the primary: they delete the dependent. */
export const checkOwnerCluster = ruleOfController(({ spec: { document }, primary, dependents }) =>
  dependents.flatMap(({ name, spec: { cluster, garbageCollected }, path }): Diagnostic[] => {
    if (cluster === undefined || garbageCollected !== true) return [];
    return [
      {
        severity: "error",
        rule: "owner-cluster",
        message: `${quote(name)} cannot be owned by a ${primary?.kind ?? "primary"}: it is in the cluster ${quote(cluster)}, which does not have the primary`,
        ...document.valueAt([...path, "garbageCollected"]),
        hint: "remove it; the operator then deletes the object when the primary is deleted",
      },
    ];
  }),
);
