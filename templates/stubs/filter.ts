/** __doc__ */
export const __filter__: __Filter__ = () => true;
