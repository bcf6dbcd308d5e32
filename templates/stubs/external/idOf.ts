/** Returns the id of a resource, unique among those of its __Primary__. */
export const idOf: __IdOf__ = ({ id }) => id;
