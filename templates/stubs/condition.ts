/** __doc__ */
export const __condition__: __Condition__ = () => {
  throw new Error("fill in __condition__() of __file__");
};
