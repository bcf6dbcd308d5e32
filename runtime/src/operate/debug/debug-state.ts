// What GET /debug/state tells: who waits for what. It never has the contents of objects; messages of errors about Secrets come without values.
import type { ControllerActivity, InformerActivity } from "../../base/activity.js";
import type { ObjectKey } from "../../base/kubernetes-object.js";
import type { ControllerDetails, Listed } from "../../schedule/details/controller-details.js";
import type { ControllerHealth, OperatorHealth } from "../health.js";

/** What a controller does, and knows of its primaries. */
export type ControllerState = Pick<ControllerActivity, "submissions" | "maxRunning"> &
  ControllerDetails & {
    /** The primaries that somebody has paused. */
    readonly paused: Listed<ObjectKey>;
  };

/** What the state of an operator is read from. */
export interface StateSubject {
  health(): OperatorHealth;
  /** By the names of controllers; empty until the operator has found its API server. */
  details(): { readonly [controller: string]: ControllerState };
  informers(): readonly InformerActivity[];
  /** The name of the Lease; undefined without leader election. */
  leadership(): { readonly lease: string } | undefined;
}

/** What a controller does and knows, with what is wrong with it. */
export type ToldController = Partial<ControllerHealth> & Partial<ControllerState>;

/** A list-watch. */
export interface ToldWatch extends Omit<InformerActivity, "receivedAt"> {
  /** How long ago it brought anything; absent before. */
  readonly lastEventAgeMs?: number;
}

/** What an operator does at one moment. */
export interface OperatorState {
  /** ISO 8601 */
  readonly time: string;
  readonly status: OperatorHealth["status"];
  readonly leadership?: OperatorHealth["leadership"] & { readonly lease?: string };
  readonly controllers: { readonly [name: string]: ToldController };
  readonly watches: readonly ToldWatch[];
}

/** Reads the state of an operator. */
export function stateOf(subject: StateSubject, now = performance.now()): OperatorState {
  const { status, controllers, leadership } = subject.health();
  const lease = subject.leadership()?.lease;
  const details = subject.details();
  const names = new Set([...Object.keys(controllers), ...Object.keys(details)]);
  const told = [...names].map((name): [string, ToldController] => [name, { ...controllers[name], ...details[name] }]);
  return {
    ...{ time: new Date().toISOString(), status },
    ...(leadership !== undefined && { leadership: { ...(lease !== undefined && { lease }), ...leadership } }),
    controllers: Object.fromEntries(told),
    watches: subject.informers().map((each) => toldWatch(each, now)),
  };
}

function toldWatch({ receivedAt, ...watch }: InformerActivity, now: number): ToldWatch {
  return { ...watch, ...(receivedAt !== undefined && { lastEventAgeMs: Math.max(0, Math.round(now - receivedAt)) }) };
}
