export const external: __External__ = {
  /** Returns whether a resource of a __Primary__ belongs to "__name__". Its event source has resources of other dependents, too. */
  isOwn: () => {
    throw new Error("isOwn() of __name__ is not implemented");
  },
};
