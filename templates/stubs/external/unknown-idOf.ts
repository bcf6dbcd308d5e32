export const external: __External__ = {
  /** Returns the id of a resource, unique among those of its __Primary__. */
  idOf: () => {
    throw new Error("fill in the id of a resource of __name__");
  },
};
