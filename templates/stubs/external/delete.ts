export const external: __External__ = {
  /** Deletes the resource. Must succeed if the resource no longer exists. */
  delete: () => {
    throw new Error("delete() of __name__ is not implemented");
  },
};
