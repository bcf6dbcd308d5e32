import type { Strategy } from "../strategy.js";

/** CustomResourceDefinitions; their validation and defaults are in registry/definition-rules.ts. */
export const customResourceDefinitionStrategy: Strategy = {
  generation: "spec",
  allowsUnconditionalUpdate: false,
  checksFinalizers: false,
};
