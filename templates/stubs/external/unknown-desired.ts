/** Returns what a __Primary__ needs. */
export const desired: __Desired__ = () => {
  throw new Error("fill in what __name__ has to be");
};
