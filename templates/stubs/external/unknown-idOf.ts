/** Tells those of one __Primary__ apart. */
export const idOf: __IdOf__ = () => {
  throw new Error("fill in what tells one of __name__ from the others");
};
