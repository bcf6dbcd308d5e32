import { type Pod, isActive, isFinished } from "../pods/pod.js";
import type { Workload, WorkloadSpec, WorkloadStatus } from "../workloads/workload.js";

/** What is read from the spec of a Job. */
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

/** What a failed Pod means if the rule matches it. */
interface FailureRule {
  action: "FailJob" | "FailIndex" | "Ignore" | "Count";
  onExitCodes?: { containerName?: string; operator: "In" | "NotIn"; values: number[] };
  onPodConditions?: { type: string; status?: string }[];
}

/** A Job. */
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

/** The condition by which a Job is over: Complete or Failed. */
export function endOf({ status }: Job): { type: string; lastTransitionTime: string } | undefined {
  return status?.conditions?.find(
    ({ type, status }) => status === "True" && (type === "Complete" || type === "Failed"),
  );
}

/** The label and the annotation that tell which part of an indexed Job a Pod does. */
export const INDEX = "batch.kubernetes.io/job-completion-index";
/** The finalizer of a Pod that its Job has yet to count. */
export const TRACKING = "batch.kubernetes.io/job-tracking";
const FAILURES = "batch.kubernetes.io/job-index-failure-count";
const IGNORED = "batch.kubernetes.io/job-index-ignored-failure-count";

/** The index of a Pod of an indexed Job. */
export function indexOf({ metadata }: Pod): number | undefined {
  const index = metadata.annotations?.[INDEX];
  return index === undefined ? undefined : Number(index);
}

/** How often the index of a Pod has failed before it, and how often that did not count. */
export interface IndexFailures {
  counted: number;
  ignored: number;
}

/** Reads the failures before a Pod. */
function failuresBefore({ metadata }: Pod): IndexFailures {
  const count = (name: string) => Number(metadata.annotations?.[name] ?? 0) || 0;
  return { counted: count(FAILURES), ignored: count(IGNORED) };
}

/** The annotations from which `failuresBefore` reads. */
export function failureAnnotations({ counted, ignored }: IndexFailures): Record<string, string> {
  return { [FAILURES]: String(counted), ...(ignored === 0 ? {} : { [IGNORED]: String(ignored) }) };
}

/** `[0, 1, 2, 5]` as `0-2,5`. */
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

/** Reads what `formatIndexes` writes. */
function parseIndexes(text = ""): number[] {
  return text.split(",").flatMap((range) => {
    const [, from, to = from] = /^(\d+)(?:-(\d+))?$/.exec(range) ?? [];
    if (from === undefined) return [];
    return Array.from({ length: Number(to) - Number(from) + 1 }, (_, offset) => Number(from) + offset);
  });
}

// What the failure of a Pod and the success of indexes mean for a Job, as in kube-controller-manager 1.36.

/** What a failed Pod means. */
interface FailureVerdict {
  /** Does it count towards the backoff limit? */
  counts: boolean;
  failsIndex: boolean;
  /** Why the whole Job fails. */
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

/** Has the index of a failed Pod used up its backoffLimitPerIndex? */
function failsIndex(job: Job, pod: Pod): boolean {
  const verdict = judgeFailure(job, pod);
  if (verdict.failsIndex) return true;
  return verdict.counts && failuresBefore(pod).counted >= (job.spec.backoffLimitPerIndex ?? Infinity);
}

/** Says which rule of the successPolicy holds. */
export function metSuccessRule({ spec }: Job, succeeded: ReadonlySet<number>): string | undefined {
  if (succeeded.size === 0) return undefined;
  const rule = (spec.successPolicy?.rules ?? []).findIndex(({ succeededIndexes, succeededCount }) => {
    const required = succeededIndexes === undefined ? undefined : parseIndexes(succeededIndexes);
    const met = required === undefined ? succeeded.size : required.filter((index) => succeeded.has(index)).length;
    return met >= (succeededCount ?? required?.length ?? Infinity);
  });
  return rule < 0 ? undefined : `Matched rules at index ${rule}`;
}

// What the Pods of a Job have come to.

/** The finished Pods of a Job, including those counted in earlier reconciles. */
export interface Tally {
  active: Pod[];
  terminating: Pod[];
  succeeded: number;
  /** The failures that count. */
  failed: number;
  succeededIndexes: ReadonlySet<number>;
  failedIndexes: ReadonlySet<number>;
  /** Pods that have ended and whose Job has yet to count them. */
  ended: Pod[];
  /** Those among them that wait until another Pod takes over the failures of their index; by index. */
  replaced: ReadonlyMap<number, Pod>;
  /** Why a Pod makes the Job fail. */
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

/** The failures of an index with that of the Pod that is replaced. */
export function failuresAfter(job: Job, pod: Pod | undefined): IndexFailures {
  if (pod === undefined) return { counted: 0, ignored: 0 };
  const { counted, ignored } = failuresBefore(pod);
  return judgeFailure(job, pod).counts ? { counted: counted + 1, ignored } : { counted, ignored: ignored + 1 };
}
