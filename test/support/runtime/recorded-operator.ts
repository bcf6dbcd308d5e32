// The operator of a test with a record of what it does: the one harness of all tests of operators.
import { waitFor } from "#apiserver/wait-for.js";
import { isRealApiServer } from "../api/api-server.js";
import { messageOf } from "#runtime/base/logger.js";
import { type ConnectedOperator, type Operator, type OperatorOptions, createOperator } from "#runtime/api/operator.js";
import type { ReconcileEvent } from "#runtime/queue/controller.js";

type Request = Parameters<NonNullable<OperatorOptions["onRequest"]>>[0];

/** An operator and what it did. */
export interface RecordedOperator<Recorded extends Operator = ConnectedOperator> extends AsyncDisposable {
  readonly operator: Recorded;
  /** Every reconcile that ended. */
  readonly events: ReconcileEvent[];
  /** Every request but watches: method, path without query, status. */
  readonly requests: string[];
  /** Every line of the log: level and message. */
  readonly logs: string[];
  /** Waits until it has neither reconciled nor asked for anything for a while. Default: 150, and 500 on a real API server. */
  quiet(quietMs?: number): Promise<void>;
}

const INTERVAL_MS = 20;
/** A reconcile that is held back by a test neither ends nor asks for anything; another one does within this time. */
const BUSY_MS = 1_000;
const lineOfRequest = ({ method, path, status }: Request) => `${method} ${path.replace(/\?.*/, "")} ${status}`;

/**
 * Returns the reconciles that failed, each with its primary and its error; but for those that were under way when their primary was
 * deleted, which ends them.
 */
export function failuresOf(events: readonly ReconcileEvent[]): string[] {
  return events
    .filter(({ error, isEnded = false }) => error !== undefined && !isEnded)
    .map(({ primary, kind, error }) => `${primary} ${kind}: ${messageOf(error)}`);
}

/** Creates an operator that is recorded and not started; disposing it stops it. `lineOf` says how a request is written down. */
export function createRecordedOperator(
  options: OperatorOptions & Required<Pick<OperatorOptions, "connection">>,
  lineOf?: (request: Request) => string,
): RecordedOperator;
export function createRecordedOperator(
  options: OperatorOptions,
  lineOf?: (request: Request) => string,
): RecordedOperator<Operator>;
export function createRecordedOperator(options: OperatorOptions, lineOf = lineOfRequest): RecordedOperator<Operator> {
  const events: ReconcileEvent[] = [];
  const requests: string[] = [];
  const logs: string[] = [];
  const log = (level: string) => (_: object, message: string) => void logs.push(`${level} ${message}`);
  const operator = createOperator({
    logger: { debug: log("debug"), info: log("info"), warn: log("warn"), error: log("error") },
    observer: (event) => void events.push(event),
    onRequest: (request) => void requests.push(lineOf(request)),
    stopTimeoutMs: 2_000,
    ...options,
  });
  // What does not lead keeps a queue, and runs nothing.
  const isBusy = () =>
    operator.health().status !== "stopped" &&
    options.controllers.some(({ name }) => operator.controller(name).counts().running > 0);
  return {
    ...{ operator, events, requests, logs },
    async quiet(quietMs = isRealApiServer ? 500 : 150) {
      let before = "";
      let since = 0;
      let looks = 0;
      // A busy machine may stop this process for that long: what came meanwhile is handled between two looks.
      const isQuiet = () => {
        const now = `${events.length} ${requests.length} ${isBusy()}`;
        if (now !== before) [before, since, looks] = [now, Date.now(), 0];
        const neededMs = isBusy() ? Math.max(quietMs, BUSY_MS) : quietMs;
        return Date.now() - since > neededMs && ++looks > neededMs / INTERVAL_MS;
      };
      // Less than a test has, so that what was waited for is named.
      await waitFor("nothing happens any more", isQuiet, { timeoutMs: 18_000, intervalMs: INTERVAL_MS });
    },
    [Symbol.asyncDispose]: async () => void (await operator.stop()),
  };
}
