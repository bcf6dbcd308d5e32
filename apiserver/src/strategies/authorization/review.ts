import type { Strategy } from "../strategy.js";

/** Reviews of access and tokens, which are answered and not stored. */
export const reviewStrategy: Strategy = {
  creates: "review",
};
