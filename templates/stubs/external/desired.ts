/** Returns the resource that a __Primary__ needs. */
export const desired: __Desired__ = ({ primary }) => ({ id: primary.metadata.name });
