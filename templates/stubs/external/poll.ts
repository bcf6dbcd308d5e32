/** Returns all of them, by the keys, namespace/name, of the __Primary__ objects that they belong to; what is missing is gone. */
export const fetch: __Fetch__ = () => new Map();
