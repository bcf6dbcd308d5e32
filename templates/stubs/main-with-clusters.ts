import { loadConnection, runOperator } from "@gen-operator/runtime";
import { controllers } from "./generated/index.js";

/** The other clusters, by their names in workflow.yaml. */
const clusters = __clusters__;

await runOperator(controllers, { clusters });
