// What a controller itself writes to its primaries. Every write states the uid, so that a primary that is gone is not made anew. (The
// status subresource of custom resources does not look at it when it applies: one that was made anew gets its own status a moment later.)
import { isApiError, TerminalError } from "../base/errors.js";
import {
  keyOf,
  type JsonPatchOperation,
  type KubernetesObject,
  type ObjectMeta,
  describeObject,
} from "../base/kubernetes-object.js";
import { ownedBy, type DecodedResource } from "../decode/decode-resource.js";
import type { WriteTarget } from "../write/send/apply-matcher.js";
import type { Writer } from "../write/apply.js";
import type { Written } from "../write/object-writer.js";
import { planJsonPatch, uidTest } from "../write/send/plan.js";
import type { PostponedWrite, WriteCause } from "../write/send/postponed-write.js";
import type { Sent } from "../write/send/send.js";
import { patchFinalizerIn } from "./finalizer.js";
import { jsonDiff } from "../match/json-patch.js";

/** With what primaries are written. */
export interface PrimaryWrite {
  readonly target: WriteTarget;
  readonly writer: Writer;
  /** False: by JSON patches of what changed. */
  readonly serverSideApply: boolean;
  /** What every primary has; undefined if the controller needs no finalizer. */
  readonly finalizer: string | undefined;
}

/** What a reconciler wants written of a primary. */
export interface WantedPrimary {
  /** The state that the reconciler was called with. */
  readonly primary: KubernetesObject;
  readonly resource?: object | undefined;
  readonly status?: object | undefined;
  readonly cause?: WriteCause | undefined;
}

/** Which parts of a primary were written. */
export interface WrittenPrimary {
  readonly wroteResource: boolean;
  readonly wroteStatus: boolean;
  /** What was left as it is for now. */
  readonly postponed: PostponedWrite;
}

/** What a primary gets before anything is made for it. */
export interface Preparation {
  readonly primary: DecodedResource;
  readonly finalizer: string;
  readonly cause?: WriteCause | undefined;
}

/** Puts the finalizer on a primary; returns its new state, or undefined if it is gone. */
export async function addFinalizer(
  write: PrimaryWrite,
  preparation: Preparation,
): Promise<DecodedResource | undefined> {
  const { primary, finalizer, cause } = preparation;
  const { target, writer } = write;
  // An apply of the finalizer alone would remove whatever else was applied under this name before.
  const hasApplied = ownedBy(primary, writer.sender.fieldManager) !== undefined;
  if (!write.serverSideApply || hasApplied)
    return patchFinalizerIn(primary, { target, sender: writer.sender, finalizer, cause });
  const { name, namespace, uid } = primary.object.metadata;
  const metadata = { name, uid, finalizers: [finalizer], ...(namespace === undefined ? {} : { namespace }) };
  try {
    return (await writer.apply(target, { metadata }, { live: primary, cause, isUrgent: true })).entry;
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
    await (write.serverSideApply ? applyPrimary : patchPrimary)(write, wanted, onWritten);
  } catch (error) {
    // There is nothing left to report on.
    if (!(await isGone(write, wanted.primary, error))) throw error;
  }
}

async function applyPrimary(
  write: PrimaryWrite,
  { primary, resource, status, cause }: WantedPrimary,
  onWritten: (written: Partial<WrittenPrimary>) => void,
): Promise<void> {
  const latest = latestOf(write, primary);
  if (latest === undefined) return;
  const { target, writer } = write;
  let live = latest;
  if (resource !== undefined) {
    // Without a subresource the status is a field like any other, and what is applied has to have all of them.
    const isWhole = status !== undefined && !target.definition.hasStatusSubresource;
    const desired = { ...appliedOf(write, primary, resource), ...(isWhole ? { status } : {}) };
    const written = await writer.apply(target, desired, { live, cause });
    onWritten({
      wroteResource: isChanged(written),
      ...(isWhole ? { wroteStatus: isChanged(written) } : {}),
      ...postponedOf(written),
    });
    if (isWhole) return;
    live = written.entry;
  }
  if (status === undefined) return;
  const written = await writer.applyStatus(target, status, { live, cause });
  onWritten({ wroteStatus: isChanged(written), ...postponedOf(written) });
}

