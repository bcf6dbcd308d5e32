import type { SecondarySources } from "#runtime/sources/controller-sources.js";

/** The event sources of a controller without any. */
export const noSecondarySources: SecondarySources = Object.freeze({
  find: () => [],
  get: () => undefined,
  register: () => Promise.reject(new Error("this controller has no event sources")),
  deregister: () => Promise.resolve(),
  names: () => [],
  activate: () => Promise.resolve(),
  load: () => Promise.resolve(),
});
