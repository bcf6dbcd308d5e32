/** Knows whether the API server serves a kind: the event source that has the name of its CustomResourceDefinition. */
export interface ServedKind {
  /** Undefined while that is not known. */
  readonly isServed: boolean | undefined;
}
