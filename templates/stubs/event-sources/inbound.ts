import type { __Source__ } from "../../generated/__controller__/types.js";

/** A resource of "__name__", as its service reports it. Push it with put() and delete() of __source__ in generated/__controller__/controller.ts. */
export interface Resource {
  readonly id: string;
}

export const source: __Source__ = {
  /** Returns the id of a resource, unique among those of its __Primary__. */
  idOf: ({ id }) => id,
};
