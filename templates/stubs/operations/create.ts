/** Called while the object does not exist. next() creates it as the operator would. Without next(), the dependent waits until somebody else creates it. */
export const create: __Create__ = ({ next }) => next();
