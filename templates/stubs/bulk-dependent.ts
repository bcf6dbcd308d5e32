import type { __Dependent__Desired, __Dependent__Items } from "../../generated/__controller__/types.js";

/** Returns each __Kind__ that a __Primary__ needs, by keys of your choice. Objects that it no longer returns are deleted. */
export const desired: __Dependent__Desired = ({ primary }): __Dependent__Items => ({
  main: {
    metadata: { name: `${primary.metadata.name}-__item__-main` },
    ...__required__,
  },
});
