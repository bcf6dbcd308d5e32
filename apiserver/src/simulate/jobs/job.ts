import { type Pod, isActive, isFinished } from "../pods/pod.js";
import type { Workload, WorkloadSpec, WorkloadStatus } from "../workloads/workload.js";

/** The fields of a Job spec that the controller reads. */
export interface JobSpec extends WorkloadSpec {
  parallelism?: number;
  completions?: number;
  completionMode?: string;
  backoffLimit?: number;
  backoffLimitPerIndex?: number;
  maxFailedIndexes?: number;
  activeDeadlineSeconds?: number;
  ttlSecondsAfterFinished?: number;
  suspend?: boolean;
  managedBy?: string;
  podReplacementPolicy?: string;
  podFailurePolicy?: { rules: FailureRule[] };
  successPolicy?: { rules: { succeededIndexes?: string; succeededCount?: number }[] };
}

/** A rule of a podFailurePolicy. */
interface FailureRule {
  action: "FailJob" | "FailIndex" | "Ignore" | "Count";
  onExitCodes?: { containerName?: string; operator: "In" | "NotIn"; values: number[] };
  onPodConditions?: { type: string; status?: string }[];
}

export interface Job extends Workload<JobSpec> {
  status?: WorkloadStatus & {
    startTime?: string;
    completionTime?: string;
    completedIndexes?: string;
    failedIndexes?: string;
    succeeded?: number;
    failed?: number;
  };
}

/** Returns the Complete or Failed condition of a finished Job. */
export function endOf({ status }: Job): { type: string; lastTransitionTime: string } | undefined {
  return status?.conditions?.find(
    ({ type, status }) => status === "True" && (type === "Complete" || type === "Failed"),
  );
}

/** Label and annotation with the completion index of a Pod of an indexed Job. */
export const INDEX = "batch.kubernetes.io/job-completion-index";
/** Finalizer of a Pod that its Job has not counted yet. */
export const TRACKING = "batch.kubernetes.io/job-tracking";
const FAILURES = "batch.kubernetes.io/job-index-failure-count";
const IGNORED = "batch.kubernetes.io/job-index-ignored-failure-count";

/** Returns the completion index of a Pod of an indexed Job. */
export function indexOf({ metadata }: Pod): number | undefined {
  const index = metadata.annotations?.[INDEX];
  return index === undefined ? undefined : Number(index);
}

/** Failures of a completion index before a Pod: those that count and those that were ignored. */
export interface IndexFailures {
  counted: number;
  ignored: number;
}

/** Reads the failures of an index from the annotations of a Pod. */
function failuresBefore({ metadata }: Pod): IndexFailures {
  const count = (name: string) => Number(metadata.annotations?.[name] ?? 0) || 0;
  return { counted: count(FAILURES), ignored: count(IGNORED) };
}

/** Builds the annotations that `failuresBefore` reads. */
export function failureAnnotations({ counted, ignored }: IndexFailures): Record<string, string> {
  return { [FAILURES]: String(counted), ...(ignored === 0 ? {} : { [IGNORED]: String(ignored) }) };
}

/** Formats `[0, 1, 2, 5]` as `0-2,5`. */
export function formatIndexes(indexes: number[]): string {
  const ranges: [number, number][] = [];
  for (const index of [...indexes].sort((a, b) => a - b)) {
    const last = ranges.at(-1);
    if (last !== undefined && last[1] === index - 1) last[1] = index;
    else ranges.push([index, index]);
  }
  return ranges
    .map(([from, to]) => (from === to ? `${from}` : to === from + 1 ? `${from},${to}` : `${from}-${to}`))
    .join(",");
}

/** Parses the format of `formatIndexes`. */
function parseIndexes(text = ""): number[] {
  return text.split(",").flatMap((range) => {
    const [, from, to = from] = /^(\d+)(?:-(\d+))?$/.exec(range) ?? [];
    if (from === undefined) return [];
    return Array.from({ length: Number(to) - Number(from) + 1 }, (_, offset) => Number(from) + offset);
  });
}

// Pod failure policy and success policy of Jobs, as in kube-controller-manager 1.36.

/** Effect of a failed Pod on its Job. */
interface FailureVerdict {
  /** True if it counts towards the backoff limit. */
  counts: boolean;
  failsIndex: boolean;
  /** Message if the whole Job fails. */
  failsJob?: string;
}

/** Reports whether a Pod counts as failed. A terminating Pod does, unless podReplacementPolicy is Failed. */
function hasFailed({ status, metadata }: Pod, { spec }: Job): boolean {
  if (status?.phase === "Failed") return true;
  if (spec.podReplacementPolicy === "Failed") return false;
  return metadata.deletionTimestamp !== undefined && status?.phase !== "Succeeded";
}

/** Applies the podFailurePolicy of a Job to a failed Pod. */
function judgeFailure({ spec }: Job, pod: Pod): FailureVerdict {
  for (const [index, rule] of (spec.podFailurePolicy?.rules ?? []).entries()) {
    const match = matchOf(rule, pod);
    if (match === undefined) continue;
    if (rule.action === "Ignore") return { counts: false, failsIndex: false };
    const verdict = { counts: true, failsIndex: rule.action === "FailIndex" };
    const message = `${match} matching ${rule.action} rule at index ${index}`;
    return rule.action === "FailJob" ? { ...verdict, failsJob: message } : verdict;
  }
  return { counts: true, failsIndex: false };
}

