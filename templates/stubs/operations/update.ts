/** Called when there is an object: next() makes it as desired, as the runtime does. Without next() it is left as it is. */
export const update: __Update__ = ({ next }) => next();
