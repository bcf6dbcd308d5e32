export const operations: __Operations__ = {
  /** Called when the object must not exist. next() deletes it as the operator would, and takes a propagationPolicy. */
  delete: ({ next }) => next(),
};
