// What a controller itself writes to its primaries. Every write states the uid, so that a primary that is gone is not made anew. (The
// status subresource of custom resources does not look at it when it applies: one that was made anew gets its own status a moment later.)
import type { PostponedWrite } from "../base/activity.js";
import { isAbsent, TerminalError } from "../base/errors.js";
import {
  describeObject,
  keyOf,
  type KubernetesObject,
  type ObjectMeta,
  type PartialResource,
} from "../base/kubernetes-object.js";
import { messageOf } from "../base/logger.js";
import { crdNameOf } from "../base/resource-definition.js";
import { ownedBy, type DecodedResource } from "../base/decoded-resource.js";
import type { PrimaryOutcome } from "../schedule/reconcile-scope.js";
import { KindOperations, type ResourceWrite } from "../write/kind-operations.js";
import { hasFinalizer, type ResourceOperations } from "../write/resource-operations.js";
import type { WriteTarget } from "../write/send/apply-matcher.js";
import { failedAsGone, latestOf } from "../write/send/on-latest.js";
import { patchBetween } from "../write/send/plan.js";
import { findPostponed, type WriteCause } from "../write/send/postponed-write.js";
import type { Sender } from "../write/send/send.js";

type WithStatus = KubernetesObject & { readonly status?: unknown };

/** With what primaries are written. */
export interface PrimaryWrite {
  readonly target: WriteTarget;
  readonly sender: Sender;
  /** False: by JSON patches of what changed. */
  readonly serverSideApply: boolean;
  /** What primaries have while something needs it; undefined if the controller needs no finalizer. */
  readonly finalizer: string | undefined;
  readonly cause?: WriteCause | undefined;
}

/** What a reconciler wants written of a primary. */
export interface WantedPrimary {
  /** The state that the reconciler was called with. */
  readonly primary: KubernetesObject;
  readonly resource?: object | undefined;
  readonly status?: object | undefined;
}

/** Which part of a primary was written, or left as it is for now. */
type WrittenPart = Partial<Pick<PrimaryOutcome, "wroteResource" | "wroteStatus">> & { postponed?: PostponedWrite };

