/** __doc__ */
export const __function__: __Type__ = () => {
  throw new Error("fill in __function__() of __file__");
};
