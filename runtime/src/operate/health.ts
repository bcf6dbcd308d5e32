import type { ControllerActivity, InformerActivity, PostponedWrite } from "../base/activity.js";
import type { SourceHealth, WaitingPrimaries } from "../base/activity.js";
import type { LeadershipState } from "./lease/leadership.js";
import type { ControllerDetails } from "../schedule/details/controller-details.js";
import type { Suspect } from "../schedule/dispatch/suspects.js";
import type { GivenUp } from "../schedule/reconcile-scope.js";

/** How a controller is doing. */
export interface ControllerHealth {
  /** Whether all that it watches is known, as far as it can be, so that it reconciles, or does so as soon as its operator leads. */
  readonly isStarted: boolean;
  /** The primaries that are not reconciled before more is known of what may belong to them. */
  readonly waiting: WaitingPrimaries;
  /** How each event source is doing, by name. */
  readonly sources: { readonly [name: string]: SourceHealth };
  /** The primaries whose last reconcile failed without a quick retry left; they leave the status of the operator as it is. */
  readonly givenUp: GivenUp;
  /**
   * Primaries whose deletion is blocked, or whose objects remain, until a user acts as `reason` says. They do not change the status of the operator.
   */
  readonly stuck: WaitingPrimaries;
  /** The writes that are postponed now, because their objects were written over and over; they leave the status as it is. */
  readonly postponed: readonly PostponedWrite[];
}

/** How an operator is doing. */
export interface OperatorHealth {
  /** `starting` until every controller reconciles, or could if it led; `unhealthy` if any event source is. */
  readonly status: "stopped" | "starting" | "healthy" | "unhealthy";
  /** The controllers, by name. */
  readonly controllers: { readonly [name: string]: ControllerHealth };
  /** Who leads; absent without leader election. */
  readonly leadership?: LeadershipState | undefined;
}

/** A controller as those look at it who operate the operator. */
export interface ObservedController extends Omit<ControllerHealth, "sources"> {
  readonly definition: { readonly name: string };
  /** What keeps it from starting, or is wrong with its sources. */
  readonly failures: readonly string[];
  /** Why it can reconcile primaries in none of its namespaces; undefined if it can in some. */
  readonly problem: string | undefined;
  /** How many of its primaries somebody has paused. */
  readonly paused: number;
  health(): ControllerHealth["sources"];
  activity(): ControllerActivity;
  details(): ControllerDetails;
}

/** An operator as those look at it who operate it. */
export interface ObservedOperator {
  health(): OperatorHealth;
  /** None until the operator has found its API server. */
  controllers(): readonly ObservedController[];
  informers(): readonly InformerActivity[];
  /** The primaries that are reconciled last, as their functions blocked the event loop. Default: none */
  suspects?(): readonly Suspect[];
}

/** Returns the health of an operator from that of its controllers, of which there are `count` once all are there; it is stopped if none is given. */
export function healthOf(controllers: readonly ObservedController[] | undefined, count: number): OperatorHealth {
  if (controllers === undefined) return { status: "stopped", controllers: {} };
  const all = controllers.map((each) => {
    const { isStarted, waiting, givenUp, stuck, postponed } = each;
    return [each.definition.name, { isStarted, sources: each.health(), waiting, givenUp, stuck, postponed }] as const;
  });
  const isComplete = all.length === count && all.every(([, { isStarted }]) => isStarted);
  const sources = all.flatMap(([, health]) => Object.values(health.sources));
  const isUnhealthy = sources.some(({ status }) => status === "unhealthy");
  const status = isUnhealthy ? "unhealthy" : isComplete ? "healthy" : "starting";
  return { status, controllers: Object.fromEntries(all) };
}