/** Puts the finalizer on a primary before anything is made for it that has to be cleaned up; returns its new state, or undefined if it is gone or being deleted. */
export async function putFinalizer(
  write: PrimaryWrite,
  resources: ResourceOperations,
  entry: DecodedResource,
): Promise<KubernetesObject | undefined> {
  const { object } = entry;
  // An apply of the finalizer alone would remove whatever else was applied under this name before.
  const isPatched = !write.serverSideApply || ownedBy(entry, write.sender.fieldManager) !== undefined;
  try {
    const written = await (isPatched ? resources.addFinalizer(object) : resources.applyFinalizer(object));
    if (written === undefined || written.object.metadata.deletionTimestamp !== undefined) return undefined;
    if (hasFinalizer(written.object, write.finalizer!)) return written.object;
    throw new Error(
      `${describeObject(write.target.definition, object.metadata)} was stored without the finalizer "${write.finalizer}": an admission ` +
        "policy or webhook takes it off; exempt this kind from it. Nothing that has to be cleaned up is created before",
    );
  } catch (error) {
    if (await failedAsGone(error, object, write)) return undefined;
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
  onWritten: (written: WrittenPart) => void,
): Promise<void> {
  const { target, serverSideApply } = write;
  const { primary, resource, status } = wanted;
  if (target.cache.get(keyOf(primary.metadata))?.object.metadata.uid !== primary.metadata.uid) return;
  // Without a subresource the status is a field like any other, and what is applied has to have all of them.
  const isWhole = serverSideApply && resource !== undefined && !target.definition.hasStatusSubresource;
  const isChanged = async (written: Promise<ResourceWrite>): Promise<boolean> => {
    try {
      return (await written).kind !== "unchanged";
    } catch (error) {
      const postponed = findPostponed(error);
      if (postponed === undefined) throw error;
      onWritten({ postponed });
      return false;
    }
  };
  try {
    if (resource !== undefined) {
      const whole = isWhole && status !== undefined ? { status } : {};
      const wroteResource = await isChanged(writeResource(write, primary, { resource, whole }));
      onWritten({ wroteResource, ...("status" in whole && { wroteStatus: wroteResource }) });
    }
    if (status !== undefined && !isWhole)
      onWritten({ wroteStatus: await isChanged(writeStatus(write, primary, status)) });
  } catch (error) {
    // There is nothing left to report on.
    if (await failedAsGone(error, primary, write)) return;
    if (status === undefined || !isAbsent(error)) throw error;
    const problem = "has no status subresource in the cluster; add subresources: { status: {} } to its definition";
    throw new Error(`${messageOf(error)}: ${crdNameOf(target.definition)} ${problem}`, { cause: error });
  }
}

// The API server ignores a status in a write that is not to the status subresource, if there is one.
function checkStored({ definition }: WriteTarget, status: object = {}, written: ResourceWrite): ResourceWrite {
  const { metadata, status: stored } = written.object as WithStatus;
  const isEmpty = Object.values(status).every((value) => value === undefined || value === null);
  if (definition.hasStatusSubresource || stored !== undefined || isEmpty) return written;
  throw new Error(
    `the API server stored no status of ${describeObject(definition, metadata)}: ${crdNameOf(definition)} has a status ` +
      "subresource in the cluster, or no status in its schema; run gen-operator generate with the CRD of the cluster",
  );
}

async function writeResource(
  write: PrimaryWrite,
  primary: KubernetesObject,
  { resource, whole }: { resource: object; whole: { readonly status?: object } },
): Promise<ResourceWrite> {
  const { target, serverSideApply } = write;
  const { definition } = target;
  const { apiVersion: _1, kind: _2, status: _3, metadata = {}, ...fields } = resource as Partial<WithStatus>;
  const { managedFields: _4, ...stated } = metadata as Partial<ObjectMeta> & { managedFields?: unknown };
  if (!serverSideApply && stated.uid !== primary.metadata.uid)
    throw new TerminalError(
      `the resource to write of ${describeObject(definition, primary.metadata)} is not the whole of it, and without server-side apply ` +
        "what is missing would be removed; return { ...primary, … }",
    );
  checkIsPrimary(write, primary, stated);
  const operations = new KindOperations(target, write);
  if (serverSideApply) {
    const { finalizers: others = [] } = stated;
    // What is applied replaces what was applied before, the finalizer included.
    const isMarked = write.finalizer !== undefined && hasFinalizer(latestOf(target.cache, primary), write.finalizer);
    const finalizers = [...new Set([...others, ...(isMarked ? [write.finalizer!] : [])])];
    const kept = finalizers.length > 0 ? { finalizers } : {};
    const desired = { ...fields, ...whole, metadata: { ...stated, ...identityOf(primary), ...kept } };
    return checkStored(target, whole.status, await operations.apply(desired));
  }
  // A resource version that the reconciler changed becomes part of the patch, and is a conflict where it is not the current one.
  const { status: _5, ...before } = primary as WithStatus;
  const after = { apiVersion: before.apiVersion, kind: before.kind, ...fields, metadata };
  return operations.jsonPatch(primary, patchBetween(primary.metadata.uid, before, after));
}

async function writeStatus(write: PrimaryWrite, primary: WithStatus, status: object): Promise<ResourceWrite> {
  const { target, serverSideApply } = write;
  const operations = new KindOperations(target, write);
  const sent = serverSideApply
    ? operations.applyStatus({ metadata: identityOf(primary), status } as PartialResource<KubernetesObject>)
    : operations.jsonPatchStatus(primary, patchBetween(primary.metadata.uid, { status: primary.status }, { status }));
  return checkStored(target, status, await sent);
}

// A primary of which nothing but its fields is stated is the one that was reconciled.
function identityOf({ metadata }: KubernetesObject): Pick<ObjectMeta, "name" | "namespace" | "uid"> {
  const { name, namespace, uid } = metadata;
  return { name, uid, ...(namespace === undefined ? {} : { namespace }) };
}

function checkIsPrimary({ target }: PrimaryWrite, { metadata }: KubernetesObject, stated: Partial<ObjectMeta>): void {
  const { name = metadata.name, namespace = metadata.namespace } = stated;
  if (name === metadata.name && namespace === metadata.namespace) return;
  throw new TerminalError(
    `the reconciler of ${describeObject(target.definition, metadata)} wants to write another object, ` +
      `"${keyOf({ name, namespace })}"; use context.resources for that`,
  );
}
