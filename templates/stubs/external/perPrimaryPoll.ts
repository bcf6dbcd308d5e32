export const external: __External__ = {
  /** Returns all resources of a __Primary__. A missing resource counts as deleted. */
  fetch: () => {
    throw new Error("fetch() of __name__ is not implemented");
  },
};
