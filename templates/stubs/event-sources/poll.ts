import type { __Fetch__, __IdOf__ } from "../../generated/__controller__/types.js";

/** A resource of "__name__", as its service has it. */
export interface Resource {
  readonly id: string;
}

/** Returns all resources by the keys (namespace/name) of their __Primary__ objects. A resource that is missing counts as deleted. */
export const fetch: __Fetch__ = () => new Map();

/** Returns the id of a resource, unique among those of its __Primary__. */
export const idOf: __IdOf__ = ({ id }) => id;
