import type { ResourceDefinition } from "../base/resource-definition.js";

/** Knows whether the API server serves a kind. */
export interface ServedKind {
  /** Undefined while that is not known. */
  readonly isServed: boolean | undefined;
}

/** Returns the name of the CustomResourceDefinition of a kind, which is also that of the event source that watches it. */
export function definitionNameOf({ plural, group }: ResourceDefinition): string {
  return `${plural}.${group}`;
}
