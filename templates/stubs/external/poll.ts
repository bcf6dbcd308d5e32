export const external: __External__ = {
  /** Returns all resources by the keys (namespace/name) of their __Primary__ objects. A missing resource counts as deleted. */
  fetch: () => {
    throw new Error("fetch() of __name__ is not implemented");
  },
};
