/** __doc__ */
export const __condition__: __Condition__ = () => __result__;
