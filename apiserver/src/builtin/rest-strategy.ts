/** How objects of a type are created, updated, and deleted, as far as types differ. */
export interface RestStrategy {
  /** The result of a POST: a stored object, the response to a review, or the binding of a Pod to a Node. */
  creates: "object" | "review" | "binding";
  /**
   * The changes that increment metadata.generation. "outside-metadata" excludes the status of types with a status subresource; "…-as-given" counts an
   * empty list as a change. "first" is never incremented; "spec-from-zero" is absent until the first change.
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
  /** Whether a change of a field that the strategy drops before storing increments the generation too. */
  countsDropped: boolean;
  /** Whether an update without resourceVersion is allowed. */
  allowsUnconditionalUpdate: boolean;
  /** Whether a PUT creates an object that does not exist. */
  createsOnUpdate: boolean;
  /** Which new objects receive their remaining defaults on the first update, even if it changes nothing. */
  settlesOnUpdate: "none" | "all" | "without-labels";
  /** Whether a DELETE returns the object instead of a Status. */
  returnsDeletedObject: boolean;
  /** Whether a DELETE starts graceful deletion. */
  graceful: boolean;
  /** The default propagation policy; undefined for types without dependents, which ignore the policy of a DELETE. */
  defaultPropagation: "Background" | "Orphan" | undefined;
  /** Paths that an update of the main resource ignores, and that it cannot own in managedFields. */
  resetOnMain: string[];
  /** Whether a create may set the status; later only the status subresource changes it. */
  createsWithStatus: boolean;
  /** Paths that an update of the status subresource ignores. */
  resetOnStatus: string[];
  nameRule: "subdomain" | "label" | "path-segment" | "namespace" | "address" | "long-name";
  /**
   * Metadata checks that an update repeats for this kind, after those for all kinds: of the whole metadata as for a new object ("object"), or of the
   * change. If empty, a create with errors in both its metadata and its fields reports only those of its fields.
   */
  checksMetadata: readonly ("object" | "change")[];
  /** Whether finalizers must be standard ones or be qualified with a domain. */
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

/** Returns the strategy of a built-in type: the defaults, overridden by `own`. */
export function restStrategyOf(own: Partial<RestStrategy>, { hasStatus }: { hasStatus: boolean }): RestStrategy {
  return {
    ...ORDINARY,
    resetOnMain: hasStatus ? [".status"] : [],
    resetOnStatus: hasStatus ? [".spec"] : [],
    ...own,
  };
}

/** Returns the strategy of a custom resource. */
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
