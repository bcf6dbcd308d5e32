// JOSDK's matchers. Server-side apply has its own matcher, in match.ts.
import { isDeepStrictEqual } from "node:util";
import { applyJsonPatch, type JsonObject } from "@gen-operator/schema";
import type { JsonValue, KubernetesObject, WriteVerb } from "../base/kubernetes-object.js";
import type { ResourceDefinition, Unstored } from "../base/resource-definition.js";
import { findMissing, includes, type AdditiveOptions } from "./additive-match.js";
import type { Difference } from "./match.js";
import { isSameValue, plainOf } from "./json-value.js";
import { schemaOf } from "./schema-node.js";

/** What a write is about to do to an object. */
export interface MatcherArguments<Resource extends KubernetesObject = KubernetesObject> {
  readonly definition: ResourceDefinition;
  readonly verb: WriteVerb;
  /** Whether the write goes to the status alone. */
  readonly isStatus: boolean;
  /** The object that the write states; of a patch the object after the patch. */
  readonly desired: Partial<Unstored<Resource>>;
  readonly live: Resource;
}

/** Tells whether a write would change nothing, and can be left out. */
export type Matcher<Resource extends KubernetesObject = KubernetesObject> = (
  args: MatcherArguments<Resource>,
) => boolean;

/** How strictly the generic matcher compares. */
export interface GenericMatcherOptions {
  /** Counts additions in live as differences. Default: false. */
  readonly strict?: boolean;
  /** Counts additional labels and annotations as differences. Default: false. */
  readonly metadataStrict?: boolean;
  /** JSON pointers to the fields that may differ. If there are any, all other fields are compared strictly. */
  readonly ignoredPaths?: readonly string[];
}

const APART: ReadonlySet<string> = new Set(["apiVersion", "kind", "metadata", "status"]);

/**
 * Creates a matcher that accepts additions in live: defaults of the server, and fields of others. It compares labels, annotations, and desired
 * finalizers and owner references (which JOSDK's ignores, so that it never writes a change of them alone), but not the status.
 */
export function genericMatcher<Resource extends KubernetesObject = KubernetesObject>(
  options: GenericMatcherOptions = {},
): Matcher<Resource> {
  const { strict = false, metadataStrict = false, ignoredPaths = [] } = options;
  if (strict && ignoredPaths.length > 0)
    throw new Error("a generic matcher is strict everywhere but in its ignoredPaths; leave strict out");
  return ({ definition, ...args }) => {
    const desired = without(plainOf(args.desired) as JsonObject, ignoredPaths);
    const live = without(args.live as unknown as JsonObject, ignoredPaths);
    const options = additive(definition, strict || ignoredPaths.length > 0);
    if (!includes(contentOf(desired), contentOf(live), options)) return false;
    const metadata = metadataOf(desired, live, additive(definition, metadataStrict));
    return metadata.every((part) => includes(part.desired, part.live, part));
  };
}

/** Finds the paths where the generic matcher sees a difference. */
export function genericDifferences(args: Pick<MatcherArguments, "definition" | "desired" | "live">): Difference[] {
  const desired = plainOf(args.desired) as JsonObject;
  const live = args.live as unknown as JsonObject;
  const options = additive(args.definition, false);
  const content = findMissing(contentOf(desired), contentOf(live), { ...options, path: [] });
  const metadata = metadataOf(desired, live, options).flatMap(({ name, ...part }) =>
    findMissing(part.desired, part.live, { ...part, path: ["metadata", name] }),
  );
  return [...content, ...metadata];
}

/** Creates a matcher of the status alone. With `strict`, additions in live are differences. */
export function statusMatcher<Resource extends KubernetesObject = KubernetesObject>({
  strict = false,
}: { strict?: boolean } = {}): Matcher<Resource> {
  return ({ definition, desired, live }) => {
    const options = { ...additive(definition, strict), schema: schemaOf(definition).property("status") };
    return includes(plainOf(statusOf(desired)), statusOf(live), options);
  };
}

/** Tells whether a PUT would change nothing; in an object with the version of the live one a missing field was removed, unlike in JOSDK. */
export const updateMatcher: Matcher = (args) => {
  const { desired, live, definition, isStatus } = args;
  const strict = desired.metadata?.resourceVersion === live.metadata.resourceVersion;
  if (isStatus) return statusMatcher({ strict })(args);
  const isStatusMatching = definition.hasStatusSubresource || statusMatcher({ strict })(args);
  return isStatusMatching && genericMatcher({ strict, metadataStrict: strict })(args);
};

/** Tells whether a patch leaves an object, or its status, as it is. */
export const patchMatcher: Matcher = ({ desired, live, isStatus, definition }) => {
  if (isStatus) return isSameStatus(statusOf(desired), statusOf(live), definition);
  if (!definition.hasStatusSubresource) return isDeepStrictEqual(desired, live);
  // The API server ignores the status of other writes.
  return isDeepStrictEqual({ ...desired, status: undefined }, { ...live, status: undefined });
};

// A status that is stated without a default of the schema would be patched in every reconcile.
function isSameStatus(desired: Status, live: Status, definition: ResourceDefinition): boolean {
  if (isDeepStrictEqual(desired, live)) return true;
  return desired !== undefined && isSameValue(desired, live, schemaOf(definition).property("status"));
}

function additive(definition: ResourceDefinition, isStrict: boolean): AdditiveOptions {
  return { schema: schemaOf(definition), isStrict, mayLackEmpty: !definition.isCustom };
}

function contentOf(object: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([name]) => !APART.has(name)));
}

function metadataOf(desired: JsonObject, live: JsonObject, options: AdditiveOptions) {
  const [wanted, known] = [desired, live].map(({ metadata }) => (metadata ?? {}) as JsonObject);
  const schema = options.schema.property("metadata");
  return ["labels", "annotations", "finalizers", "ownerReferences"].map((name) => {
    const isList = name === "finalizers" || name === "ownerReferences";
    const isStrict = options.isStrict === true || (isList && wanted![name] !== undefined);
    // The API server omits empty metadata fields of every kind.
    const nothing = isList ? [] : {};
    const values = { desired: wanted![name] ?? nothing, live: known![name] ?? nothing };
    return { name, ...values, schema: schema.property(name), isStrict };
  });
}

function without(object: JsonObject, paths: readonly string[]): JsonObject {
  let rest = object;
  for (const path of paths)
    try {
      rest = applyJsonPatch(rest, [{ op: "remove", path }]) as JsonObject;
    } catch {
      // It is not there.
    }
  return rest;
}

type Status = JsonValue | undefined;

function statusOf(object: object): Status {
  return (object as { status?: Status }).status;
}
