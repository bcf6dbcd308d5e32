// Writes of a controller to its primaries: the finalizer, the resource, the status, and the conditions in it. Every write contains the UID, so that a
// deleted primary is not recreated. (The API server ignores the UID in an apply to the status subresource of a custom resource: a recreated primary
// gets its own status shortly afterwards.) OwnFields detects that another client overwrites what the controller wrote.
import {
  KindOperations,
  type ResourceOperations,
  type ResourceWrite,
  hasFinalizer,
} from "../apply/resource-operations.js";
import { failedAsGone, latestOf, retryOnConflict } from "../apply/retry-on-conflict.js";
import type { Sender } from "../apply/sender.js";
import {
  type OwnWrite,
  type PrimaryCause,
  type WriteCause,
  type WritePart,
  type WriteTarget,
  applyOf,
  findPostponed,
  patchBetween,
} from "../apply/write.js";
import type { PostponedWrite } from "../base/activity.js";
import { TerminalError, isAbsent, isApiError } from "../base/errors.js";
import {
  type DecodedResource,
  type KubernetesObject,
  type ObjectKey,
  type ObjectMeta,
  type PartialResource,
  type StatusCondition,
  type WithConditions,
  crdNameOf,
  describeObject,
  keyOf,
  ownedBy,
  uidOf,
} from "../base/kubernetes-object.js";
import { messageOf } from "../base/logger.js";
import type { ReconcileScope } from "../queue/controller.js";
import { type ConditionFacts, type ConditionTypes, conditionsAfter } from "./status-conditions.js";

type WithStatus = KubernetesObject & { readonly status?: unknown };

/** How primaries are written. */
export interface PrimaryWrite {
  readonly target: WriteTarget;
  readonly sender: Sender;
  /** If false, writes are JSON patches of the changes. */
  readonly serverSideApply: boolean;
  /** Undefined if the controller needs no finalizer. */
  readonly finalizer: string | undefined;
  /** Condition types that an apply of the status has to repeat. */
  readonly conditionTypes?: ReadonlySet<string> | undefined;
  readonly cause?: WriteCause | undefined;
}

/** Returns the cause of all writes of one reconcile. */
export function causeOf(
  { signal, logger, entry: { object: primary }, reasons }: ReconcileScope,
  ownFields: OwnFields,
): PrimaryCause {
  const followsEvent = reasons.some((reason) => reason.kind === "secondary" && reason.isTimer !== true);
  return { signal, logger, primary, onWritten: ownFields.note.bind(ownFields, primary), followsEvent };
}

/** The writes requested by a reconciler. */
export interface WantedPrimary {
  /** The state that the reconciler was called with. */
  readonly primary: KubernetesObject;
  readonly resource?: object | undefined;
  readonly status?: object | undefined;
  /** The resourceVersion that the status is based on, for optimistic locking. */
  readonly version?: string | undefined;
}

/** The part of a primary that was written, or whose write was postponed. */
interface WrittenPart {
  readonly wroteResource?: boolean;
  readonly wroteStatus?: boolean;
  readonly postponed?: PostponedWrite;
}

/** Adds the finalizer to a primary. Returns the new state; undefined if the primary was or is being deleted. */
export async function putFinalizer(
  write: PrimaryWrite,
  resources: ResourceOperations,
  entry: DecodedResource,
): Promise<KubernetesObject | undefined> {
  const { object } = entry;
  // An apply of only the finalizer would remove the other fields that this field manager has applied.
  const isPatched = !write.serverSideApply || ownedBy(entry, write.sender.fieldManager) !== undefined;
  try {
    const written = await (isPatched ? resources.addFinalizer(object) : resources.applyFinalizer(object));
    if (written === undefined || written.object.metadata.deletionTimestamp !== undefined) return undefined;
    if (hasFinalizer(written.object, write.finalizer!)) return written.object;
    throw new Error(
      `${describeObject(write.target.definition, object.metadata)} was stored without the finalizer "${write.finalizer}": an admission ` +
        "policy or webhook removed it. Exempt this kind; nothing that needs cleanup is created until the finalizer is stored",
    );
  } catch (error) {
    if (await failedAsGone(error, object, write)) return undefined;
    throw error;
  }
}

