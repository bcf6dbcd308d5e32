import type { ControllerSources } from "./controller-sources.js";

/** The event sources of one controller: those of its dependents, and those of the user. */
export type SecondarySources = Pick<ControllerSources, "deregister" | "find" | "get" | "load" | "names" | "register">;
