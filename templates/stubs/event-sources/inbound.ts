import type { __IdOf__ } from "../../generated/__controller__/types.js";

/** A resource of "__name__", as its service has it. Push it with put() and delete() of __source__ in generated/__controller__/controller.ts. */
export interface Resource {
  readonly id: string;
}

/** Returns the id of a resource, unique among those of its __Primary__. */
export const idOf: __IdOf__ = ({ id }) => id;
