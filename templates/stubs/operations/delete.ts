/** Called when the object must not exist. next() deletes it as the operator would, and takes a propagationPolicy. */
export const __remove__: __Delete__ = ({ next }) => next();
