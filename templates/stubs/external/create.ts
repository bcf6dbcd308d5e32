/** Creates one, and returns it as it is then; it is called again if it fails. */
export const create: __Create__ = (desired) => desired;
