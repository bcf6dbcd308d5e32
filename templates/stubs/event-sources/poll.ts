import type { __Fetch__, __IdOf__ } from "../../generated/__controller__/types.js";

/** One of "__name__", as it is outside of Kubernetes. */
export interface Resource {
  readonly id: string;
}

/** Returns all of them, by the keys, namespace/name, of the __Primary__ objects that they belong to; what is missing is gone. */
export const fetch: __Fetch__ = () => new Map();

/** Tells those of one __Primary__ apart. */
export const idOf: __IdOf__ = ({ id }) => id;
