export const operations: __Operations__ = {
  /** Called whenever the object exists. next() updates it if it differs, as the operator would. Without next(), it is not changed. */
  update: ({ next }) => next(),
};
