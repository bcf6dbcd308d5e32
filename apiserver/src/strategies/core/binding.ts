import type { Strategy } from "../strategy.js";

/** Bindings, which bind a Pod to a Node. */
export const bindingStrategy: Strategy = {
  creates: "binding",
};
