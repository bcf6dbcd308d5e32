/** Creates the object: next() creates it as the runtime does. An object that is not created is waited for. */
export const create: __Create__ = ({ next }) => next();
