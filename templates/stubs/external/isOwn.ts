export const external: __External__ = {
  /** Tells whether a resource of a __Primary__ belongs to "__name__". Its event source has resources of other dependents, too. */
  isOwn: () => {
    throw new Error("fill in which resources belong to __name__");
  },
};
