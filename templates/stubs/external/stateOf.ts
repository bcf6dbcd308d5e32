export const external: __External__ = {
  /** Returns what is stored about a created resource, with its id as `id`; the other functions receive it as `state`. */
  stateOf: () => {
    throw new Error("stateOf() of __name__ is not implemented");
  },
};
