export const operations: __Operations__ = {
  /** Called while the object does not exist. next() creates it as the operator would. Without next(), the dependent waits until another client creates it. */
  create: ({ next }) => next(),
};
