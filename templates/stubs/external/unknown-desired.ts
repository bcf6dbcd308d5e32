export const external: __External__ = {
  /** Returns the resource that a __Primary__ needs. */
  desired: () => {
    throw new Error("desired() of __name__ is not implemented");
  },
};
