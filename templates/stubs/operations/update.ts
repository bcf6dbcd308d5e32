/** Called whenever the object exists. next() updates it if it differs, as the operator would. Without next(), it stays as it is. */
export const update: __Update__ = ({ next }) => next();
