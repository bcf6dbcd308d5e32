export const external: __External__ = {
  /** Creates the resource and returns it as the service has it. Called again if it fails. */
  create: () => {
    throw new Error("fill in how a resource of __name__ is created");
  },
};
