/** __doc__ */
export const __filter__: __Filter__ = () => {
  throw new Error("fill in __filter__() of __file__");
};
