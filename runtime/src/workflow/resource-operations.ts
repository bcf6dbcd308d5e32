/** Writes what no dependent covers. */
export type ResourceOperations = object;
