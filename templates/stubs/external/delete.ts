export const external: __External__ = {
  /** Deletes the resource. Has to succeed if the resource no longer exists. */
  delete: () => {
    throw new Error("fill in how a resource of __name__ is deleted");
  },
};
