import { messageOf, type Logger } from "../../base/logger.js";
import { callUnawaited } from "../../base/promises.js";
import { reconcileChannel } from "../../operate/channels.js";
import type { OperatorMetrics } from "../../operate/metrics/operator-metrics.js";
import type { ReconcileEvent, ReconcileObserver } from "../../schedule/reconcile-scope.js";

/** Is told of something that happened. */
export type Observer<Observation> = (observation: Observation) => void;

/** Returns an observer that calls a function of the user, which may throw or be asynchronous; undefined if there is none. */
export function guarded<Observation>(
  observe: Observer<Observation> | undefined,
  what: string,
  logger: Logger,
): Observer<Observation> | undefined {
  if (observe === undefined) return undefined;
  const onFailure = (error: unknown) => logger.error({}, `the observer of ${what} failed: ${messageOf(error)}`);
  return (observation) => callUnawaited(() => observe(observation), { onFailure });
}

/** Returns an observer that tells all of these, any of which may be absent; undefined if there is none. */
export function all<Observation>(
  ...observers: readonly (Observer<Observation> | undefined)[]
): Observer<Observation> | undefined {
  const present = observers.filter((each) => each !== undefined);
  if (present.length <= 1) return present[0];
  return (observation) => present.forEach((observe) => observe(observation));
}

/** Returns what is told of every reconcile: the metrics, the user's observer, and tools that subscribed to the channel. */
export function reconcileObserverOf(
  metrics: OperatorMetrics | undefined,
  observer: ReconcileObserver | undefined,
  logger: Logger,
): ReconcileObserver | undefined {
  const publish = reconcileChannel.hasSubscribers
    ? (event: ReconcileEvent) => reconcileChannel.publish(event)
    : undefined;
  const count = metrics && ((event: ReconcileEvent) => metrics.observeReconcile(event));
  return all(count, guarded(observer, "reconciles", logger), publish);
}
