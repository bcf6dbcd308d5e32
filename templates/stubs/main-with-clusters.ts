import { loadConnection, runOperator } from "@gen-operator/runtime";
import { controllers } from "./generated/index.js";

/** The clusters besides that of the operator, by the names that workflow.yaml has for them. */
const clusters = __clusters__;

await runOperator(controllers, { clusters });
