// Runs Jobs: creates Pods until enough have succeeded or too many have failed.
import { elapsedMs } from "../../clock.js";
import type { NewObject } from "../feed/cluster.js";
import type { Controller, ControllerContext } from "../feed/controller.js";
import { controllerOf, isSame } from "../feed/kubernetes-object.js";
import {
  type Container,
  type Pod,
  type StatusCondition,
  isFinished,
  isReady,
  timestamp,
  withConditions,
} from "../pods/pod.js";
import { claimPods, createPod, deletePod, nonZero, ownersOf, podFrom } from "../workloads/workload.js";
import {
  INDEX,
  type IndexFailures,
  type Job,
  TRACKING,
  type Tally,
  endOf,
  failureAnnotations,
  failuresAfter,
  formatIndexes,
  indexOf,
  metSuccessRule,
  tallyOf,
} from "./job.js";

const KIND = "jobs.batch";

/** In-memory state between reconciles. */
interface JobMemory {
  backoff: JobBackoff;
  /** UIDs of Pods that the status of their Job counts and that still have the finalizer. */
  counted: Set<string>;
}

/** Creates the controller of Jobs, which also implements ttlSecondsAfterFinished. */
export function createJobs(): Controller<Job> {
  const memory: JobMemory = { backoff: new JobBackoff(), counted: new Set() };
  return {
    kind: KIND,
    watches: { "pods.": ownersOf({ plural: KIND, kind: "Job" }) },
    async reconcile(job, context) {
      const { metadata, spec } = job;
      if (spec.managedBy !== undefined && spec.managedBy !== "kubernetes.io/job-controller") return undefined;
      const pods = await claimPods(context.cluster, { apiVersion: "batch/v1", kind: "Job", object: job });
      if (metadata.deletionTimestamp === undefined && endOf(job) === undefined)
        return run(job, pods, { ...context, ...memory });
      memory.backoff.clear(metadata.uid);
      return finish(job, pods, { ...context, ...memory });
    },
    async gone(key, context) {
      // The Job was deleted, so remove the tracking finalizer from its Pods.
      const [namespace, name] = key.split("/");
      const pods = context.cluster.list<Pod>("pods.", namespace);
      const orphans = pods.filter((pod) => {
        const owner = controllerOf(pod);
        return owner?.kind === "Job" && owner.name === name;
      });
      for (const pod of orphans) await letGo(pod, { ...context, ...memory });
    },
  };
}

type JobContext = ControllerContext & JobMemory;

async function run(job: Job, pods: Pod[], context: JobContext): Promise<number | undefined> {
  const { spec, status, metadata } = job;
  const { cluster, counted, backoff } = context;
  const now = context.now();
  const tally = tallyOf(job, pods, counted);
  for (const pod of tally.ended) backoff.note(backoffKey(job, pod), pod, elapsedMs());
  const startTime = spec.suspend === true ? undefined : (status?.startTime ?? timestamp(now));
  const deadline = deadlineOf(job, startTime, now);
  const outcome = outcomeOf(job, pods, { tally, deadline });
  let delay: number | undefined;
  if (outcome !== undefined) {
    for (const pod of tally.active) await deletePod(cluster, { kind: KIND, object: job }, pod);
  } else if (spec.suspend === true) {
    for (const pod of tally.active) await dismiss(job, pod, context);
  } else {
    delay = await createPods(job, tally, context);
  }
  const own = cluster.controlledBy<Pod>("pods.", metadata.uid);
  const left = tallyOf(job, own, counted);
  const isOver = outcome !== undefined && left.active.length === 0 && left.terminating.length === 0;
  const conditions = conditionsOf(job, { outcome, isOver, now });
  // All remaining Pods of a failed Job count as failed.
  const cut = outcome?.type === "Failed" ? unended(tally, pods, counted) : [];
  // Pods waiting for a replacement are counted after it exists.
  const waiting = outcome === undefined ? [...left.replaced.values()].map((pod) => pod.metadata.uid) : [];
  const ended = [...tally.ended, ...cut].filter((pod) => !waiting.includes(pod.metadata.uid));
  const held = tally.ended.length + cut.length - ended.length;
  const { succeededIndexes, failedIndexes } = tally;
  const next = {
    ...(conditions.length === 0 ? {} : { conditions }),
    ...(startTime === undefined ? {} : { startTime }),
    ...(isOver && outcome?.type === "Complete" ? { completionTime: timestamp(now) } : {}),
    ...nonZero({
      active: left.active.length,
      succeeded: tally.succeeded,
      failed: tally.failed + cut.length - held,
    }),
    ...(succeededIndexes.size > 0 && spec.completionMode === "Indexed"
      ? { completedIndexes: formatIndexes([...succeededIndexes]) }
      : {}),
    ...(spec.backoffLimitPerIndex === undefined ? {} : { failedIndexes: formatIndexes([...failedIndexes]) }),
    terminating: left.terminating.length,
    uncountedTerminatedPods: {},
    ready: left.active.filter(isReady).length,
  };
  // Update the status before removing finalizers: a failure in between must not count a Pod twice or never.
  if (!isSame(status, next)) await cluster.update(KIND, { ...job, status: next }, { subresource: "status" });
  for (const { metadata } of ended) counted.add(metadata.uid);
  recordTurns(job, { conditions, outcome: isOver ? outcome : undefined }, context);
  const done = outcome === undefined ? own.filter(({ metadata }) => counted.has(metadata.uid)) : own;
  for (const pod of done) await letGo(pod, context);
  return outcome === undefined ? earliest(deadline?.leftMs, delay) : undefined;
}

