import type { Context } from "@gen-operator/runtime/codegen";
import { ConfigMap, type Deployment } from "../../../../fixtures/samples/webpage/src/generated/index.js";

export function read(context: Context): Deployment | undefined {
  return context.secondary(ConfigMap);
}
