/** Returns those that belong to a __Primary__; what is missing is gone. */
export const fetch: __Fetch__ = () => [];
