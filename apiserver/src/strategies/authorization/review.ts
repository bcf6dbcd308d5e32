import type { Strategy } from "../strategy.js";

/** Access and token reviews, which are answered and not stored. */
export const reviewStrategy: Strategy = {
  creates: "review",
};
