import { hash } from "node:crypto";
import { channel } from "node:diagnostics_channel";
import { hasFinalizer } from "../apply/resource-operations.js";
import { type PostponedWrite, describeReason } from "../base/activity.js";
import { findError, isApiError } from "../base/errors.js";
import {
  type DecodedResource,
  type KubernetesObject,
  type ObjectKey,
  type ObjectMeta,
  describeObject,
  isTerminating,
  keyOf,
  uidOf,
} from "../base/kubernetes-object.js";
import { deepFreeze } from "../base/lazy-object.js";
import { type Logger, messageOf } from "../base/logger.js";
import { isPaused } from "../base/primary-link.js";
import type { PrimaryOutcome, PrimaryRunner, ReconcileScope } from "../queue/controller.js";
import type { PrimaryInput } from "../queue/schedule-settings.js";
import type { CleanupContext } from "../workflow/dependent-reconciler.js";
import { Cleanups, scopeOfCleanup } from "./cleanup.js";
import {
  type ControllerDefinition,
  type PrimaryFinalizer,
  type ResolvedDefinition,
  ownFinalizersOn,
  resolveDefinition,
} from "./controller-definition.js";
import {
  OwnFields,
  type PrimaryWrite,
  StatusWriter,
  type WantedPrimary,
  causeOf,
  putFinalizer,
  writePrimary,
} from "./primary-writes.js";
import { type Attempt, type PrimaryDependencies, contextFactoryOf } from "./reconcile-context.js";
import { type DeleteControl, type ErrorControl, type UpdateControl, checkControl } from "./reconciler.js";
import type { ConditionFacts } from "./status-conditions.js";
import { ControllerWorkflows, LOOK_AGAIN_AFTER_MS, WorkflowRuns } from "./workflow-runs.js";

/**
 * Executes one reconcile of a primary: its finalizer, the workflow, the user's reconciler, its writes, and its error status (JOSDK's
 * ReconciliationDispatcher).
 */
export class PrimaryReconciler implements PrimaryRunner {
  readonly workflows: ControllerWorkflows;
  readonly cleanups: Cleanups;
  readonly #definition: ControllerDefinition;
  readonly #resolved: ResolvedDefinition;
  readonly #dependencies: PrimaryDependencies;
  readonly #write: PrimaryWrite;
  /** Undefined without `statusConditions: managed`. */
  readonly #statusWriter: StatusWriter | undefined;
  readonly #ownFields: OwnFields;
  readonly #readInputs: InputReader | undefined;
  readonly #reads: ReadObserver;
  #isErrorStatusHinted = false;

  constructor(definition: ControllerDefinition, dependencies: PrimaryDependencies) {
    const resolved = (this.#resolved = resolveDefinition(definition));
    const { serverSideApply, conditionTypes: types } = resolved;
    const { primaries, sender, conditionSenders } = dependencies;
    this.#definition = definition;
    this.#dependencies = dependencies;
    const target = { definition: definition.workflow.primary, cache: primaries };
    const conditionsSender = conditionSenders?.own;
    this.#ownFields = new OwnFields(target, { sender, conditionsSender, serverSideApply, conditionTypes: types });
    this.#statusWriter = conditionSenders && new StatusWriter(conditionSenders, types);
    this.#reads = new ReadObserver(definition);
    this.#readInputs = inputReaderOf(definition.inputs, (entry) => sender.matcher.appliedMetadata(entry));
    const conditionTypes = conditionSenders && types.all;
    const finalizer = resolved.finalizer.isUsed ? resolved.finalizer.name : undefined;
    this.#write = { target, sender, serverSideApply, finalizer, conditionTypes };
    const createContext = contextFactoryOf(definition, resolved, dependencies);
    const workflows = (this.workflows = new ControllerWorkflows(definition, dependencies, createContext));
    const parts = { definition, resolved, dependencies, workflows, write: this.#write };
    this.cleanups = new Cleanups(parts);
  }

  get finalizer(): PrimaryFinalizer {
    return this.#resolved.finalizer;
  }

  isUndone(entry: DecodedResource): boolean {
    const isGoing = entry.object.metadata.deletionTimestamp !== undefined;
    const isFinalizerLost = !isGoing && this.#lacksFinalizer(entry.object) && this.#needsFinalizer(entry.object);
    return isFinalizerLost || this.#ownFields.isOverwritten(entry);
  }

  inputsOf(entry: DecodedResource): string | undefined {
    return this.#readInputs?.(entry);
  }

  /** Reports whether a primary needs the finalizer before its workflow runs. */
  #needsFinalizer(primary: KubernetesObject): boolean {
    return this.finalizer.isAlways || this.workflows.hasAnyToCleanUp(primary);
  }

  #lacksFinalizer(primary: KubernetesObject): boolean {
    const { finalizer } = this.#write;
    return finalizer !== undefined && !hasFinalizer(primary, finalizer);
  }

