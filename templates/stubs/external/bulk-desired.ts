/** Returns what a __Primary__ needs, each by its id; what is not among them any more is deleted. */
export const desired: __Desired__ = ({ primary }) => ({ [primary.metadata.name]: { id: primary.metadata.name } });