/**
 * Writes the resource and then the status, unless they are up to date. Calls `onWritten` after each of them. Writes nothing if the primary was
 * deleted or replaced.
 */
export async function writePrimary(
  write: PrimaryWrite,
  wanted: WantedPrimary,
  onWritten: (written: WrittenPart) => void,
): Promise<void> {
  const { target, serverSideApply } = write;
  const { primary, resource, status, version } = wanted;
  if (target.cache.get(keyOf(primary.metadata))?.object.metadata.uid !== primary.metadata.uid) return;
  // Without a status subresource, the status is an ordinary field, and an apply has to contain all fields.
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
      onWritten({ wroteStatus: await isChanged(writeStatus(write, primary, { status, version })) });
  } catch (error) {
    if (await failedAsGone(error, primary, write)) return;
    if (status === undefined || !isAbsent(error)) throw error;
    const problem = "has no status subresource in the cluster; add subresources: { status: {} } to its definition";
    throw new Error(`${messageOf(error)}: ${crdNameOf(target.definition)} ${problem}`, { cause: error });
  }
}

// If the kind has a status subresource, the API server ignores the status in other writes.
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
      `the resource to write of ${describeObject(definition, primary.metadata)} is incomplete, and without server-side apply ` +
        "missing fields would be removed; return { ...primary, … }",
    );
  checkIsPrimary(write, primary, stated);
  const operations = new KindOperations(target, write);
  if (serverSideApply) {
    const { finalizers: others = [] } = stated;
    // An apply without the finalizer would remove it.
    const isMarked = write.finalizer !== undefined && hasFinalizer(latestOf(target.cache, primary), write.finalizer);
    const finalizers = [...new Set([...others, ...(isMarked ? [write.finalizer!] : [])])];
    const kept = finalizers.length > 0 ? { finalizers } : {};
    const desired = { ...fields, ...whole, metadata: { ...stated, ...identityOf(primary), ...kept } };
    return checkStored(target, whole.status, await operations.apply(desired));
  }
  // A resourceVersion returned by the reconciler becomes part of the patch, and causes a conflict if it is outdated.
  const { status: _5, ...before } = primary as WithStatus;
  const after = { apiVersion: before.apiVersion, kind: before.kind, ...fields, metadata };
  return operations.jsonPatch(primary, patchBetween(primary.metadata.uid, before, after));
}

async function writeStatus(
  write: PrimaryWrite,
  primary: WithStatus,
  { status, version }: { readonly status: object; readonly version: string | undefined },
): Promise<ResourceWrite> {
  const { target, serverSideApply } = write;
  const operations = new KindOperations(target, write);
  const locking = version === undefined ? {} : ({ mode: "filterWithOptimisticLocking" } as const);
  const metadata = { ...identityOf(primary), ...(version !== undefined && { resourceVersion: version }) };
  const sent = serverSideApply
    ? operations.applyStatus({ metadata, status } as PartialResource<KubernetesObject>, locking)
    : operations.jsonPatchStatus(primary, patchBetween(primary.metadata.uid, { status: primary.status }, { status }));
  return checkStored(target, status, await sent);
}

function identityOf({ metadata }: KubernetesObject): Pick<ObjectMeta, "name" | "namespace" | "uid"> {
  const { name, namespace, uid } = metadata;
  return { name, uid, ...(namespace === undefined ? {} : { namespace }) };
}

function checkIsPrimary({ target }: PrimaryWrite, { metadata }: KubernetesObject, stated: Partial<ObjectMeta>): void {
  const { name = metadata.name, namespace = metadata.namespace } = stated;
  if (name === metadata.name && namespace === metadata.namespace) return;
  throw new TerminalError(
    `the reconciler of ${describeObject(target.definition, metadata)} returned another object to write, ` +
      `"${keyOf({ name, namespace })}"; use context.resources for that`,
  );
}

