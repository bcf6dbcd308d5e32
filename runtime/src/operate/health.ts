import type { SourceHealth } from "../base/health.js";
import type { GivenUp } from "../schedule/reconcile-scope.js";

/** How a controller is doing. */
export interface ControllerHealth {
  /** Whether all that it watches is known, so that it reconciles. */
  readonly isStarted: boolean;
  /** How each event source is doing, by name. */
  readonly sources: { readonly [name: string]: SourceHealth };
  /** The primaries whose last reconcile failed without a quick retry left; they leave the status of the operator as it is. */
  readonly givenUp: GivenUp;
}

/** How an operator is doing. */
export interface OperatorHealth {
  /** `starting` until every controller reconciles; `unhealthy` if any event source is. */
  readonly status: "stopped" | "starting" | "healthy" | "unhealthy";
  /** By name. */
  readonly controllers: { readonly [name: string]: ControllerHealth };
}

/** What is asked about its health. */
export interface HealthSubject {
  readonly definition: { readonly name: string };
  readonly isStarted: boolean;
  readonly givenUp: GivenUp;
  health(): { readonly [source: string]: SourceHealth };
}

/** Returns the health of an operator from that of its controllers; it is stopped if there are none. */
export function healthOf(controllers: readonly HealthSubject[] | undefined): OperatorHealth {
  if (controllers === undefined) return { status: "stopped", controllers: {} };
  const all = controllers.map((each) => [
    each.definition.name,
    { isStarted: each.isStarted, sources: each.health(), givenUp: each.givenUp },
  ]) satisfies [string, ControllerHealth][];
  return { status: statusOf(all.map(([, health]) => health)), controllers: Object.fromEntries(all) };
}

function statusOf(controllers: readonly ControllerHealth[]): OperatorHealth["status"] {
  const sources = controllers.flatMap((controller) => Object.values(controller.sources));
  if (sources.some(({ status }) => status === "unhealthy")) return "unhealthy";
  return controllers.length > 0 && controllers.every(({ isStarted }) => isStarted) ? "healthy" : "starting";
}
