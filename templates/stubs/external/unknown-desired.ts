export const external: __External__ = {
  /** Returns the resource that a __Primary__ needs. */
  desired: () => {
    throw new Error("fill in the desired state of __name__");
  },
};
