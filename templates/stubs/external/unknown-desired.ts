/** Returns the resource that a __Primary__ needs. */
export const desired: __Desired__ = () => {
  throw new Error("fill in the desired state of __name__");
};