function earliest(...times: (number | undefined)[]): number | undefined {
  const known = times.filter((time) => time !== undefined);
  return known.length === 0 ? undefined : Math.min(...known);
}

/** Returns the Pods that are neither finished nor counted yet. */
function unended({ ended }: Tally, pods: Pod[], counted: ReadonlySet<string>): Pod[] {
  const uids = new Set(ended.map(({ metadata }) => metadata.uid));
  return pods.filter(
    ({ metadata }) =>
      metadata.finalizers?.includes(TRACKING) === true && !uids.has(metadata.uid) && !counted.has(metadata.uid),
  );
}

function backoffKey({ metadata, spec }: Job, pod: Pod): string {
  return spec.backoffLimitPerIndex === undefined ? metadata.uid : `${metadata.uid}/${indexOf(pod)}`;
}

/** Deletes a surplus Pod; its finalizer is removed first, so it is not counted. */
async function dismiss(job: Job, pod: Pod, context: JobContext): Promise<void> {
  await letGo(pod, context);
  await deletePod(context.cluster, { kind: KIND, object: job }, pod);
}

async function letGo(pod: Pod, { cluster, counted, backoff }: JobContext): Promise<void> {
  const current = cluster.get<Pod>("pods.", `${pod.metadata.namespace}/${pod.metadata.name}`);
  if (current?.metadata.uid === pod.metadata.uid && current.metadata.finalizers?.includes(TRACKING) === true) {
    const finalizers = current.metadata.finalizers.filter((finalizer) => finalizer !== TRACKING);
    await cluster.update("pods.", { ...current, metadata: { ...current.metadata, finalizers } });
  }
  counted.delete(pod.metadata.uid);
  backoff.forget(pod);
}

/** Records Events when a Job is suspended, resumed, or finished. */
function recordTurns(
  job: Job,
  { conditions, outcome }: { conditions: StatusCondition[]; outcome: JobOutcome | undefined },
  { cluster }: ControllerContext,
): void {
  const suspendedIn = (all: StatusCondition[] = []) => all.find(({ type }) => type === "Suspended")?.status;
  const suspended = suspendedIn(conditions);
  if (suspended !== suspendedIn(job.status?.conditions)) {
    const reason = suspended === "True" ? "Suspended" : "Resumed";
    cluster.record(KIND, job, { reason, message: `Job ${reason.toLowerCase()}` });
  }
  if (outcome?.type === "Complete") cluster.record(KIND, job, { reason: "Completed", message: "Job completed" });
  if (outcome?.type === "Failed")
    cluster.record(KIND, job, { type: "Warning", reason: outcome.reason, message: outcome.message });
}

interface JobOutcome {
  type: "Complete" | "Failed";
  reason: string;
  message: string;
}

function outcomeOf(
  job: Job,
  pods: Pod[],
  { tally, deadline }: { tally: Tally; deadline: { leftMs: number } | undefined },
): JobOutcome | undefined {
  const { backoffLimit = 6, maxFailedIndexes = Infinity, completions = 0 } = job.spec;
  const decided = decidedOutcome(job);
  if (decided !== undefined) return decided;
  const failed = (reason: string, message: string): JobOutcome => ({ type: "Failed", reason, message });
  if (tally.failure !== undefined) return failed("PodFailurePolicy", tally.failure);
  if (tally.failed > backoffLimit || restartsExceed(job, pods))
    return failed("BackoffLimitExceeded", "Job has reached the specified backoff limit");
  if (deadline !== undefined && deadline.leftMs <= 0)
    return failed("DeadlineExceeded", "Job was active longer than specified deadline");
  const { size } = tally.failedIndexes;
  if (size > maxFailedIndexes)
    return failed("MaxFailedIndexesExceeded", "Job has exceeded the specified maximal number of failed indexes");
  if (size > 0 && size + tally.succeededIndexes.size >= completions)
    return failed("FailedIndexes", "Job has failed indexes");
  const rule = metSuccessRule(job, tally.succeededIndexes);
  if (rule !== undefined) return { type: "Complete", reason: "SuccessPolicy", message: rule };
  if (!isDone(job, tally)) return undefined;
  return { type: "Complete", reason: "CompletionsReached", message: "Reached expected number of succeeded pods" };
}

