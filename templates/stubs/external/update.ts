export const external: __External__ = {
  /** Changes the live resource into the desired one and returns it as the service has it. */
  update: () => {
    throw new Error("fill in how a resource of __name__ is changed");
  },
};
