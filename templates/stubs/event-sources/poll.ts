import type { __Source__ } from "../../generated/__controller__/types.js";

/** A resource of "__name__", as its service reports it. */
export interface Resource {
  readonly id: string;
}

export const source: __Source__ = {
  /** Returns all resources by the keys (namespace/name) of their __Primary__ objects. A missing resource counts as deleted. */
  fetch: () => {
    throw new Error("fetch() of __name__ is not implemented");
  },

  /** Returns the id of a resource, unique among those of its __Primary__. */
  idOf: ({ id }) => id,
};
