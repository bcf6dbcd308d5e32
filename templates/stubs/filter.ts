/** __doc__ */
export const __filter__: __Filter__ = () => {
  throw new Error("__filter__() is not implemented; edit __file__");
};
