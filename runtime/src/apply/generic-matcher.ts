// Matchers with the semantics of JOSDK. For server-side apply, see match.ts.
import { isDeepStrictEqual } from "node:util";
import { type JsonObject, type JsonValue, applyJsonPatch, isJsonObject } from "@gen-operator/schema";
import type { KubernetesObject, ResourceDefinition, Unstored, WriteVerb } from "../base/kubernetes-object.js";
import {
  type Difference,
  isEmptyValue,
  isFilledByServer,
  isSameScalar,
  isSameValue,
  pathText,
  plainOf,
} from "./match.js";
import { type SchemaNode, schemaOf } from "./owned-fields.js";

/** The arguments of a matcher: a write and the live object. */
export interface MatcherArguments<Resource extends KubernetesObject = KubernetesObject> {
  readonly definition: ResourceDefinition;
  readonly verb: WriteVerb;
  /** Whether the write affects only the status. */
  readonly isStatus: boolean;
  /** The object that the write sends; for a patch, the object after the patch. */
  readonly desired: Partial<Unstored<Resource>>;
  readonly live: Resource;
}

/** Returns whether a write would change nothing, so that it can be skipped. */
export type Matcher<Resource extends KubernetesObject = KubernetesObject> = (
  args: MatcherArguments<Resource>,
) => boolean;

/** Options of genericMatcher. */
export interface GenericMatcherOptions {
  /** Whether additional fields of the live object count as differences. Default: false */
  readonly strict?: boolean;
  /** Whether additional labels and annotations count as differences. Default: false */
  readonly metadataStrict?: boolean;
  /** JSON pointers of fields that are not compared. If set, all other fields are compared strictly. */
  readonly ignoredPaths?: readonly string[];
}

const APART: ReadonlySet<string> = new Set(["apiVersion", "kind", "metadata", "status"]);

/**
 * Creates a matcher that ignores additional fields of the live object, such as server-side defaults and fields of other clients. Compares labels,
 * annotations and, unlike JOSDK, desired finalizers and owner references, but not the status.
 */
export function genericMatcher<Resource extends KubernetesObject = KubernetesObject>(
  options: GenericMatcherOptions = {},
): Matcher<Resource> {
  const { strict = false, metadataStrict = false, ignoredPaths = [] } = options;
  if (strict && ignoredPaths.length > 0)
    throw new Error("a generic matcher is strict everywhere but in its ignoredPaths; leave strict out");
  return ({ definition, ...args }) => {
    const desired = withoutPaths(plainOf(args.desired) as JsonObject, ignoredPaths);
    const live = withoutPaths(args.live as unknown as JsonObject, ignoredPaths);
    const options = additiveOptions(definition, strict || ignoredPaths.length > 0);
    if (!includes(contentOf(desired), contentOf(live), options)) return false;
    const metadata = metadataOf(desired, live, additiveOptions(definition, metadataStrict));
    return metadata.every((part) => includes(part.desired, part.live, part));
  };
}

/** Returns the paths at which the generic matcher finds differences. */
export function genericDifferences(args: Pick<MatcherArguments, "definition" | "desired" | "live">): Difference[] {
  const desired = plainOf(args.desired) as JsonObject;
  const live = args.live as unknown as JsonObject;
  const options = additiveOptions(args.definition, false);
  const content = findMissing(contentOf(desired), contentOf(live), { ...options, path: [] });
  const metadata = metadataOf(desired, live, options).flatMap(({ name, ...part }) =>
    findMissing(part.desired, part.live, { ...part, path: ["metadata", name] }),
  );
  return [...content, ...metadata];
}

/** Creates a matcher that compares only the status. With `strict`, additional fields of the live object count as differences. */
export function statusMatcher<Resource extends KubernetesObject = KubernetesObject>({
  strict = false,
}: { strict?: boolean } = {}): Matcher<Resource> {
  return ({ definition, desired, live }) => {
    const options = { ...additiveOptions(definition, strict), schema: schemaOf(definition).property("status") };
    return includes(plainOf(statusOf(desired)), statusOf(live), options);
  };
}

/**
 * Returns whether a PUT would change nothing. If the object has the resourceVersion of the live one, a missing field counts as removed, unlike in
 * JOSDK.
 */
