/** Tells whether one that belongs to a __Primary__ is of "__name__": the event source has those of other dependents, too. */
export const isOwn: __IsOwn__ = () => {
  throw new Error("fill in which are those of __name__");
};
