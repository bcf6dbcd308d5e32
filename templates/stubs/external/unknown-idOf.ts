export const external: __External__ = {
  /** Returns the id of a resource, unique among those of its __Primary__. */
  idOf: () => {
    throw new Error("idOf() of __name__ is not implemented");
  },
};
