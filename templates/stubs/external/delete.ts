/** Deletes the resource. Has to succeed if the resource no longer exists. */
export const __remove__: __Delete__ = () => {};
