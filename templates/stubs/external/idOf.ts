/** Tells those of one __Primary__ apart. */
export const idOf: __IdOf__ = ({ id }) => id;
