import type { Context } from "@gen-operator/runtime/codegen";

export function read(context: Context): readonly unknown[] {
  return context.secondaries("Schema", { deduplicated: true });
}
