import type { Pod } from "../pods/pod.js";
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
export interface FailureRule {
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
export function failuresBefore({ metadata }: Pod): IndexFailures {
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
export function parseIndexes(text = ""): number[] {
  return text.split(",").flatMap((range) => {
    const [, from, to = from] = /^(\d+)(?:-(\d+))?$/.exec(range) ?? [];
    if (from === undefined) return [];
    return Array.from({ length: Number(to) - Number(from) + 1 }, (_, offset) => Number(from) + offset);
  });
}
