/** Changes one into what is desired, and returns it as it is then. */
export const update: __Update__ = () => {
  throw new Error("fill in how one of __name__ is changed");
};
