// Runs Jobs: Pods until enough have succeeded, or too many have failed.
import type { Controller, ControllerContext } from "../feed/controller.js";
import { controllerOf } from "../feed/kubernetes-object.js";
import {
  type Pod,
  type StatusCondition,
  isActive,
  isFinished,
  isReady,
  timestamp,
  withConditions,
} from "../pods/pod.js";
import { isSame } from "../pods/same.js";
import { claimPods, createPod, deletePod, nonZero, ownersOf } from "../workloads/workload.js";
import { type Job, endOf, formatIndexes, parseIndexes } from "./job.js";
import { INDEX, jobPod } from "./job-pod.js";

const KIND = "jobs.batch";
const TRACKING = "batch.kubernetes.io/job-tracking";

/** Makes the controller of Jobs, which also deletes those whose time to live is over. */
export function createJobs(): Controller<Job> {
  return {
    kind: KIND,
    watches: { "pods.": ownersOf({ plural: KIND, kind: "Job" }) },
    async reconcile(job, context) {
      const { metadata, spec } = job;
      if (spec.managedBy !== undefined && spec.managedBy !== "kubernetes.io/job-controller") return undefined;
      const pods = await claimPods(context.cluster, { apiVersion: "batch/v1", kind: "Job", object: job });
      if (metadata.deletionTimestamp !== undefined || endOf(job) !== undefined) return finish(job, pods, context);
      return run(job, pods, context);
    },
    async gone(key, context) {
      // The Pods of a Job that is gone wait for nobody.
      const [namespace, name] = key.split("/");
      const pods = context.cluster.list<Pod>("pods.", namespace);
      const orphans = pods.filter((pod) => {
        const owner = controllerOf(pod);
        return owner?.kind === "Job" && owner.name === name;
      });
      for (const pod of orphans) await letGo(pod, context);
    },
  };
}

/** What Pods of a Job have come to, with those of earlier reconciles. */
interface Tally {
  active: Pod[];
  terminating: Pod[];
  succeeded: number;
  failed: number;
  indexes: number[];
  /** Pods whose end the status has yet to count. */
  ended: Pod[];
}

function tallyOf({ status }: Job, pods: Pod[]): Tally {
  const tracked = pods.filter(({ metadata }) => metadata.finalizers?.includes(TRACKING) === true);
  const active = pods.filter(isActive);
  const terminating = pods.filter((pod) => !isFinished(pod) && pod.metadata.deletionTimestamp !== undefined);
  const ended = tracked.filter((pod) => isFinished(pod));
  const good = ended.filter((pod) => pod.status?.phase === "Succeeded");
  const indexes = new Set([
    ...parseIndexes(status?.completedIndexes),
    ...good.map(({ metadata }) => Number(metadata.annotations?.[INDEX] ?? -1)).filter((index) => index >= 0),
  ]);
  return {
    ...{ active, terminating, ended },
    succeeded: (status?.succeeded ?? 0) + good.length,
    failed: (status?.failed ?? 0) + ended.length - good.length,
    indexes: [...indexes],
  };
}