/** Returns the outcome that an earlier reconcile decided; it is final, even while Pods still terminate. */
function decidedOutcome({ status }: Job): JobOutcome | undefined {
  for (const { type, status: holds, reason = "", message = "" } of status?.conditions ?? []) {
    if (holds !== "True") continue;
    if (type === "FailureTarget") return { type: "Failed", reason, message };
    if (type === "SuccessCriteriaMet") return { type: "Complete", reason, message };
  }
  return undefined;
}

function isDone({ spec }: Job, tally: Tally): boolean {
  const { completions, parallelism = 1 } = spec;
  if (completions !== undefined)
    return tally.succeeded >= completions && (completions > 0 || tally.active.length === 0);
  return tally.succeeded > 0 && (tally.active.length === 0 || parallelism === 0);
}

/** Reports whether container restarts (restartPolicy OnFailure) have exceeded the backoff limit. */
function restartsExceed({ spec }: Job, pods: Pod[]): boolean {
  const { backoffLimit = 6, template } = spec;
  if (template.spec.restartPolicy !== "OnFailure") return false;
  const present = pods.filter(({ status }) => status?.phase === "Running" || status?.phase === "Pending");
  const restarts = present
    .flatMap(({ status }) => [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])])
    .reduce((sum, { restartCount }) => sum + restartCount, 0);
  return restarts >= Math.max(backoffLimit, 1);
}

function deadlineOf({ spec }: Job, startTime: string | undefined, now: Date): { leftMs: number } | undefined {
  const { activeDeadlineSeconds } = spec;
  if (activeDeadlineSeconds === undefined || startTime === undefined) return undefined;
  return { leftMs: Date.parse(startTime) + activeDeadlineSeconds * 1000 - now.getTime() };
}

function conditionsOf(
  { spec, status }: Job,
  { outcome, isOver, now }: { outcome: JobOutcome | undefined; isOver: boolean; now: Date },
): StatusCondition[] {
  const time = timestamp(now);
  const condition = (
    type: string,
    status: "True" | "False",
    why: { reason: string; message: string },
  ): StatusCondition => ({
    ...{ type, status, ...why },
    ...{ lastProbeTime: time, lastTransitionTime: time },
  });
  const before = status?.conditions ?? [];
  const wasSuspended = before.some(({ type }) => type === "Suspended");
  const suspended =
    spec.suspend === true
      ? [condition("Suspended", "True", { reason: "JobSuspended", message: "Job suspended" })]
      : wasSuspended
        ? [condition("Suspended", "False", { reason: "JobResumed", message: "Job resumed" })]
        : [];
  const criteria = outcome?.type === "Complete" ? "SuccessCriteriaMet" : "FailureTarget";
  const ends =
    outcome === undefined
      ? []
      : [criteria, ...(isOver ? [outcome.type] : [])].map((type) =>
          condition(type, "True", { reason: outcome.reason, message: outcome.message }),
        );
  const next = withConditions(before, [...suspended, ...ends]);
  return next.map((each) => {
    const old = before.find(({ type, status }) => type === each.type && status === each.status);
    return old ?? each;
  });
}

/** Creates Pods up to the parallelism; returns the milliseconds until backoff allows more. */
async function createPods(job: Job, tally: Tally, context: JobContext): Promise<number | undefined> {
  const { parallelism = 1, completions, completionMode, podReplacementPolicy } = job.spec;
  const { backoff, delayMs } = context;
  const owner = { kind: KIND, object: job };
  const isIndexed = completionMode === "Indexed";
  const open =
    completions === undefined
      ? tally.succeeded > 0
        ? tally.active.length
        : parallelism
      : completions - tally.succeeded - tally.failedIndexes.size;
  const wanted = Math.min(parallelism, Math.max(0, open));
  const surplus = [...tally.active].slice(wanted);
  for (const pod of surplus) await dismiss(job, pod, context);
  const leaving = podReplacementPolicy === "Failed" ? tally.terminating : [];
  let missing = wanted - tally.active.length - leaving.length;
  if (missing <= 0) return undefined;
  const pause = (key: string) => backoff.leftMs(key, { nowMs: elapsedMs(), firstMs: delayMs });
  if (!isIndexed) {
    const left = pause(job.metadata.uid);
    for (; left === 0 && missing > 0; missing--) await createPod(context.cluster, owner, jobPod(job, undefined));
    return left === 0 ? undefined : left;
  }
  const isLimited = job.spec.backoffLimitPerIndex !== undefined;
  const taken = new Set([
    ...tally.succeededIndexes,
    ...tally.failedIndexes,
    ...[...tally.active, ...leaving].map((pod) => indexOf(pod) ?? -1),
  ]);
  const delays: number[] = [];
  for (let index = 0; index < (completions ?? 0) && missing > 0; index++) {
    if (taken.has(index)) continue;
    const left = pause(isLimited ? `${job.metadata.uid}/${index}` : job.metadata.uid);
    if (left > 0) {
      delays.push(left);
      continue;
    }
    const failures = isLimited ? failuresAfter(job, tally.replaced.get(index)) : undefined;
    await createPod(context.cluster, owner, jobPod(job, index, failures));
    missing--;
  }
  return earliest(...delays);
}

