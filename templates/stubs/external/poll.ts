export const external: __External__ = {
  /** Returns all resources by the keys (namespace/name) of their __Primary__ objects. A resource that is missing counts as deleted. */
  fetch: () => {
    throw new Error("fill in how resources of __name__ are fetched");
  },
};
