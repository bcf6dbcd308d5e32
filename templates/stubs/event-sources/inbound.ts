import type { __IdOf__ } from "../../generated/__controller__/types.js";

/** One of "__name__", as it is outside of Kubernetes; what brings it calls put() and delete() of __source__ in generated/__controller__/controller.ts. */
export interface Resource {
  readonly id: string;
}

/** Tells those of one __Primary__ apart. */
export const idOf: __IdOf__ = ({ id }) => id;