// The status of a primary has two writers: the reconciler, and the runtime with its conditions. If both change it, a single request contains both
// changes.

type Status = NonNullable<WithConditions["status"]>;

/** The status returned by a reconciler, completed with the conditions of the runtime. */
interface StatusStatement {
  /** With the current conditions. */
  readonly alone: object;
  /**
   * With the conditions after the reconcile. Absent if the status is up to date, or may be in a write loop: then the conditions are written, and
   * postponed, separately.
   */
  readonly both?: object;
}

/** What the conditions after a reconcile depend on. */
interface StatusOutcome {
  /** The last status of the reconciler that was written or was up to date; undefined if there is none. */
  readonly stated: object | undefined;
  readonly facts: ConditionFacts;
}

/** Field managers of the conditions. */
export interface ConditionSenders {
  /** Applies the conditions if the reconciler returned no status; without server-side apply, it always writes them. */
  readonly own: Sender;
  /** Field managers of former controller names that applied a status. */
  readonly formerStatuses: readonly Sender[];
  /** Field managers of former controller names that applied conditions. */
  readonly formerConditions: readonly Sender[];
}

/** Writes the conditions of the runtime, together with the reconciler's status or separately. */
export class StatusWriter {
  readonly #senders: ConditionSenders;
  readonly #types: ConditionTypes;

  constructor(senders: ConditionSenders, types: ConditionTypes) {
    this.#senders = senders;
    this.#types = types;
  }

  /** Completes a status of the reconciler. `primary` is the state that the reconciler was called with. */
  statementOf(
    write: PrimaryWrite,
    { status, primary }: { readonly status: Status; readonly primary: WithConditions },
    facts: ConditionFacts,
  ): StatusStatement {
    const { target, serverSideApply } = write;
    const before = (serverSideApply ? latestOf(target.cache, primary) : primary).status?.conditions ?? [];
    const own = before.filter(({ type }) => this.#types.all.has(type));
    const alone = serverSideApply ? status : this.#whole(status, own);
    const isThere = serverSideApply
      ? new KindOperations(target, write).isStatusApplied({ metadata: identityOf(primary), status } as never)
      : patchBetween(primary.metadata.uid, { status: primary.status }, { status: alone }).length === 1;
    // Whether a write loop continues is only known after the write.
    if (isThere || own.some(({ reason }) => reason === "WriteLoop")) return { alone };
    return { alone, both: this.#whole(status, conditionsAfter(primary, before, facts) ?? own) };
  }

  /** Returns the write of a status that contains all conditions. */
  ofAll(write: PrimaryWrite, status: object): PrimaryWrite {
    // Ignore transition times in write loop detection: a status that another client reverts has a new one in each write.
    const { conditions = [], ...rest } = status as Status;
    const statement = { ...rest, conditions: conditions.map(({ lastTransitionTime: _, ...others }) => others) };
    return { ...write, conditionTypes: undefined, cause: { ...write.cause, statement } };
  }

  /** Writes changed conditions and removes obsolete ones. Returns whether anything was written. `primary` is the state that was reconciled. */
  async keep(write: PrimaryWrite, primary: WithConditions, outcome: StatusOutcome): Promise<boolean> {
    const { target, sender, serverSideApply } = write;
    const latest = target.cache.get(keyOf(primary.metadata));
    if (latest === undefined || latest.object.metadata.uid !== primary.metadata.uid) return false;
    const change = (state: DecodedResource) => this.#keepIn(state, write, { primary, ...outcome });
    const isConflict = (error: unknown) => isApiError(error, 409);
    const isWritten = await retryOnConflict(latest, change, { sender, target, maxAttempts: 3, isConflict });
    if (serverSideApply) await this.#release(write, primary);
    return isWritten ?? false;
  }

  async #keepIn(
    state: DecodedResource,
    write: PrimaryWrite,
    { primary, stated, facts }: StatusOutcome & { readonly primary: WithConditions },
  ): Promise<boolean> {
    const { metadata, status } = state.object as WithConditions;
    // Another client may have replaced the whole status without the conditions; `primary` still has their transition times.
    const conditions = conditionsAfter(primary, status?.conditions ?? primary.status?.conditions ?? [], facts);
    if (conditions === undefined) return false;
    const { own, formerStatuses } = this.#senders;
    const asOwn = { ...write, sender: own };
    if (!write.serverSideApply) return this.#write(asOwn, state, { status: this.#whole(status ?? {}, conditions) });
    const { target } = write;
    const applied = [write.sender, ...formerStatuses].flatMap(
      ({ matcher }) => matcher.extract(target, "status", state)?.["status"] ?? [],
    )[0] as Status | undefined;
    const kept = stated ?? this.#whole(applied ?? {}, []);
    const isTogether = this.#hasOwn(applied);
    const isAlone = !isTogether && Object.keys(kept).length === 0;
    // Conditions that an earlier version of the runtime applied as another field manager stay until they change.
    const desired = { metadata: identityOf(state.object), status: { conditions } };
    if (isAlone || (!isTogether && own.matcher.matches(applyOf(target, desired, "status"), state, "status")))
      return this.#write(asOwn, state, { status: { conditions } });
    // A repeated status must not overwrite a newer one.
    const version = stated === undefined ? metadata.resourceVersion : undefined;
    return this.#write(write, state, { status: this.#whole(kept, conditions), version });
  }

  async #write(
    write: PrimaryWrite,
    { object: primary }: DecodedResource,
    wanted: { readonly status: object; readonly version?: string | undefined },
  ): Promise<boolean> {
    const { cause, ...rest } = this.ofAll(write, wanted.status);
    let isWritten = false;
    const apart = { ...rest, cause: { ...cause, loop: "conditions" } };
    await writePrimary(apart, { primary, ...wanted }, (parts) => (isWritten = parts.wroteStatus === true));
    return isWritten;
  }