function matchOf({ onExitCodes, onPodConditions }: FailureRule, { metadata, status }: Pod): string | undefined {
  const where = `${metadata.namespace}/${metadata.name}`;
  if (onExitCodes !== undefined) {
    const { containerName, operator, values } = onExitCodes;
    const all = [...(status?.containerStatuses ?? []), ...(status?.initContainerStatuses ?? [])];
    const container = all.find(({ name, state }) => {
      if (containerName !== undefined && containerName !== name) return false;
      const { exitCode = 0 } = state.terminated ?? {};
      return exitCode !== 0 && values.includes(exitCode) === (operator === "In");
    });
    if (container === undefined) return undefined;
    return `Container ${container.name} for pod ${where} failed with exit code ${container.state.terminated?.exitCode}`;
  }
  const condition = status?.conditions?.find((one) =>
    onPodConditions?.some(({ type, status = "True" }) => one.type === type && one.status === status),
  );
  return condition === undefined ? undefined : `Pod ${where} has condition ${condition.type}`;
}

/** Reports whether the index of a failed Pod has exceeded backoffLimitPerIndex. */
function failsIndex(job: Job, pod: Pod): boolean {
  const verdict = judgeFailure(job, pod);
  if (verdict.failsIndex) return true;
  return verdict.counts && failuresBefore(pod).counted >= (job.spec.backoffLimitPerIndex ?? Infinity);
}

/** Returns a message with the rule of the successPolicy that is met, or undefined. */
export function metSuccessRule({ spec }: Job, succeeded: ReadonlySet<number>): string | undefined {
  if (succeeded.size === 0) return undefined;
  const rule = (spec.successPolicy?.rules ?? []).findIndex(({ succeededIndexes, succeededCount }) => {
    const required = succeededIndexes === undefined ? undefined : parseIndexes(succeededIndexes);
    const met = required === undefined ? succeeded.size : required.filter((index) => succeeded.has(index)).length;
    return met >= (succeededCount ?? required?.length ?? Infinity);
  });
  return rule < 0 ? undefined : `Matched rules at index ${rule}`;
}

/** The finished Pods of a Job, including those counted in earlier reconciles. */
export interface Tally {
  active: Pod[];
  terminating: Pod[];
  succeeded: number;
  /** Failures that count towards the backoff limit. */
  failed: number;
  succeededIndexes: ReadonlySet<number>;
  failedIndexes: ReadonlySet<number>;
  /** Terminated Pods that are not counted in the status yet. */
  ended: Pod[];
  /** Pods in `ended` that stay uncounted until a replacement Pod has inherited the failures of their index; by index. */
  replaced: ReadonlyMap<number, Pod>;
  /** Message if a Pod makes the Job fail. */
  failure: string | undefined;
}

/** Counts the finished Pods. The status already includes the Pods in `counted`. */
export function tallyOf(job: Job, pods: Pod[], counted: ReadonlySet<string>): Tally {
  const { spec, status } = job;
  const tracked = pods.filter(
    ({ metadata }) => metadata.finalizers?.includes(TRACKING) === true && !counted.has(metadata.uid),
  );
  const good = tracked.filter((pod) => pod.status?.phase === "Succeeded");
  const bad = tracked.filter((pod) => hasFailed(pod, job));
  const verdicts = bad.map((pod) => judgeFailure(job, pod));
  const completions = spec.completions ?? 0;
  const isIndexed = spec.completionMode === "Indexed";
  const indexesOf = (of: Pod[]) => of.map(indexOf).filter((index) => index !== undefined && index < completions);
  const succeededIndexes = new Set([...parseIndexes(status?.completedIndexes), ...indexesOf(good)] as number[]);
  const failedIndexes = new Set<number>(parseIndexes(status?.failedIndexes));
  if (spec.backoffLimitPerIndex !== undefined)
    for (const index of indexesOf(bad.filter((pod) => failsIndex(job, pod)))) failedIndexes.add(index as number);
  return {
    active: pods.filter(isActive),
    terminating: pods.filter((pod) => !isFinished(pod) && pod.metadata.deletionTimestamp !== undefined),
    succeeded: isIndexed ? succeededIndexes.size : (status?.succeeded ?? 0) + good.length,
    failed: (status?.failed ?? 0) + verdicts.filter(({ counts }) => counts).length,
    ...{ succeededIndexes, failedIndexes },
    ended: [...good, ...bad],
    replaced: replacedPods(job, {
      pods,
      bad,
      isOpen: (index) => !succeededIndexes.has(index) && !failedIndexes.has(index),
    }),
    failure: verdicts.find(({ failsJob }) => failsJob !== undefined)?.failsJob,
  };
}

function replacedPods(
  { spec }: Job,
  { pods, bad, isOpen }: { pods: Pod[]; bad: Pod[]; isOpen: (index: number) => boolean },
): Map<number, Pod> {
  const replaced = new Map<number, Pod>();
  if (spec.backoffLimitPerIndex === undefined) return replaced;
  for (const pod of bad) {
    const index = indexOf(pod);
    if (index === undefined || !isOpen(index)) continue;
    const isLatest = pods.every((other) => indexOf(other) !== index || turnOf(other) <= turnOf(pod));
    if (isLatest) replaced.set(index, pod);
  }
  return replaced;
}

function turnOf(pod: Pod): number {
  const { counted, ignored } = failuresBefore(pod);
  return counted + ignored;
}

/** Returns the failures of an index including that of the replaced Pod. */
export function failuresAfter(job: Job, pod: Pod | undefined): IndexFailures {
  if (pod === undefined) return { counted: 0, ignored: 0 };
  const { counted, ignored } = failuresBefore(pod);
  return judgeFailure(job, pod).counts ? { counted: counted + 1, ignored } : { counted, ignored: ignored + 1 };
}