  run(scope: ReconcileScope): Promise<PrimaryOutcome> {
    const { tracing } = this.#dependencies;
    if (tracing === undefined) return this.#run(scope);
    const { key: primary, queuedMs, retry, reasons } = scope;
    const { name: controller } = this.#definition;
    const facts = { controller, primary, attempt: retry.attempt, queuedMs, reasons: reasons.map(describeReason) };
    return tracing.reconcile(facts, () => this.#run(scope));
  }

  async #run(scope: ReconcileScope): Promise<PrimaryOutcome> {
    const { onAllEvents } = this.#resolved;
    const isCleanup = !onAllEvents && scope.entry.object.metadata.deletionTimestamp !== undefined;
    const kind = isCleanup ? "cleanup" : "reconcile";
    const { object } = scope.entry;
    const attempt: Attempt = {
      scope,
      write: { ...this.#write, cause: causeOf(scope, this.#ownFields) },
      outcome: { kind, isFinalizerRemoved: false, wroteStatus: false, wroteResource: false },
      postponed: [],
      isPaused: !scope.isPrimaryDeleted && isPaused(object.metadata),
    };
    if (!scope.isPrimaryDeleted) this.#ownFields.begin(scope.entry);
    if (attempt.isPaused !== scope.wasPaused) this.#dependencies.onPaused?.(object, attempt.isPaused);
    try {
      if (scope.isPrimaryDeleted && !onAllEvents)
        throw new Error(`${scope.key} was deleted; only controllers with onAllEvents are called for deleted primaries`);
      if (!attempt.isPaused) await (isCleanup ? this.#cleanUp(attempt) : this.#reconcile(attempt));
    } catch (error) {
      attempt.error = error;
      attempt.outcome.failure = { error, isHandled: false };
    }
    if (isCleanup) await this.cleanups.end(attempt);
    await this.#keepConditions(attempt);
    this.#ownFields.end(object);
    // A write that exceeded the timeout of its step may still take effect, so the next reconcile must not run concurrently.
    const { lingering = [], result } = attempt.runs ?? {};
    if (lingering.length > 0)
      await scope.tasks.track("a write that ran out of time", () => Promise.allSettled(lingering));
    if (result !== undefined) attempt.outcome.workflow = result;
    return attempt.outcome;
  }

  release(key: ObjectKey): void {
    this.workflows.release(key);
    this.#ownFields.release(key);
    this.cleanups.release(key);
  }

  /**
   * Cleans up a terminating primary that does not match the selector. Resolves with the time until the next attempt in milliseconds: 0 if the primary
   * was deleted or this controller is not responsible for it.
   */
  async cleanUpUnselected({ metadata }: KubernetesObject, context: CleanupContext): Promise<number> {
    const { target, sender } = this.#write;
    const entry = await sender.read(target, metadata, context.signal);
    if (entry === undefined || uidOf(entry) !== metadata.uid || !isTerminating(entry.object)) return 0;
    const key = keyOf(metadata);
    if (ownFinalizersOn(this.finalizer, entry.object).length === 0 || target.cache.has(key)) return 0;
    const { failure, isFinalizerRemoved, rescheduleAfterMs } = await this.#runUnqueued(entry.object, context);
    if (!target.cache.has(key)) this.release(key);
    if (failure !== undefined) throw failure.error;
    return isFinalizerRemoved ? 0 : (rescheduleAfterMs ?? LOOK_AGAIN_AFTER_MS);
  }

  async #runUnqueued(primary: KubernetesObject, context: CleanupContext): Promise<PrimaryOutcome> {
    const scope = scopeOfCleanup(primary, { controller: this.#definition.name, context, isPrimaryDeleted: false });
    try {
      return await this.run(scope);
    } finally {
      scope.tasks.close();
    }
  }

  #cleanUp(attempt: Attempt): Promise<void> {
    return this.cleanups.run(attempt, async () => {
      const runs = this.#prepare(attempt.scope.entry.object, attempt);
      return { runs, control: await this.#call<DeleteControl>("cleanup", runs, attempt) };
    });
  }

  async #reconcile(attempt: Attempt): Promise<void> {
    const { scope, write } = attempt;
    const { entry } = scope;
    const postponed = write.sender.postponementOfEdits(write.target, write.cause);
    if (postponed !== undefined) return void (attempt.postponed = [postponed]);
    const isUnmarked = this.#lacksFinalizer(entry.object);
    const isNeeded = isUnmarked && this.#needsFinalizer(entry.object);
    const isMade = isNeeded && this.workflows.hasAnyToCleanUp(entry.object);
    if (isUnmarked && !isMade) this.#dependencies.lateWrites.noteNew(entry.object);
    const primary = isNeeded ? await this.#putFinalizer(attempt) : entry.object;
    // The primary was deleted or replaced; an event follows.
    if (primary === undefined) return;
    const runs = this.#prepare(primary, attempt);
    try {
      const control = await this.#call<UpdateControl<object, object>>("reconcile", runs, attempt);
      if (this.#definition.reconciler !== undefined) {
        const { resource, status, rescheduleAfterMs } = control ?? {};
        scope.signal.throwIfAborted();
        await this.#writePrimary({ primary: attempt.given ?? primary, resource, status }, attempt);
        attempt.outcome.rescheduleAfterMs = rescheduleAfterMs;
      }
      await this.#releaseFinalizers(runs, attempt);
    } catch (error) {
      // After an abort, another replica may lead, so nothing may be written.
      if (scope.signal.aborted) throw error;
      if (attempt.isGone === true) return;
      attempt.error = error;
      const control = await this.#report(error, runs, attempt);
      if (isRetried(control)) attempt.outcome.failure = { error, isHandled: control !== undefined };
      else attempt.outcome.rescheduleAfterMs = control?.rescheduleAfterMs;
    }
  }

  #putFinalizer({ scope, write }: Attempt): Promise<KubernetesObject | undefined> {
    const latest = this.#dependencies.primaries.get(scope.key);
    const entry = latest !== undefined && uidOf(latest) === uidOf(scope.entry) ? latest : scope.entry;
    return putFinalizer(write, this.#dependencies.resources.within(write.cause), entry);
  }

  /** Returns a function that adds the finalizer, once, before the first write of an object that needs it. */
  #finalizerGuard(primary: KubernetesObject, attempt: Attempt): (() => Promise<KubernetesObject>) | undefined {
    if (this.#write.finalizer === undefined || isTerminating(primary)) return undefined;
    if (!this.#lacksFinalizer(primary)) return () => Promise.resolve(primary);
    let putting: Promise<KubernetesObject> | undefined;
    const put = async () => {
      const written = await this.#putFinalizer(attempt);
      if (written === undefined) {
        attempt.isGone = true;
        throw new Error(`${describeObject(primary, primary.metadata)} is being deleted, or is gone`);
      }
      deepFreeze(written);
      return written;
    };
    return () =>
      (putting ??= put().catch((error: unknown) => {
        putting = undefined;
        throw error;
      }));
  }

  /** Removes finalizers that are no longer needed, so that a later deletion does not have to wait for the operator. */
  async #releaseFinalizers(runs: WorkflowRuns, attempt: Attempt): Promise<void> {
    const { scope, write } = attempt;
    const { name, former: formerNames } = this.finalizer;
    const primary = this.#dependencies.primaries.get(scope.key)?.object;
    if (primary === undefined || isTerminating(primary) || primary.metadata.uid !== uidOf(scope.entry)) return;
    // Objects that are not ready may not be protected by this controller's finalizer yet.
    const former = runs.result?.isReady === false ? [] : formerNames.filter((each) => hasFinalizer(primary, each));
    const own = (await this.#isReleased(primary, runs, attempt)) ? [name] : [];
    if (former.length + own.length === 0) return;
    scope.signal.throwIfAborted();
    await this.#dependencies.resources.within(write.cause).removeFinalizers(primary, [...former, ...own]);
  }

  /** Reports whether a primary that is not being deleted has the finalizer although nothing needs it. */
  async #isReleased(primary: KubernetesObject, runs: WorkflowRuns, { outcome }: Attempt): Promise<boolean> {
    const { isReleased, name } = this.finalizer;
    if (!isReleased || !hasFinalizer(primary, name)) return false;
    const waitMs = this.#definition.cleanupPolicy === "sweep" ? 0 : await runs.releaseAfterMs();
    if (waitMs !== undefined && waitMs > 0)
      outcome.rescheduleAfterMs = Math.ceil(Math.min(waitMs, outcome.rescheduleAfterMs ?? waitMs));
    return waitMs === 0;
  }

  async #keepConditions(attempt: Attempt): Promise<void> {
    const { scope, outcome, status: stated } = attempt;
    const { object } = scope.entry;
    if (this.#statusWriter === undefined || scope.signal.aborted || scope.isPrimaryDeleted) return;
    if (outcome.isFinalizerRemoved && this.#hasOnlyOwnFinalizers(object)) return;
    // A write would add an unselected primary to the cache.
    if (!this.#dependencies.primaries.has(scope.key)) return;
    try {
      const found = { stated, facts: this.#factsOf(attempt) };
      const wroteStatus = await this.#statusWriter.keep(attempt.write, object, found);
      if (wroteStatus) outcome.wroteStatus = true;
    } catch (error) {
      if (outcome.failure === undefined) outcome.failure = { error, isHandled: false };
      else scope.logger.warn({}, `the conditions of the status could not be written: ${messageOf(error)}`);
    }
  }

  // Removing the last finalizer deletes the primary.
  #hasOnlyOwnFinalizers(primary: KubernetesObject): boolean {
    return ownFinalizersOn(this.finalizer, primary).length === primary.metadata.finalizers?.length;
  }

  #factsOf({ scope, outcome, error, postponed, isPaused, runs }: Attempt): ConditionFacts {
    const isCleanup = outcome.kind === "cleanup";
    // A condition that reports the write loop of the conditions would itself be reverted.
    const isTold = ({ paths }: PostponedWrite) =>
      paths.length === 0 || !paths.every((path) => path.startsWith("status.conditions"));
    const loops = [...postponed, ...(this.#dependencies.loopsOf?.(scope.entry.object) ?? [])].filter(isTold);
    const own = {
      types: this.#resolved.conditionTypes,
      hasDependents: this.#definition.workflow.dependents.length > 0,
    };
    return { workflow: runs?.result, error, isCleanup, postponed: loops, isPaused, ...own };
  }

  /** Runs the workflow, unless the reconciler invokes it, and then the reconciler's function. Returns its control. */
  async #call<Control extends object>(
    kind: "reconcile" | "cleanup",
    runs: WorkflowRuns,
    attempt: Attempt,
  ): Promise<Control | undefined> {
    const { tasks, signal } = attempt.scope;
    const { args } = runs;
    const { reconciler, workflow: definition } = this.#definition;
    const { secondaries } = this.#dependencies;
    await tasks.track("an event source", async () => {
      await secondaries.activate(args);
      await secondaries.load(args.primary, signal);
    });
    if (reconciler?.initContext !== undefined)
      await tasks.track("initContext() of the reconciler", () => reconciler.initContext?.(args as never));
    const hasFunction = reconciler?.[kind] !== undefined;
    const isInvoked = definition.invocation === "explicit" && hasFunction;
    const workflow = isInvoked ? undefined : await runs.run(kind);
    // With `exceptions: result`, the function receives the errors of dependents.
    if (workflow?.error !== undefined && !(definition.exceptions === "result" && hasFunction)) {
      if (hasFunction && kind === "reconcile") this.#hintAtErrorStatus(attempt);
      throw workflow.error;
    }
    const what = kind === "cleanup" ? "the cleanup of the reconciler" : "the reconciler";
    attempt.given = this.#reads.originalOf(runs.args.primary);
    const returned = tasks.track(what, () => reconciler?.[kind]?.({ workflow, ...runs.args } as never));
    return checkControl<Control>(kind, await runs.settleAfter(returned));
  }

  // Logged once: a status that only reconcile() returns is not updated after failures of the workflow.
  #hintAtErrorStatus({ scope: { logger, signal } }: Attempt): void {
    const hasErrorStatus = this.#definition.reconciler?.updateErrorStatus !== undefined;
    if (hasErrorStatus || this.#isErrorStatusHinted || signal.aborted) return;
    this.#isErrorStatusHinted = true;
    const what = "reconcile() is not called when the workflow fails, so the status stays as it is";
    logger.info({}, `${what}; add updateErrorStatus() to the reconciler to write it after failures`);
  }

  /** Calls updateErrorStatus(), writes the status that it returns, and returns its control. Never rejects. */
  async #report(error: unknown, runs: WorkflowRuns, attempt: Attempt): Promise<ErrorControl<object> | undefined> {
    const { reconciler } = this.#definition;
    const { scope } = attempt;
    if (reconciler?.updateErrorStatus === undefined) return undefined;
    const { args, result: workflow } = runs;
    const facts = { ...args, error, ...(workflow !== undefined && { workflow }) };
    let control: ErrorControl<object> | undefined;
    try {
      const returned = await scope.tasks.track("updateErrorStatus() of the reconciler", () =>
        reconciler.updateErrorStatus?.(facts as never),
      );
      control = checkControl<ErrorControl<object>>("updateErrorStatus", returned);
      const { status } = control ?? {};
      if (status !== undefined)
        await this.#writePrimary({ primary: this.#reads.originalOf(args.primary), status }, attempt);
    } catch (problem) {
      logUnreported(problem, scope, isRetried(control) && findError(error, "TerminalError") === undefined);
    }
    return control;
  }

  async #writePrimary({ status, ...wanted }: WantedPrimary, attempt: Attempt): Promise<void> {
    const { write } = attempt;
    let isStatusReached = wanted.resource === undefined;
    let isPostponed = false;
    const note: Parameters<typeof writePrimary>[2] = ({ postponed, ...written }) => {
      isStatusReached = true;
      isPostponed ||= postponed !== undefined;
      if (postponed !== undefined) attempt.postponed = [...attempt.postponed, postponed];
      Object.assign(attempt.outcome, written);
    };
    const isConditionsError = (error: unknown) =>
      isApiError(error, 422) && error.causes.some(({ field }) => field?.startsWith("status.conditions"));
    const writer = this.#statusWriter;
    const { alone, both }: { alone?: object | undefined; both?: object } =
      writer === undefined || status === undefined
        ? { alone: status }
        : writer.statementOf(write, { status, primary: wanted.primary }, this.#factsOf(attempt));
    const whole = both && writer?.ofAll(write, both);
    try {
      await writePrimary(whole ?? write, { ...wanted, status: both ?? alone }, note);
    } catch (error) {
      if (both === undefined || !isStatusReached || !isConditionsError(error)) throw error;
      // Conditions that the API server rejects must not prevent the write of the status. Their separate write reports the error.
      await writePrimary(write, { primary: wanted.primary, status: alone }, note);
    }
    if (status !== undefined && !isPostponed) attempt.status = status;
  }

  #prepare(primary: KubernetesObject, attempt: Attempt): WorkflowRuns {
    const { scope } = attempt;
    // The response to a write is the cached object, which is not frozen yet.
    deepFreeze(primary);
    const guard = this.#finalizerGuard(primary, attempt);
    const given = this.#reads.observe(primary, scope);
    // From then on, user functions receive the primary with its finalizer.
    const put = guard && (async () => this.#reads.observe(await guard(), scope));
    return (attempt.runs = new WorkflowRuns(this.workflows, given, scope, put));
  }
}

/** Reports whether an error is retried. A reschedule replaces the retry. */
function isRetried(control: ErrorControl<object> | undefined): boolean {
  return control?.withoutRetry !== true && control?.rescheduleAfterMs === undefined;
}

/** Logs that updateErrorStatus() or the write of its status failed. The error of the reconcile is logged where it is retried. */
function logUnreported(problem: unknown, scope: ReconcileScope, isRetried: boolean): void {
  const { logger, retry } = scope;
  const what = "the status could not report the error";
  const message = `${what}: ${messageOf(problem)}`;
  const comesAgain = scope.isNextReconcileImminent() || (isRetried && !retry.isLastAttempt);
  if (!comesAgain) return logger.error({}, message);
  if (!isApiError(problem, 409) && !isApiError(problem, 422)) return logger.warn({}, message);
  logger.info({}, `${what}, because the primary changed meanwhile; it is reconciled again`);
  logger.debug({}, message);
}

// Inputs of a controller: metadata of the primary that its functions read. A change of them causes a reconcile, although it does not increment the
// generation. ReadObserver detects reads of metadata that is not listed as an input.

/** Returns a digest of the inputs of a controller. */
type InputReader = (entry: DecodedResource) => string;

type Member = "labels" | "annotations";
type KeySet = Pick<ReadonlySet<string>, "has">;

// Bookkeeping annotations of clients and of the runtime. They are inputs only if their keys are listed.
const BOOKKEEPING =
  /^(?:kubectl\.kubernetes\.io\/last-applied-configuration$|control-plane\.alpha\.kubernetes\.io\/leader$|gen-operator\.dev\/)/;
const KEYED = /^metadata\.(labels|annotations)(?:\['([^']+)'\])?$/;

/**
 * Published when a function reads a label or an annotation of the primary that is not an input: the `controller`, the `input`, and the key of the
 * `primary`.
 */
const unlistedReadChannel = channel("gen-operator.unlisted-read");

/** Validates an input, for users without type checking. */
export function isInput(input: unknown): input is PrimaryInput {
  return typeof input === "string" && (input === "metadata.ownerReferences" || keyedInputOf(input) !== undefined);
}

/** Returns the metadata field of an input, and the key if it has one; undefined for `metadata.ownerReferences`. */
function keyedInputOf(input: string): { readonly member: Member; readonly key: string | undefined } | undefined {
  const [, member, key] = KEYED.exec(input) ?? [];
  return member === undefined ? undefined : { member: member as Member, key };
}

/**
 * Creates the function that computes the digest of inputs; undefined if there are none. `appliedTo` returns the keys that the controller itself
 * applied to a primary.
 */
function inputReaderOf(
  inputs: readonly PrimaryInput[] = [],
  appliedTo: (entry: DecodedResource) => { readonly [member in Member]: KeySet },
): InputReader | undefined {
  if (inputs.length === 0) return undefined;
  const parts = [...new Set(inputs)].sort().map(partOf);
  return (entry) => {
    const applied = appliedTo(entry);
    const text = JSON.stringify(parts.map((read) => read(entry.object.metadata, applied)));
    // A digest is kept for every primary, so long values are hashed.
    return text.length <= 32 ? text : hash("sha1", text, "base64");
  };
}

type PartReader = (metadata: ObjectMeta, applied: { readonly [member in Member]: KeySet }) => unknown;

// Values that the controller itself applied are not inputs. Another client that changes such a value becomes the owner of the key.
function partOf(input: PrimaryInput): PartReader {
  const keyed = keyedInputOf(input);
  if (keyed === undefined) return ({ ownerReferences }) => ownerReferences;
  const { member, key } = keyed;
  if (key !== undefined) return (metadata, applied) => (applied[member].has(key) ? undefined : metadata[member]?.[key]);
  return (metadata, applied) =>
    Object.entries(metadata[member] ?? {})
      .filter(([key]) => !BOOKKEEPING.test(key) && !applied[member].has(key))
      .sort(([one], [other]) => (one < other ? -1 : 1));
}

type Note = (input: string) => void;

/** Detects reads of metadata that is not an input of the controller, while a tool subscribes to the channel. Without a subscriber it has no cost. */
class ReadObserver {
  readonly #definition: ControllerDefinition;
  readonly #known = new Set<string>();
  /** The observed primaries, by the objects passed to user functions in their place. */
  readonly #originals = new WeakMap<KubernetesObject, KubernetesObject>();

  constructor(definition: ControllerDefinition) {
    this.#definition = definition;
  }

  /** Returns the object to pass to user functions: the primary itself, unless a tool subscribes. */
  observe(
    primary: KubernetesObject,
    { key, logger }: { readonly key: string; readonly logger: Logger },
  ): KubernetesObject {
    const { name: controller, generationAware, defaultFilters } = this.#definition;
    if (!unlistedReadChannel.hasSubscribers || generationAware === false || defaultFilters === false) return primary;
    const observed = this.#observed(primary, (input) => {
      if (this.#known.has(input)) return;
      this.#known.add(input);
      const message =
        `a function reads ${input} of the primary, which is no input of the controller, so a change of it causes no reconcile; ` +
        "run gen-operator generate, or add it to inputs";
      logger.warn({ input }, message);
      unlistedReadChannel.publish({ controller, input, primary: key });
    });
    this.#originals.set(observed, primary);
    return observed;
  }

  /** Returns the primary for an object that was passed to user functions. */
  originalOf(given: KubernetesObject): KubernetesObject {
    return this.#originals.get(given) ?? given;
  }

  // Getters instead of proxies, so that structuredClone and spreads work as in production.
  #observed(primary: KubernetesObject, note: Note): KubernetesObject {
    const metadata = { ...primary.metadata };
    for (const member of ["labels", "annotations"] as const) {
      const values = this.#observedMember(member, primary.metadata[member], note);
      if (values !== undefined) Object.defineProperty(metadata, member, { enumerable: true, get: values });
    }
    return Object.freeze({ ...primary, metadata: Object.freeze(metadata) });
  }

  /** Returns the getter of a metadata field; undefined if the whole field is an input. */
  #observedMember(member: Member, values: { readonly [key: string]: string } | undefined, note: Note) {
    const { inputs = [] } = this.#definition;
    const whole = `metadata.${member}` as const;
    if (inputs.includes(whole)) return undefined;
    const isListed = (key: string) => inputs.includes(`${whole}['${key}']`);
    if (!inputs.some((input) => input.startsWith(`${whole}[`)))
      return () => {
        note(whole);
        return values;
      };
    if (values === undefined) return undefined;
    const observed = {};
    for (const [key, value] of Object.entries(values)) {
      const get = () => {
        if (!isListed(key)) note(`${whole}['${key}']`);
        return value;
      };
      Object.defineProperty(observed, key, { enumerable: true, get });
    }
    return () => Object.freeze(observed);
  }
}
