import { type Outcome, readSimulation } from "../../simulate-annotations.js";
import type { Pod } from "./pod.js";

export type { Outcome };

/** How a simulated Pod fares. */
export interface PodPlan {
  outcome: Outcome;
  /** The exit code of containers that fail. */
  exitCode: number;
  /** How long it takes to become ready. */
  readyAfterMs: number;
}

/** Reads how a Pod fares. Default: the Pods of Jobs succeed, all others run. Throws an Error for annotations that are misspelt. */
export function planOf({ metadata }: Pod, delayMs: number): PodPlan {
  const isOfJob = metadata.ownerReferences?.some(({ kind, controller }) => kind === "Job" && controller === true);
  return {
    outcome: isOfJob === true ? "succeed" : "run",
    ...{ exitCode: 1, readyAfterMs: delayMs },
    ...readSimulation(metadata.annotations),
  };
}

/** Says which annotation is misspelt. */
export function planProblem(pod: Pod): string | undefined {
  try {
    planOf(pod, 0);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}