export const updateMatcher: Matcher = (args) => {
  const { desired, live, definition, isStatus } = args;
  const strict = desired.metadata?.resourceVersion === live.metadata.resourceVersion;
  if (isStatus) return statusMatcher({ strict })(args);
  const isStatusMatching = definition.hasStatusSubresource || statusMatcher({ strict })(args);
  return isStatusMatching && genericMatcher({ strict, metadataStrict: strict })(args);
};

/** Returns whether a patch would leave an object or its status unchanged. */
export const patchMatcher: Matcher = ({ desired, live, isStatus, definition }) => {
  if (isStatus) return isSameStatus(statusOf(desired), statusOf(live), definition);
  if (!definition.hasStatusSubresource) return isDeepStrictEqual(desired, live);
  // The API server ignores the status in writes that do not use the status subresource.
  return isDeepStrictEqual({ ...desired, status: undefined }, { ...live, status: undefined });
};

// Without this, a desired status that lacks a default of the schema would be patched in every reconcile.
function isSameStatus(desired: Status, live: Status, definition: ResourceDefinition): boolean {
  if (isDeepStrictEqual(desired, live)) return true;
  return desired !== undefined && isSameValue(desired, live, schemaOf(definition).property("status"));
}

function additiveOptions(definition: ResourceDefinition, isStrict: boolean): AdditiveOptions {
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
    // The API server omits empty metadata fields for all kinds.
    const nothing = isList ? [] : {};
    const values = { desired: wanted![name] ?? nothing, live: known![name] ?? nothing };
    return { name, ...values, schema: schema.property(name), isStrict };
  });
}

function withoutPaths(object: JsonObject, paths: readonly string[]): JsonObject {
  let rest = object;
  for (const path of paths)
    try {
      rest = applyJsonPatch(rest, [{ op: "remove", path }]) as JsonObject;
    } catch {
      // The path does not exist in the object.
    }
  return rest;
}

type Status = JsonValue | undefined;

function statusOf(object: object): Status {
  return (object as { status?: Status }).status;
}

// The comparison of JOSDK's generic matcher. It does not distinguish additional fields of the live object from those that are no longer desired.

/** Detecting moved items takes time and memory proportional to the number of item pairs. Longer lists count as different, which costs one write. */
const MOST_PAIRS = 1_000_000;

type Value = JsonValue | undefined;

/** Options of the comparison. */
interface AdditiveOptions {
  readonly schema: SchemaNode;
  readonly isStrict?: boolean;
  /** Whether empty desired values may be absent in the live object: the API server omits empty fields of built-in kinds. */
  readonly mayLackEmpty?: boolean;
}

/** Returns whether the live value contains the whole desired value. */
export function includes(desired: Value, live: Value, options: AdditiveOptions): boolean {
  if (isAbsent(desired)) return isAbsent(live) || options.isStrict !== true;
  if (isAbsent(live)) return options.mayLackEmpty === true && mayBeLackedEmpty(desired, options.schema);
  if (desired === live) return true;
  if (isJsonObject(desired) && isJsonObject(live))
    return membersOf(desired, live, options).every((name) =>
      includesMember(name, [desired[name], live[name]], { ...options, schema: options.schema.property(name) }),
    );
  if (Array.isArray(desired) && Array.isArray(live)) return includesItems(desired, live, options);
  return isSameScalar(desired, live, options.schema);
}

function includesMember(name: string, [desired, live]: [Value, Value], options: AdditiveOptions): boolean {
  if (includes(desired, live, options)) return true;
  return desired !== undefined && isFilledByServer(name, { desired, live, schema: options.schema });
}

/** Returns the paths, below `path`, at which the live value lacks a desired value. */
export function findMissing(
  desired: Value,
  live: Value,
  { path, ...options }: AdditiveOptions & { readonly path: readonly (string | number)[] },
): Difference[] {
  if (includes(desired, live, options)) return [];
  const below = (name: string | number, schema: SchemaNode) => ({ ...options, schema, path: [...path, name] });
  const { schema } = options;
  let inside: Difference[] = [];
  if (Array.isArray(desired) && Array.isArray(live) && desired.length === live.length)
    inside = desired.flatMap((item, index) => findMissing(item, live[index], below(index, schema.items)));
  else if (isJsonObject(desired) && isJsonObject(live))
    inside = membersOf(desired, live, options).flatMap((name) =>
      includesMember(name, [desired[name], live[name]], { ...options, schema: schema.property(name) })
        ? []
        : findMissing(desired[name], live[name], below(name, schema.property(name))),
    );
  // Lists can differ although their items match one by one.
  return inside.length > 0 ? inside : [{ path: pathText(path), reason: isAbsent(live) ? "is missing" : "differs" }];
}

