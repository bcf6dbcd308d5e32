/** Returns all resources of a __Primary__. A resource that is missing counts as deleted. */
export const fetch: __Fetch__ = () => [];
