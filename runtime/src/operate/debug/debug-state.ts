// What GET /debug/state tells: who waits for what. It never has the contents of objects; messages of errors about Secrets come without values.
import type { ControllerActivity, InformerActivity } from "../../base/activity.js";
import type { ControllerDetails } from "../../schedule/details/controller-details.js";
import type { ControllerHealth, ObservedOperator, OperatorHealth } from "../health.js";

/** What a controller does and knows, with what is wrong with it. */
export type ShownController = Partial<ControllerHealth> &
  Pick<ControllerActivity, "submissions" | "maxRunning"> &
  ControllerDetails;

/** A list-watch. */
export interface ShownWatch extends Omit<InformerActivity, "receivedAt"> {
  /** How long ago it brought anything; absent before. */
  readonly lastEventAgeMs?: number;
}

/** What an operator does at one moment. */
export interface OperatorState {
  /** ISO 8601 */
  readonly time: string;
  readonly status: OperatorHealth["status"];
  readonly leadership?: OperatorHealth["leadership"] & { readonly lease?: string };
  readonly controllers: { readonly [name: string]: ShownController };
  readonly watches: readonly ShownWatch[];
}

/** Reads the state of an operator. */
export function stateOf(operator: ObservedOperator, now = performance.now()): OperatorState {
  const { status, controllers, leadership } = operator.health();
  const lease = operator.leadership()?.lease;
  const shown = operator.controllers().map((each): [string, ShownController] => {
    const { name } = each.definition;
    return [name, { ...controllers[name], ...each.activity(), ...each.details() }];
  });
  return {
    ...{ time: new Date().toISOString(), status },
    ...(leadership !== undefined && { leadership: { ...(lease !== undefined && { lease }), ...leadership } }),
    controllers: Object.fromEntries(shown),
    watches: operator.informers().map((each) => shownWatch(each, now)),
  };
}

function shownWatch({ receivedAt, ...watch }: InformerActivity, now: number): ShownWatch {
  return { ...watch, ...(receivedAt !== undefined && { lastEventAgeMs: Math.max(0, Math.round(now - receivedAt)) }) };
}
