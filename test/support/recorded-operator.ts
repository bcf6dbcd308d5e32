// The operator of a test with a record of what it does: the one harness of all tests of operators.
import { waitFor } from "#apiserver/wait-for.js";
import { createOperator, type ConnectedOperator, type Operator } from "#runtime/operator.js";
import type { OperatorOptions } from "#runtime/assemble/operator/operator-options.js";
import type { ReconcileEvent } from "#runtime/reconcile/reconcile-event.js";

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
  /** Waits until it has neither reconciled nor asked for anything for a while. Default: 150. */
  quiet(quietMs?: number): Promise<void>;
}

const lineOfRequest = ({ method, path, status }: Request) => `${method} ${path.replace(/\?.*/, "")} ${status}`;

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
  return {
    ...{ operator, events, requests, logs },
    async quiet(quietMs = 150) {
      let before = "";
      let since = Date.now();
      const isQuiet = () => {
        const now = `${events.length} ${requests.length}`;
        if (now !== before) [before, since] = [now, Date.now()];
        return Date.now() - since > quietMs;
      };
      // Less than a test has, so that what was waited for is named.
      await waitFor("nothing happens any more", isQuiet, { timeoutMs: 18_000 });
    },
    [Symbol.asyncDispose]: async () => void (await operator.stop()),
  };
}