/** Cleans up a finished or deleted Job; deletes it after ttlSecondsAfterFinished. */
async function finish(job: Job, pods: Pod[], context: JobContext): Promise<number | undefined> {
  for (const pod of pods.filter(isFinished)) await letGo(pod, context);
  if (job.metadata.deletionTimestamp !== undefined) {
    for (const pod of pods) await letGo(pod, context);
    return undefined;
  }
  const end = endOf(job);
  const { ttlSecondsAfterFinished } = job.spec;
  if (end === undefined || ttlSecondsAfterFinished === undefined) return undefined;
  const left = Date.parse(end.lastTransitionTime) + ttlSecondsAfterFinished * 1000 - context.now().getTime();
  if (left > 0) return left;
  await context.cluster.remove(KIND, job, { propagationPolicy: "Foreground" });
  return undefined;
}

const VARIABLE = "JOB_COMPLETION_INDEX";

/** Builds a Pod of a Job, with its completion index if the Job is indexed, and the failures of the index if backoffLimitPerIndex is set. */
function jobPod(job: Job, index: number | undefined, failures?: IndexFailures): NewObject {
  const pod = podFrom(job.spec.template, { apiVersion: "batch/v1", kind: "Job", object: job });
  const { metadata } = pod;
  metadata.finalizers = [...(metadata.finalizers ?? []), TRACKING];
  if (index === undefined) {
    metadata.generateName = `${job.metadata.name}-`;
    return pod;
  }
  metadata.generateName = `${job.metadata.name}-${index}-`;
  metadata.labels[INDEX] = String(index);
  metadata.annotations = { ...metadata.annotations, [INDEX]: String(index) };
  if (failures !== undefined) Object.assign(metadata.annotations, failureAnnotations(failures));
  const { initContainers, containers = [] } = pod.spec;
  pod.spec = {
    ...pod.spec,
    hostname: `${job.metadata.name}-${index}`,
    containers: containers.map(withIndex),
    ...(initContainers === undefined ? {} : { initContainers: initContainers.map(withIndex) }),
  };
  return pod;
}

function withIndex(container: Container): Container {
  const valueFrom = { fieldRef: { fieldPath: `metadata.labels['${INDEX}']` } };
  return { ...container, env: [...(container.env ?? []), { name: VARIABLE, valueFrom }] };
}

interface Failures {
  count: number;
  lastAt: number;
}

/**
 * Exponential backoff for the replacement of failed Pods, reset by a success.
 *
 * kube-controller-manager starts at 10 s and is limited to 10 min. Simulated Pods take less time than real ones, so the first delay here equals the
 * start time of a Pod.
 */
export class JobBackoff {
  readonly #failures = new Map<string, Failures>();
  readonly #seen = new Set<string>();

  /** Counts a terminated Pod once. `key` identifies the Job, or the index if backoffLimitPerIndex is set. */
  note(key: string, { metadata, status }: Pod, nowMs: number): void {
    if (this.#seen.has(metadata.uid)) return;
    this.#seen.add(metadata.uid);
    if (status?.phase === "Succeeded") this.#failures.delete(key);
    else this.#failures.set(key, { count: (this.#failures.get(key)?.count ?? 0) + 1, lastAt: nowMs });
  }

  /** Returns the milliseconds until the next Pod may be created. */
  leftMs(key: string, { nowMs, firstMs }: { nowMs: number; firstMs: number }): number {
    const { count, lastAt } = this.#failures.get(key) ?? { count: 0, lastAt: 0 };
    if (count === 0) return 0;
    return Math.max(0, lastAt + firstMs * Math.min(2 ** (count - 1), LONGEST_FACTOR) - nowMs);
  }

  /** Drops a Pod that its Job has counted. */
  forget({ metadata }: Pod): void {
    this.#seen.delete(metadata.uid);
  }

  /** Drops a finished Job. */
  clear(uid: string): void {
    for (const key of this.#failures.keys()) if (key.startsWith(uid)) this.#failures.delete(key);
  }
}

const LONGEST_FACTOR = 60;
