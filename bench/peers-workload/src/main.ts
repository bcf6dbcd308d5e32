import { createLogger, runOperator } from "@gen-operator/runtime";
import { webPageController } from "./generated/index.js";

// What the contract of the benchmark asks of every operator: ten reconciles at once, logs at warning level.
await runOperator([{ ...webPageController, maxConcurrentReconciles: 10 }], { logger: createLogger("warn") });
