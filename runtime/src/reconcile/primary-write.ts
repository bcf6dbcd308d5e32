// What a controller itself writes to its primaries. Every write states the uid, so that a primary that is gone is not made anew. (The
// status subresource of custom resources does not look at it when it applies: one that was made anew gets its own status a moment later.)
import { isApiError, TerminalError } from "../base/errors.js";
import { keyOf, type KubernetesObject, type ObjectMeta, describeObject } from "../base/kubernetes-object.js";
import { ownedBy, type DecodedResource } from "../decode/decode-resource.js";
import type { Writer } from "../workflow/dependents/kubernetes-driver.js";
import { patchFinalizerIn } from "./finalizer.js";
import { writePatch, type JsonWrite } from "./json-write.js";
import { jsonDiff } from "../match/json-patch.js";

/** With what primaries are written. */
export interface PrimaryWrite extends JsonWrite {
  readonly writer: Writer;
  /** False: by JSON patches of what changed. */
  readonly usesServerSideApply: boolean;
  /** What every primary has; undefined if the controller needs no finalizer. */
  readonly finalizer: string | undefined;
}

/** What a reconciler wants written of a primary. */
export interface WantedPrimary {
  /** The state that the reconciler was called with. */
  readonly primary: KubernetesObject;
  readonly resource?: object | undefined;
  readonly status?: object | undefined;
}

/** Which parts of a primary were written. */
export interface WrittenPrimary {
  readonly wroteResource: boolean;
  readonly wroteStatus: boolean;
}

/** What a primary gets before anything is made for it. */
export interface Preparation {
  readonly primary: DecodedResource;
  readonly finalizer: string;
}

/** Puts the finalizer on a primary; returns its new state, or undefined if it is gone. */
export async function addFinalizer(
  write: PrimaryWrite,
  preparation: Preparation,
): Promise<DecodedResource | undefined> {
  const { primary, finalizer } = preparation;
  // An apply of the finalizer alone would remove whatever else was applied under this name before.
  const hasApplied = ownedBy(primary, write.fieldManager) !== undefined;
  if (!write.usesServerSideApply || hasApplied) return patchFinalizerIn(primary, { ...write, finalizer });
  const { name, namespace, uid } = primary.object.metadata;
  const metadata = { name, uid, finalizers: [finalizer], ...(namespace === undefined ? {} : { namespace }) };
  try {
    return (await write.writer.apply(write, { metadata }, { live: primary })).entry;
  } catch (error) {
    if (await isGone(write, primary.object, error)) return undefined;
    throw error;
  }
}

/**
 * Writes what a reconciler wants of a primary and it does not have yet: the resource, then the status. `onWritten` is called after each
 * of them. Nothing is written if the primary is gone.
 */
export async function writePrimary(
  write: PrimaryWrite,
  wanted: WantedPrimary,
  onWritten: (written: Partial<WrittenPrimary>) => void,
): Promise<void> {
  try {
    await (write.usesServerSideApply ? applyPrimary : patchPrimary)(write, wanted, onWritten);
  } catch (error) {
    // There is nothing left to report on.
    if (!(await isGone(write, wanted.primary, error))) throw error;
  }
}

async function applyPrimary(
  write: PrimaryWrite,
  { primary, resource, status }: WantedPrimary,
  onWritten: (written: Partial<WrittenPrimary>) => void,
): Promise<void> {
  const latest = latestOf(write, primary);
  if (latest === undefined) return;
  let live = latest;
  if (resource !== undefined) {
    // Without a subresource the status is a field like any other, and what is applied has to have all of them.
    const isWhole = status !== undefined && !write.definition.hasStatusSubresource;
    const desired = { ...appliedOf(write, primary, resource), ...(isWhole ? { status } : {}) };
    const { kind, entry } = await write.writer.apply(write, desired, { live });
    const isChanged = kind !== "unchanged";
    onWritten({ wroteResource: isChanged, ...(isWhole ? { wroteStatus: isChanged } : {}) });
    if (isWhole) return;
    live = entry;
  }
  if (status === undefined) return;
  const { kind } = await write.writer.applyStatus(write, status, live);
  onWritten({ wroteStatus: kind !== "unchanged" });
}

