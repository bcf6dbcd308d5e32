// What the failure of a Pod and the success of indexes mean for a Job, as in kube-controller-manager 1.36.
import type { Pod } from "../pods/pod.js";
import { type FailureRule, type Job, failuresBefore, parseIndexes } from "./job.js";

/** What a failed Pod means. */
export interface FailureVerdict {
  /** Does it count towards the backoff limit? */
  counts: boolean;
  failsIndex: boolean;
  /** Why the whole Job fails. */
  failsJob?: string;
}

/** Reports whether a Pod counts as failed. A terminating Pod does, unless podReplacementPolicy is Failed. */
export function hasFailed({ status, metadata }: Pod, { spec }: Job): boolean {
  if (status?.phase === "Failed") return true;
  if (spec.podReplacementPolicy === "Failed") return false;
  return metadata.deletionTimestamp !== undefined && status?.phase !== "Succeeded";
}

/** Applies the podFailurePolicy of a Job to a failed Pod. */
export function judgeFailure({ spec }: Job, pod: Pod): FailureVerdict {
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
export function failsIndex(job: Job, pod: Pod): boolean {
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
