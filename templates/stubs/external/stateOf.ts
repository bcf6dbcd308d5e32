export const external: __External__ = {
  /** Returns what is kept of a resource that was created, with its id as `id`; the other functions get it as `state`. */
  stateOf: () => {
    throw new Error("fill in what is kept of a resource of __name__");
  },
};
