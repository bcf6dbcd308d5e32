// Creates the Jobs of CronJobs and limits the history of finished ones.
import { Cron } from "croner";
import type { Cluster } from "../feed/cluster.js";
import type { Controller, ControllerContext } from "../feed/controller.js";
import { type KubernetesObject, controllerOf, isSame } from "../feed/kubernetes-object.js";
import { controllerReference, timestamp } from "../pods/pod.js";
import { type Job, type JobSpec, endOf } from "./job.js";

interface CronJob extends KubernetesObject {
  spec: CronTimes & {
    suspend?: boolean;
    concurrencyPolicy?: string;
    successfulJobsHistoryLimit?: number;
    failedJobsHistoryLimit?: number;
    jobTemplate: {
      metadata?: { labels?: Record<string, string>; annotations?: Record<string, string> };
      spec: JobSpec;
    };
  };
  status?: { active?: object[]; lastScheduleTime?: string; lastSuccessfulTime?: string };
}

const KIND = "cronjobs.batch";
const JOBS = "jobs.batch";
const SCHEDULED_AT = "batch.kubernetes.io/cronjob-scheduled-timestamp";
/** Maximum requeue delay of a CronJob that is due later. */
const LONGEST_WAIT_MS = 3_600_000;

/** Creates the controller of CronJobs. */
export function createCronJobs(): Controller<CronJob> {
  return {
    kind: KIND,
    watches: {
      [JOBS]: (job) => {
        const owner = controllerOf(job);
        return owner?.kind === "CronJob" ? [`${job.metadata.namespace}/${owner.name}`] : [];
      },
    },
    async reconcile(cronJob, context) {
      if (cronJob.metadata.deletionTimestamp !== undefined) return undefined;
      await cleanUp(cronJob, context.cluster);
      const { spec, metadata, status } = cronJob;
      const since = new Date(status?.lastScheduleTime ?? metadata.creationTimestamp ?? 0);
      const { last, next } = dueTimes(spec, since, context.now());
      const isDue = last !== undefined && spec.suspend !== true;
      const started = isDue && (await start(cronJob, last, context));
      await writeStatus(cronJob, started ? last : undefined, context.cluster);
      if (next === undefined || spec.suspend === true) return undefined;
      return Math.min(Math.max(next.getTime() - context.now().getTime(), 0) + 10, LONGEST_WAIT_MS);
    },
  };
}

function jobsOf({ metadata }: CronJob, cluster: Cluster): Job[] {
  return cluster.controlledBy<Job>(JOBS, metadata.uid);
}

/** Creates the Job of a scheduled time; returns false if the concurrencyPolicy prevents it. */
async function start(cronJob: CronJob, time: Date, { cluster }: ControllerContext): Promise<boolean> {
  const { metadata, spec } = cronJob;
  const running = jobsOf(cronJob, cluster).filter((job) => endOf(job) === undefined);
  if (spec.concurrencyPolicy === "Forbid" && running.length > 0) {
    const message = "Not starting job because prior execution is running and concurrency policy is Forbid";
    cluster.record(KIND, cronJob, { reason: "JobAlreadyActive", message });
    return false;
  }
  if (spec.concurrencyPolicy === "Replace") {
    for (const job of running) await deleteJob(cronJob, job, cluster);
  }
  const name = `${metadata.name}-${Math.floor(time.getTime() / 60_000)}`;
  if (cluster.get(JOBS, `${metadata.namespace}/${name}`) !== undefined) return true;
  const { labels, annotations } = spec.jobTemplate.metadata ?? {};
  await cluster.create(JOBS, {
    metadata: {
      name,
      ...(metadata.namespace === undefined ? {} : { namespace: metadata.namespace }),
      ...(labels === undefined ? {} : { labels }),
      annotations: { ...annotations, [SCHEDULED_AT]: timestamp(time) },
      ownerReferences: [controllerReference("batch/v1", "CronJob", cronJob)],
    },
    spec: spec.jobTemplate.spec,
  });
  cluster.record(KIND, cronJob, { reason: "SuccessfulCreate", message: `Created job ${name}` });
  return true;
}

async function deleteJob(cronJob: CronJob, job: Job, cluster: Cluster): Promise<void> {
  await cluster.remove(JOBS, job, { propagationPolicy: "Background" });
  cluster.record(KIND, cronJob, { reason: "SuccessfulDelete", message: `Deleted job ${job.metadata.name}` });
}