// A primary of which nothing but its fields is stated is the one that was reconciled.
function appliedOf(write: PrimaryWrite, primary: KubernetesObject, resource: object): { metadata: ObjectMeta } {
  const {
    apiVersion: _1,
    kind: _2,
    status: _3,
    metadata = {},
    ...fields
  } = resource as Partial<KubernetesObject> & {
    status?: unknown;
  };
  const { name, namespace, uid } = primary.metadata;
  const stated = metadata as Partial<ObjectMeta> & { managedFields?: unknown };
  checkIsPrimary(write, primary, stated);
  const { managedFields: _4, ...rest } = stated;
  const finalizers = [...(rest.finalizers ?? [])];
  // What is applied replaces what was applied before, the finalizer included.
  if (write.finalizer !== undefined && !finalizers.includes(write.finalizer)) finalizers.push(write.finalizer);
  const identity = { name, uid, ...(namespace === undefined ? {} : { namespace }) };
  return { ...fields, metadata: { ...rest, ...identity, ...(finalizers.length > 0 ? { finalizers } : {}) } };
}

async function patchPrimary(
  write: PrimaryWrite,
  { primary, resource, status }: WantedPrimary,
  onWritten: (written: Partial<WrittenPrimary>) => void,
): Promise<void> {
  if (latestOf(write, primary) === undefined) return;
  const original = primary as KubernetesObject & { status?: object };
  let before = original;
  if (resource !== undefined) {
    const returned = resource as KubernetesObject;
    if (returned.metadata?.uid !== primary.metadata.uid)
      throw new TerminalError(
        `the resource to write of ${describeObject(write.definition, primary.metadata)} is not the whole of it, and without server-side apply ` +
          "what is missing would be removed; return { ...primary, … }",
      );
    checkIsPrimary(write, primary, returned.metadata);
    // A resource version that the reconciler changed becomes part of the patch, and is a conflict where it is not the current one.
    const { apiVersion, kind, status: stored } = original;
    const after = { ...returned, apiVersion, kind, ...(stored === undefined ? {} : { status: stored }) };
    const operations = jsonDiff(withoutStatus(original), withoutStatus(after));
    if (operations.length > 0) before = (await writePatch(write, operations, { before, after })).object;
    onWritten({ wroteResource: operations.length > 0 });
  }
  if (status === undefined) return;
  const operations = jsonDiff({ status: original.status }, { status });
  const subresource = write.definition.hasStatusSubresource ? ({ subresource: "status" } as const) : {};
  if (operations.length > 0)
    await writePatch(write, operations, { before, after: { ...before, status } as never, ...subresource });
  onWritten({ wroteStatus: operations.length > 0 });
}

function withoutStatus({ status: _status, ...rest }: KubernetesObject & { status?: unknown }): object {
  return rest;
}

function checkIsPrimary(
  { definition }: PrimaryWrite,
  primary: KubernetesObject,
  { name, namespace }: Partial<ObjectMeta>,
): void {
  const isOther =
    (name !== undefined && name !== primary.metadata.name) ||
    (namespace !== undefined && namespace !== primary.metadata.namespace);
  if (isOther)
    throw new TerminalError(
      `the reconciler of ${describeObject(definition, primary.metadata)} wants to write another object, ` +
        `"${keyOf({ ...primary.metadata, ...(name && { name }), ...(namespace && { namespace }) })}"; use context.resources for that`,
    );
}

function latestOf({ cache }: PrimaryWrite, { metadata }: KubernetesObject): DecodedResource | undefined {
  const latest = cache.get(keyOf(metadata));
  return latest?.object.metadata.uid === metadata.uid ? latest : undefined;
}

// The API server answers 404 at subresources, 409 to what would create the object, and 422 if there is another one (1.36). It answers
// the same where a version or a value was tested, and where the object is not valid.
async function isGone(
  { client, definition }: PrimaryWrite,
  { metadata }: KubernetesObject,
  error: unknown,
): Promise<boolean> {
  const isCandidate = isApiError(error, 404) || isApiError(error, 409) || isApiError(error, 422);
  if (!isCandidate) return false;
  const { causes } = error;
  if (causes.some(({ field }) => field === "metadata.uid")) return true;
  if (error.code === 422 && causes.length > 0) return false;
  try {
    return (await client.get({ definition }, metadata))?.metadata.uid !== metadata.uid;
  } catch {
    // The first error says more.
    return false;
  }
}
