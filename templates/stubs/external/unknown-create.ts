/** Creates the resource and returns it as the service has it. Called again if it fails. */
export const create: __Create__ = () => {
  throw new Error("fill in how a resource of __name__ is created");
};
