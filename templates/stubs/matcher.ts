/** Tells whether the live __names__ is as desired. If so, nothing is written. */
export const __matcher__: __Matcher__ = () => {
  throw new Error("fill in when __names__ is as desired");
};
