/** Returns the resources that a __Primary__ needs, by their ids. Resources that it no longer returns are deleted. */
export const desired: __Desired__ = ({ primary }) => ({ [primary.metadata.name]: { id: primary.metadata.name } });
