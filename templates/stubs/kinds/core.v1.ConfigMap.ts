import type { __Dependent__Desired, __Resource__Input } from "../../generated/__controller__/types.js";

/** Returns the __Resource__ that a __Primary__ needs. The operator creates it, keeps it as returned, and links it to the __Primary__. */
export const desired: __Dependent__Desired = ({ primary }): __Resource__Input => ({
  metadata: { name: __objectName__ },
  data: {},
});
