/** Returns the id of a resource, unique among those of its __Primary__. */
export const idOf: __IdOf__ = () => {
  throw new Error("fill in the id of a resource of __name__");
};
