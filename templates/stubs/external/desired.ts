export const external: __External__ = {
  /** Returns the resource that a __Primary__ needs. */
  desired: ({ primary }) => ({ id: primary.metadata.name }),
};
