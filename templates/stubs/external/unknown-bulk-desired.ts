export const external: __External__ = {
  /** Returns the resources that a __Primary__ needs, by their ids. Resources that it no longer returns are deleted. */
  desired: () => ({}),
};
