/** Creates one, and returns it as it is then; it is called again if it fails. */
export const create: __Create__ = () => {
  throw new Error("fill in how one of __name__ is created");
};
