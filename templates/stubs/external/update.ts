export const external: __External__ = {
  /** Changes the live resource into the desired one and returns it as the service reports it. */
  update: () => {
    throw new Error("update() of __name__ is not implemented");
  },
};