function membersOf(desired: JsonObject, live: JsonObject, { isStrict }: AdditiveOptions): string[] {
  return Object.keys(isStrict === true ? { ...desired, ...live } : desired);
}

// Follows the longest common subsequence. Items between two of its items are compared in pairs; live items without a counterpart were added.
function includesItems(desired: JsonValue[], live: JsonValue[], options: AdditiveOptions): boolean {
  const inner = { ...options, schema: options.schema.items };
  if (options.isStrict === true)
    return desired.length === live.length && desired.every((item, index) => includes(item, live[index], inner));
  let start = 0;
  while (start < desired.length && isDeepStrictEqual(desired[start], live[start])) start++;
  const most = Math.min(desired.length, live.length) - start;
  let end = 0;
  while (end < most && isDeepStrictEqual(desired.at(-1 - end), live.at(-1 - end))) end++;
  if (start + end === desired.length) return true;
  // The first item of the common suffix is kept, because it terminates the pairs of items before it.
  const [wanted, known] = [desired, live].map((list) => list.slice(start, list.length - Math.max(end - 1, 0)));
  const [a, b] = [wanted!.map(textOf), known!.map(textOf)];
  const common = commonSubsequence(a, b);
  if (common === undefined) return false;
  let [at, liveAt] = [0, 0];
  for (const item of common) {
    while (a[at] !== item) {
      if (b[liveAt] === item || !includes(wanted![at], known![liveAt], inner)) return false;
      at++;
      liveAt++;
    }
    while (b[liveAt] !== item) liveAt++;
    at++;
    liveAt++;
  }
  return wanted!.slice(at).every((item, index) => includes(item, known![liveAt + index], inner));
}

/** Serializes an item so that equal items have equal texts. */
function textOf(item: JsonValue): string {
  return JSON.stringify(item, (_, value: JsonValue) =>
    isJsonObject(value) ? Object.fromEntries(Object.entries(value).sort(([x], [y]) => (x < y ? -1 : 1))) : value,
  );
}

/** Returns the longest common subsequence, or undefined if the lists have too many pairs of common items. */
function commonSubsequence(all: readonly string[], others: readonly string[]): string[] | undefined {
  // An item that only one list contains cannot be part of a common subsequence.
  const [inAll, inOthers] = [new Set(all), new Set(others)];
  const a = all.filter((item) => inOthers.has(item));
  const b = others.filter((item) => inAll.has(item));
  if (a.length * b.length > MOST_PAIRS) return undefined;
  const width = b.length + 1;
  const lengths = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      lengths[i * width + j] =
        a[i] === b[j]
          ? lengths[(i + 1) * width + j + 1]! + 1
          : Math.max(lengths[(i + 1) * width + j]!, lengths[i * width + j + 1]!);
  const common: string[] = [];
  for (let i = 0, j = 0; i < a.length && j < b.length;)
    if (a[i] === b[j]) {
      common.push(a[i]!);
      i++;
      j++;
    } else if (lengths[(i + 1) * width + j]! >= lengths[i * width + j + 1]!) i++;
    else j++;
  return common;
}

function isAbsent(value: Value): value is null | undefined {
  return value === undefined || value === null;
}

// Empty structs are significant: `emptyDir: {}` selects the source of a volume.
function mayBeLackedEmpty(desired: JsonValue, schema: SchemaNode): boolean {
  if (schema.isStruct) return false;
  return isEmpty(desired) || (schema.dropsEmpty && isEmptyValue(desired));
}

function isEmpty(value: JsonValue): boolean {
  return Array.isArray(value) ? value.length === 0 : isJsonObject(value) && Object.keys(value).length === 0;
}