/** Deletes the oldest finished Jobs beyond the history limits. */
async function cleanUp(cronJob: CronJob, cluster: Cluster): Promise<void> {
  const { successfulJobsHistoryLimit = 3, failedJobsHistoryLimit = 1 } = cronJob.spec;
  const jobs = jobsOf(cronJob, cluster).filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  const startOf = ({ status, metadata }: Job) => status?.startTime ?? metadata.creationTimestamp ?? "";
  for (const [type, limit] of [
    ["Complete", successfulJobsHistoryLimit],
    ["Failed", failedJobsHistoryLimit],
  ] as const) {
    const over = jobs.filter((job) => endOf(job)?.type === type).sort((a, b) => startOf(a).localeCompare(startOf(b)));
    for (const job of over.slice(0, Math.max(0, over.length - limit))) {
      await deleteJob(cronJob, job, cluster);
    }
  }
}

async function writeStatus(cronJob: CronJob, scheduled: Date | undefined, cluster: Cluster): Promise<void> {
  const jobs = jobsOf(cronJob, cluster);
  const running = jobs.filter((job) => endOf(job) === undefined);
  const active = running.map(({ metadata: { name, namespace, uid, resourceVersion } }) => ({
    ...{ apiVersion: "batch/v1", kind: "Job", name, namespace, uid, resourceVersion },
  }));
  const done = jobs.flatMap((job) => (endOf(job)?.type === "Complete" ? [job.status?.completionTime ?? ""] : []));
  const lastSuccessfulTime = [cronJob.status?.lastSuccessfulTime ?? "", ...done].sort().at(-1) ?? "";
  const lastScheduleTime = scheduled === undefined ? cronJob.status?.lastScheduleTime : timestamp(scheduled);
  const known = (cronJob.status?.active ?? []) as { uid: string }[];
  const over = jobs.filter((job) => endOf(job) !== undefined && known.some(({ uid }) => uid === job.metadata.uid));
  // Keep known references: a reference contains the resourceVersion of the Job when it was created.
  const references = active.map((reference) => known.find(({ uid }) => uid === reference.uid) ?? reference);
  const status = {
    ...(references.length === 0 ? {} : { active: references }),
    ...(lastScheduleTime === undefined ? {} : { lastScheduleTime }),
    ...(lastSuccessfulTime === "" ? {} : { lastSuccessfulTime }),
  };
  if (!isSame(cronJob.status ?? {}, status))
    await cluster.update(KIND, { ...cronJob, status }, { subresource: "status" });
  for (const job of over) {
    const message = `Saw completed job: ${job.metadata.name}, condition: ${endOf(job)?.type}`;
    cluster.record(KIND, cronJob, { reason: "SawCompletedJob", message });
  }
}

/** The fields of a CronJob spec that determine its schedule. */
interface CronTimes {
  schedule: string;
  timeZone?: string;
  startingDeadlineSeconds?: number;
}

/** The most recent and the next scheduled time. */
interface Due {
  last: Date | undefined;
  next: Date | undefined;
}

const INTERVAL = /^@every (?=.)(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?$/;
/** After this many missed times, older ones are skipped. */
const MAX_MISSED = 100;

/** Returns the last scheduled time after `since` up to `now`, and the next one after `now`. */
export function dueTimes({ schedule, timeZone, startingDeadlineSeconds }: CronTimes, since: Date, now: Date): Due {
  const earliest =
    startingDeadlineSeconds === undefined
      ? since
      : new Date(Math.max(since.getTime(), now.getTime() - startingDeadlineSeconds * 1000));
  const nextAfter = nextOf(schedule, timeZone, since);
  let last: Date | undefined;
  let next = nextAfter(earliest);
  for (let count = 0; next !== undefined && next <= now; count++) {
    last = next;
    // Skip ahead to the last minute instead of counting every missed run.
    next = count === MAX_MISSED ? nextAfter(new Date(now.getTime() - 60_000)) : nextAfter(next);
    if (count > 2 * MAX_MISSED) break;
  }
  return { last, next };
}

function nextOf(schedule: string, timeZone: string | undefined, since: Date): (date: Date) => Date | undefined {
  const interval = INTERVAL.exec(schedule);
  if (interval !== null) {
    const [hours, minutes, seconds] = interval.slice(1).map((part) => Number(part ?? 0));
    const ms = ((hours ?? 0) * 3600 + (minutes ?? 0) * 60 + (seconds ?? 0)) * 1000;
    return (date) => new Date(since.getTime() + (Math.floor((date.getTime() - since.getTime()) / ms) + 1) * ms);
  }
  const cron = new Cron(schedule, { paused: true, timezone: timeZone ?? "Etc/UTC" });
  return (date) => cron.nextRun(date) ?? undefined;
}
