/** Deletes the object: next() deletes it as the runtime does, and takes a propagationPolicy. Without next() it is left. */
export const __remove__: __Delete__ = ({ next }) => next();