async function run(job: Job, pods: Pod[], context: ControllerContext): Promise<number | undefined> {
  const { spec, status } = job;
  const now = context.now();
  const counted = tallyOf(job, pods);
  const isIndexed = spec.completionMode === "Indexed";
  const tally = isIndexed ? { ...counted, succeeded: counted.indexes.length } : counted;
  const startTime = spec.suspend === true ? undefined : (status?.startTime ?? timestamp(now));
  const deadline = deadlineOf(job, startTime, now);
  const outcome = outcomeOf(job, tally, deadline);
  if (spec.suspend === true || outcome !== undefined) {
    for (const pod of tally.active) await deletePod(context.cluster, { kind: KIND, object: job }, pod);
  } else {
    await createPods(job, tally, context);
  }
  const current = context.cluster.list<Pod>("pods.", job.metadata.namespace);
  const own = current.filter((pod) => pod.metadata.ownerReferences?.some(({ uid }) => uid === job.metadata.uid));
  const left = tallyOf(job, own);
  const isOver = outcome !== undefined && left.active.length === 0 && left.terminating.length === 0;
  const conditions = conditionsOf(job, { outcome, isOver, now });
  const next = {
    ...(conditions.length === 0 ? {} : { conditions }),
    ...(startTime === undefined ? {} : { startTime }),
    ...(isOver && outcome?.type === "Complete" ? { completionTime: timestamp(now) } : {}),
    ...nonZero({ active: left.active.length, succeeded: tally.succeeded, failed: tally.failed }),
    ...(isIndexed && tally.indexes.length > 0 ? { completedIndexes: formatIndexes(tally.indexes) } : {}),
    terminating: left.terminating.length,
    uncountedTerminatedPods: {},
    ready: left.active.filter(isReady).length,
  };
  // First counted, then let go: a failure in between must not count a Pod twice or never.
  if (!isSame(job.status, next))
    await context.cluster.update(KIND, { ...job, status: next }, { subresource: "status" });
  recordTurns(job, { conditions, outcome: isOver ? outcome : undefined }, context);
  for (const pod of tally.ended) await letGo(pod, context);
  return outcome === undefined ? deadline?.leftMs : undefined;
}

async function letGo(pod: Pod, { cluster }: ControllerContext): Promise<void> {
  const current = cluster.get<Pod>("pods.", `${pod.metadata.namespace}/${pod.metadata.name}`);
  if (current?.metadata.finalizers?.includes(TRACKING) !== true) return;
  const finalizers = current.metadata.finalizers.filter((finalizer) => finalizer !== TRACKING);
  await cluster.update("pods.", { ...current, metadata: { ...current.metadata, finalizers } });
}

/** Tells that a Job was suspended, resumed, or is over. */
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

function outcomeOf({ spec }: Job, tally: Tally, deadline: { leftMs: number } | undefined): JobOutcome | undefined {
  const { completions, backoffLimit = 6, parallelism = 1 } = spec;
  const isDone =
    completions === undefined
      ? tally.succeeded > 0 && tally.active.length === 0
      : tally.succeeded >= completions && (completions > 0 || tally.active.length === 0);
  const message = "Reached expected number of succeeded pods";
  if (isDone || (completions === undefined && parallelism === 0 && tally.succeeded > 0))
    return { type: "Complete", reason: "CompletionsReached", message };
  if (tally.failed > backoffLimit) {
    return { type: "Failed", reason: "BackoffLimitExceeded", message: "Job has reached the specified backoff limit" };
  }
  if (deadline !== undefined && deadline.leftMs <= 0) {
    return { type: "Failed", reason: "DeadlineExceeded", message: "Job was active longer than specified deadline" };
  }
  return undefined;
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

/** Creates Pods up to what may run at once. */
async function createPods(job: Job, tally: Tally, { cluster }: ControllerContext): Promise<void> {
  const { parallelism = 1, completions, completionMode } = job.spec;
  const owner = { kind: KIND, object: job };
  const isIndexed = completionMode === "Indexed";
  const open =
    completions === undefined
      ? tally.succeeded > 0
        ? tally.active.length
        : parallelism
      : completions - tally.succeeded;
  const wanted = Math.min(parallelism, Math.max(0, open));
  const surplus = [...tally.active].slice(wanted);
  for (const pod of surplus) await deletePod(cluster, owner, pod);
  const missing = wanted - tally.active.length - tally.terminating.length;
  const taken = new Set([
    ...tally.indexes,
    ...[...tally.active, ...tally.terminating].map(({ metadata }) => Number(metadata.annotations?.[INDEX])),
  ]);
  for (let count = 0, index = 0; count < missing; count++, index++) {
    while (isIndexed && taken.has(index)) index++;
    await createPod(cluster, owner, jobPod(job, isIndexed ? index : undefined));
  }
}

/** Cleans up after a Job that is over, or is being deleted; deletes it when its time to live is over. */
async function finish(job: Job, pods: Pod[], context: ControllerContext): Promise<number | undefined> {
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
