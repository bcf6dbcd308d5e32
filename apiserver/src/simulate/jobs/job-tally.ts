// What the Pods of a Job have come to.
import { type Pod, isActive, isFinished } from "../pods/pod.js";
import { type IndexFailures, type Job, TRACKING, failuresBefore, indexOf, parseIndexes } from "./job.js";
import { failsIndex, hasFailed, judgeFailure } from "./job-policies.js";

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
