// The harness for tests of operators: creates an operator that records its reconciles, requests, and log lines.
import { waitFor } from "#apiserver/wait-for.js";
import { isRealApiServer } from "../api/api-server.js";
import { messageOf } from "#runtime/base/logger.js";
import { type ConnectedOperator, type Operator, type OperatorOptions, createOperator } from "#runtime/api/operator.js";
import type { ReconcileEvent } from "#runtime/queue/controller.js";

type Request = Parameters<NonNullable<OperatorOptions["onRequest"]>>[0];

/** An operator with its records. */
export interface RecordedOperator<Recorded extends Operator = ConnectedOperator> extends AsyncDisposable {
  readonly operator: Recorded;
  /** All completed reconciles. */
  readonly events: ReconcileEvent[];
  /** All requests except watches: method, path without query, and status code. */
  readonly requests: string[];
  /** All log lines: level and message. */
  readonly logs: string[];
  /** Waits until there has been no reconcile or request for this time. Default: 150 ms, or 500 ms on a real API server */
  quiet(quietMs?: number): Promise<void>;
}

const INTERVAL_MS = 20;
/**
 * The minimum quiet time while a reconcile is in progress. A reconcile that a test blocks sends no requests, and any other one does within this time.
 */
const BUSY_MS = 1_000;
const lineOfRequest = ({ method, path, status }: Request) => `${method} ${path.replace(/\?.*/, "")} ${status}`;

/** Returns the failed reconciles with their primaries and errors, except reconciles that were aborted because their primary was deleted. */
export function failuresOf(events: readonly ReconcileEvent[]): string[] {
  return events
    .filter(({ error, isEnded = false }) => error !== undefined && !isEnded)
    .map(({ primary, kind, error }) => `${primary} ${kind}: ${messageOf(error)}`);
}

/** Creates an operator with records without starting it; disposing it stops the operator. `lineOf` formats a request. */
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
  // An operator that is not the leader queues keys without reconciling them.
  const isBusy = () =>
    operator.health().status !== "stopped" &&
    options.controllers.some(({ name }) => operator.controller(name).counts().running > 0);
  return {
    ...{ operator, events, requests, logs },
    async quiet(quietMs = isRealApiServer ? 500 : 150) {
      let before = "";
      let since = 0;
      let looks = 0;
      // A busy machine may pause this process for that long; count checks as well, so that pending events are processed between them.
      const isQuiet = () => {
        const now = `${events.length} ${requests.length} ${isBusy()}`;
        if (now !== before) [before, since, looks] = [now, Date.now(), 0];
        const neededMs = isBusy() ? Math.max(quietMs, BUSY_MS) : quietMs;
        return Date.now() - since > neededMs && ++looks > neededMs / INTERVAL_MS;
      };
      // Shorter than the timeout of a test, so that the error states what the test waited for.
      await waitFor("nothing happens any more", isQuiet, { timeoutMs: 18_000, intervalMs: INTERVAL_MS });
    },
    [Symbol.asyncDispose]: async () => void (await operator.stop()),
  };
}
