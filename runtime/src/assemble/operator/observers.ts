import { messageOf, type Logger } from "../../base/logger.js";
import { callUnawaited } from "../../base/promises.js";

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

/** Returns an observer that tells two, of which either may be absent. */
export function both<Observation>(
  first: Observer<Observation> | undefined,
  second: Observer<Observation> | undefined,
): Observer<Observation> | undefined {
  if (first === undefined || second === undefined) return first ?? second;
  return (observation) => {
    first(observation);
    second(observation);
  };
}
