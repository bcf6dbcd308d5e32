export const external: __External__ = {
  /** Returns all resources of a __Primary__. A resource that is missing counts as deleted. */
  fetch: () => {
    throw new Error("fill in how resources of __name__ are fetched");
  },
};
