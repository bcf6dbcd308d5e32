import { defineWorkflow } from "@gen-operator/runtime/codegen";
import { WebPage } from "../../../../fixtures/samples/webpage/src/generated/index.js";

interface Account {
  readonly id: string;
}

export const workflow = defineWorkflow(WebPage).external("account", {
  source: { kind: "poll", intervalMs: 1000, fetch: (): ReadonlyMap<string, readonly Account[]> => new Map() },
  idOf: ({ id }) => id,
  state: { kind: "configMap" },
  stateOf: ({ id }: Account) => id,
  desired: ({ primary }) => ({ id: primary.metadata.name }),
  create: (desired: Account) => desired,
});
