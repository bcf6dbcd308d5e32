/** Tells whether a resource of a __Primary__ belongs to "__name__". Its event source has resources of other dependents, too. */
export const isOwn: __IsOwn__ = () => {
  throw new Error("fill in which resources belong to __name__");
};
