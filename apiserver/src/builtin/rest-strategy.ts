/** How objects of a type are written and deleted, as far as types differ. */
export interface RestStrategy {
  /** What a POST makes: an object that is stored, the answer to a review, or the assignment of a Pod to a Node. */
  creates: "object" | "review" | "binding";
  /**
   * What raises metadata.generation; "outside-metadata" leaves out the status of types with a status subresource, "…-as-given" counts an empty list
   * as a change. "first" is never raised, and "spec-from-zero" is not there before the first change.
   */
  generation:
    | "spec"
    | "spec-as-given"
    | "spec-and-annotations"
    | "spec-from-zero"
    | "outside-metadata"
    | "outside-metadata-as-given"
    | "outside-metadata-and-labels"
    | "first"
    | "never";
  /** Whether a field that is read and forgotten raises the generation too. */
  countsDropped: boolean;
  /** Whether an update without resourceVersion is taken. */
  allowsUnconditionalUpdate: boolean;
  /** Whether a PUT on a missing object creates it. */
  createsOnUpdate: boolean;
  /** Which new objects get the last of their defaults by the first update, even by one that changes nothing. */
  settlesOnUpdate: "none" | "all" | "without-labels";
  /** Whether a DELETE answers the object instead of a Status. */
  returnsDeletedObject: boolean;
  /** Whether a DELETE first waits for the object to end by itself. */
  graceful: boolean;
  /** What becomes of dependents unless the DELETE says it; undefined where there never are any, whatever it says. */
  defaultPropagation: "Background" | "Orphan" | undefined;
  /** Paths that an update on the main endpoint leaves as they are, and nobody owns through it. */
  resetOnMain: string[];
  /** Whether a create takes a status, which only an endpoint of its own changes later. */
  createsWithStatus: boolean;
  /** Paths that a write on /status leaves as they are. */
  resetOnStatus: string[];
  nameRule: "subdomain" | "label" | "path-segment" | "namespace" | "address" | "long-name";
  /**
   * What an update checks of metadata with its kind, besides what is checked of all: the whole of it, as that of a new object, or what changes.
   * Where that is nothing, a new object with another mistake hears of that alone.
   */
  checksMetadata: readonly ("object" | "change")[];
  /** Whether a finalizer has to be a standard one, or to have a path. */
  checksFinalizers: boolean;
}

const ORDINARY: RestStrategy = {
  creates: "object",
  generation: "never",
  countsDropped: false,
  allowsUnconditionalUpdate: true,
  createsOnUpdate: false,
  settlesOnUpdate: "none",
  returnsDeletedObject: false,
  graceful: false,
  defaultPropagation: "Background",
  resetOnMain: [],
  createsWithStatus: false,
  resetOnStatus: [],
  nameRule: "subdomain",
  checksMetadata: ["change"],
  checksFinalizers: true,
};

/** Returns how objects of a built-in type are written and deleted, given how it differs from the ordinary one. */
export function restStrategyOf(own: Partial<RestStrategy>, { hasStatus }: { hasStatus: boolean }): RestStrategy {
  return {
    ...ORDINARY,
    resetOnMain: hasStatus ? [".status"] : [],
    resetOnStatus: hasStatus ? [".spec"] : [],
    ...own,
  };
}

/** Gives the strategy of a custom resource. */
export function customStrategy(options: { hasStatus: boolean }): RestStrategy {
  return {
    ...ORDINARY,
    generation: "outside-metadata",
    allowsUnconditionalUpdate: false,
    checksFinalizers: false,
    resetOnMain: options.hasStatus ? [".status"] : [],
    resetOnStatus: options.hasStatus ? [".metadata", ".spec"] : [],
  };
}
