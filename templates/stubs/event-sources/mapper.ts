/** __doc__ */
export const __function__: __Type__ = () => {
  throw new Error("__function__() is not implemented; edit __file__");
};
