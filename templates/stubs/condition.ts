/** __doc__ */
export const __condition__: __Condition__ = () => {
  throw new Error("__condition__() is not implemented; edit __file__");
};
