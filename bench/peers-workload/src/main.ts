import { createLogger, runOperator } from "@gen-operator/runtime";
import { genOperatorController } from "./generated/index.js";

// What the contract of the benchmark asks of every operator: ten reconciles at once, logs at warning level.
await runOperator([{ ...genOperatorController, maxConcurrentReconciles: 10 }], { logger: createLogger("warn") });