  // The current fields have been applied, so these field managers solely own obsolete fields.
  async #release({ target, sender, cause }: PrimaryWrite, { metadata }: KubernetesObject): Promise<void> {
    const { name, namespace } = metadata;
    const { own, formerStatuses, formerConditions } = this.#senders;
    for (const each of [...formerStatuses, ...formerConditions, own]) {
      const entry = target.cache.get(keyOf(metadata));
      if (entry === undefined || each.matcher.ownedFields(entry, "status") === undefined) continue;
      const applied = sender.matcher.extract(target, "status", entry)?.["status"] as Status | undefined;
      // Release fields only after the current field manager has applied them.
      const isOver = each === own ? this.#hasOwn(applied) : formerConditions.includes(each) || applied !== undefined;
      if (!isOver) continue;
      const operations = new KindOperations(target, { sender: each, cause });
      // An apply with an empty status would own `status`.
      await operations.applyStatus({ metadata: { name, namespace } } as never, { mode: "forceFilter" });
    }
  }

  #hasOwn(status: Status | undefined): boolean {
    const { conditions = [] } = status ?? {};
    return conditions.some(({ type }) => this.#types.all.has(type));
  }

  // The apply or the patch removes conditions that are missing from the result.
  #whole(status: Status, conditions: readonly StatusCondition[]): Status {
    const { conditions: before = [] } = status;
    if (before.length + conditions.length === 0) return status;
    const kept = before.flatMap((each) =>
      this.#types.all.has(each.type) ? conditions.filter(({ type }) => type === each.type) : [each],
    );
    const added = conditions.filter(({ type }) => !before.some((each) => each.type === type));
    return { ...status, conditions: [...kept, ...added] };
  }
}

/** Digests of the field paths and the values of a part; kept for each primary. */
interface Reading {
  readonly fields: string;
  readonly values: string;
}

/** A part of a primary that one field manager writes. */
interface OwnPart {
  readonly fieldManager: string;
  readonly part: WritePart;
  /** Returns undefined if the field manager owns nothing. */
  read(entry: DecodedResource): Reading | undefined;
}

