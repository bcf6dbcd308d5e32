/** Returns whether the live __names__ matches the desired one. If so, nothing is written. */
export const __matcher__: __Matcher__ = () => {
  throw new Error("__matcher__() of __names__ is not implemented");
};
