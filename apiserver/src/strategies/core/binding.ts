import type { Strategy } from "../strategy.js";

/** Bindings, which assign a Pod to a Node. */
export const bindingStrategy: Strategy = {
  creates: "binding",
};