interface KnownFields {
  readonly uid: string | undefined;
  /** Digests of each part after the last own write, or at the start of the last reconcile; undefined if the part is empty or unknown. */
  readonly readings: (Reading | undefined)[];
  /** Whether a reconcile is in progress. */
  isRunning: boolean;
}

interface Writers {
  readonly sender: Sender;
  readonly conditionsSender: Sender | undefined;
  readonly serverSideApply: boolean;
  readonly conditionTypes: ConditionTypes;
}

/** Detects that other clients overwrite what the controller wrote to its primaries. */
export class OwnFields {
  readonly #parts: readonly OwnPart[];
  readonly #serverSideApply: boolean;
  readonly #known = new Map<ObjectKey, KnownFields>();

  constructor(target: WriteTarget, { sender, conditionsSender, serverSideApply, conditionTypes }: Writers) {
    this.#serverSideApply = serverSideApply;
    const applied = (by: Sender, part: WritePart) => appliedPart(by, target, part);
    const conditionsOf = (by: Sender) =>
      // Without server-side apply, conditions can only be attributed by their types.
      serverSideApply ? applied(by, "status") : conditionPart(by, conditionTypes.all);
    this.#parts = [
      ...(serverSideApply ? [applied(sender, "status"), applied(sender, "object")] : []),
      ...(conditionsSender === undefined ? [] : [conditionsOf(conditionsSender)]),
    ];
  }

  /** Records the state at the start of a reconcile, which corrects what was overwritten in it. */
  begin(entry: DecodedResource): void {
    const { metadata } = entry.object;
    const readings = this.#parts.map((part) => part.read(entry));
    this.#known.set(keyOf(metadata), { uid: metadata.uid, readings, isRunning: true });
  }

  /** Called at the end of a reconcile. During a reconcile, only field paths are compared, because writes of the user's function may change values. */
  end({ metadata }: KubernetesObject): void {
    const known = this.#knownOf(metadata);
    if (known !== undefined) known.isRunning = false;
  }

  /** Records an own write to a primary or its status, with the response if there was one. */
  note({ metadata }: KubernetesObject, { part, fieldManager, answer }: OwnWrite): void {
    const known = this.#knownOf(metadata);
    // A patch of the status may contain the conditions.
    const isWriter = (each: OwnPart) => !this.#serverSideApply || each.fieldManager === fieldManager;
    const index = this.#parts.findIndex((each) => each.part === part && isWriter(each));
    // The primary may have been recreated in the meantime.
    const isOf = answer === undefined || uidOf(answer) === metadata.uid;
    if (known !== undefined && index >= 0 && isOf) known.readings[index] = answer && this.#parts[index]!.read(answer);
  }

  /** Reports whether a part differs from what the controller wrote, or from what its last reconcile found. */
  isOverwritten(entry: DecodedResource): boolean {
    const { readings = [], isRunning = true } = this.#knownOf(entry.object.metadata) ?? {};
    return readings.some((known, at) => {
      const now = known && this.#parts[at]!.read(entry);
      return known?.fields !== now?.fields || (!isRunning && known?.values !== now?.values);
    });
  }

  release(key: ObjectKey): void {
    this.#known.delete(key);
  }

  #knownOf(metadata: ObjectMeta): KnownFields | undefined {
    const known = this.#known.get(keyOf(metadata));
    return known?.uid === metadata.uid ? known : undefined;
  }
}

// Another client that overwrites an applied field becomes its owner. An aborted own write that takes effect later only changes values.
function appliedPart({ fieldManager, matcher }: Sender, target: WriteTarget, part: WritePart): OwnPart {
  return { fieldManager, part, read: (entry) => matcher.digestsOf(target, part, entry) };
}

function conditionPart({ fieldManager }: Sender, types: ReadonlySet<string>): OwnPart {
  const read = ({ object }: DecodedResource) => {
    const { conditions = [] } = (object as WithConditions).status ?? {};
    return { fields: JSON.stringify(conditions.filter(({ type }) => types.has(type))), values: "" };
  };
  return { fieldManager, part: "status", read };
}
