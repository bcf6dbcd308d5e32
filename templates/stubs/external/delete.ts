export const external: __External__ = {
  /** Deletes the resource. Has to succeed if the resource no longer exists. */
  delete: () => {},
};
