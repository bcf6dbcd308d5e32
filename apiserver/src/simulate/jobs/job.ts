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
}

/** A Job. */
export interface Job extends Workload<JobSpec> {
  status?: WorkloadStatus & {
    startTime?: string;
    completionTime?: string;
    completedIndexes?: string;
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
