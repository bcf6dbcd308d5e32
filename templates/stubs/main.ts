import { runOperator } from "@gen-operator/runtime";
import { controllers } from "./generated/index.js";

await runOperator(controllers);
