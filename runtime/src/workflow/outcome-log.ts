import { messageOf, type Logger } from "../base/logger.js";
import type { ConditionResults, DependentOutcome } from "./workflow-result.js";

/** Writes what a run did with a dependent, and which conditions it asked, at level debug. */
export function logOutcome(logger: Logger, dependent: string, outcome: DependentOutcome): void {
  const { kind, conditions = {}, items } = outcome;
  const asked = metOf(conditions);
  const fields = { dependent, outcome: kind, ...(asked.length > 0 && { conditions: Object.fromEntries(asked) }) };
  logger.debug(fields, `dependent "${dependent}" ${textOf(outcome)}`);
  for (const [key, item] of Object.entries(items ?? {})) logOutcome(logger, `${dependent}[${key}]`, item);
}

function textOf(outcome: DependentOutcome): string {
  switch (outcome.kind) {
    case "created":
    case "updated":
      return `was ${outcome.kind}${readiness(outcome)}`;
    case "unchanged":
      return outcome.postponed === undefined
        ? `is as desired${readiness(outcome)}`
        : "is not written for now: it is written over and over";
    case "waiting":
      if (outcome.because !== undefined) return `waits: ${outcome.because}`;
      return outcome.for.length === 0 ? "waits" : `waits for ${outcome.for.join(", ")}`;
    case "deleted":
      return `must not exist, because ${outcome.because}: ${outcome.isGone ? "it is gone" : "it is being deleted"}`;
    case "inactive":
      return "is inactive: its activationCondition does not hold";
    case "left":
      return "is left to the garbage collector, or orphaned";
    case "failed":
      return `failed: ${messageOf(outcome.error)}`;
  }
}

function readiness({ isReady }: { readonly isReady: boolean }): string {
  return isReady ? "" : ", and not ready";
}

function metOf(conditions: ConditionResults): readonly (readonly [name: string, isMet: boolean])[] {
  return Object.entries(conditions).flatMap(([name, result]) => (result === undefined ? [] : [[name, result.isMet]]));
}