function isChanged({ kind }: Written): boolean {
  return kind === "created" || kind === "updated";
}

function postponedOf(written: Written | Sent): { readonly postponed?: PostponedWrite } {
  return written.kind === "postponed" ? { postponed: written.postponed } : {};
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
  { primary, resource, status, cause }: WantedPrimary,
  onWritten: (written: Partial<WrittenPrimary>) => void,
): Promise<void> {
  const latest = latestOf(write, primary);
  if (latest === undefined) return;
  const { definition } = write.target;
  const original = primary as KubernetesObject & { status?: object };
  if (resource !== undefined) {
    const returned = resource as KubernetesObject;
    if (returned.metadata?.uid !== primary.metadata.uid)
      throw new TerminalError(
        `the resource to write of ${describeObject(definition, primary.metadata)} is not the whole of it, and without server-side apply ` +
          "what is missing would be removed; return { ...primary, … }",
      );
    checkIsPrimary(write, primary, returned.metadata);
    // A resource version that the reconciler changed becomes part of the patch, and is a conflict where it is not the current one.
    const { apiVersion, kind, status: stored } = original;
    const after = { ...returned, apiVersion, kind, ...(stored === undefined ? {} : { status: stored }) };
    const operations = jsonDiff(withoutStatus(original), withoutStatus(after));
    const sent = await sendPatch(write, operations, { primary, isStatus: false, cause });
    onWritten({ wroteResource: sent?.kind === "updated", ...(sent && postponedOf(sent)) });
  }
  if (status === undefined) return;
  const operations = jsonDiff({ status: original.status }, { status });
  const sent = await sendPatch(write, operations, { primary, isStatus: true, cause });
  onWritten({ wroteStatus: sent?.kind === "updated", ...(sent && postponedOf(sent)) });
}

// Undefined if there is nothing to send.
async function sendPatch(
  { target, writer }: PrimaryWrite,
  operations: readonly JsonPatchOperation[],
  { primary, isStatus, cause }: Pick<WantedPrimary, "primary" | "cause"> & { readonly isStatus: boolean },
): Promise<Sent | undefined> {
  const { metadata } = primary;
  if (operations.length === 0) return undefined;
  const change = [uidTest(metadata.uid), ...operations];
  const plan = planJsonPatch(target.definition, primary, { change, isStatus });
  const before = target.cache.get(keyOf(metadata)) ?? { object: primary };
  const differences = () =>
    operations.map(({ path }) => ({ path: path.slice(1).replaceAll("/", "."), reason: "differs" }));
  return writer.sender.send({ target, plan, before, cause, content: operations, differences });
}

function withoutStatus({ status: _status, ...rest }: KubernetesObject & { status?: unknown }): object {
  return rest;
}

function checkIsPrimary(
  { target: { definition } }: PrimaryWrite,
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

function latestOf({ target }: PrimaryWrite, { metadata }: KubernetesObject): DecodedResource | undefined {
  const latest = target.cache.get(keyOf(metadata));
  return latest?.object.metadata.uid === metadata.uid ? latest : undefined;
}

// The API server answers 404 at subresources, 409 to what would create the object, and 422 if there is another one (1.36). It answers
// the same where a version or a value was tested, and where the object is not valid.
async function isGone(
  { target, writer }: PrimaryWrite,
  { metadata }: KubernetesObject,
  error: unknown,
): Promise<boolean> {
  const isCandidate = isApiError(error, 404) || isApiError(error, 409) || isApiError(error, 422);
  if (!isCandidate) return false;
  const { causes } = error;
  if (causes.some(({ field }) => field === "metadata.uid")) return true;
  if (error.code === 422 && causes.length > 0) return false;
  try {
    return (await writer.sender.read(target, metadata))?.object.metadata.uid !== metadata.uid;
  } catch {
    // The first error says more.
    return false;
  }
}
