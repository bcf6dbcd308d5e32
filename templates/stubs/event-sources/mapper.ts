/** __doc__ */
export const __function__: __Type__ = () => [];
