import { defineWorkflow } from "@gen-operator/runtime/codegen";
import { WebPage } from "../../../../fixtures/samples/webpage/src/generated/index.js";

interface Schema {
  readonly name: string;
}

export const workflow = defineWorkflow(WebPage).external("schema", {
  source: { kind: "poll", intervalMs: 1000, fetch: (): ReadonlyMap<string, readonly Schema[]> => new Map() },
  idOf: ({ id }) => id,
  desired: ({ primary }): Schema => ({ name: primary.metadata.name }),
  create: () => ({ named: "x" }),
  update: (desired: Schema, live: Schema) => (live.name === desired.name ? live : undefined),
});
