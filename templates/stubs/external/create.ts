export const external: __External__ = {
  /** Creates the resource and returns it as the service reports it. Called again if it fails. */
  create: () => {
    throw new Error("create() of __name__ is not implemented");
  },
};
