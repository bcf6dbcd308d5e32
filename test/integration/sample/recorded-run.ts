import {
  createOperator,
  type ApiClient,
  type Operator,
  type OperatorOptions,
  type ReconcileEvent,
  type RequestObservation,
} from "@gen-operator/runtime";

/** An operator of a sample, and what it did. */
export interface RecordedRun extends AsyncDisposable {
  readonly operator: Operator;
  readonly client: ApiClient;
  readonly events: ReconcileEvent[];
  /** Every request to the API server but watches, in order: `METHOD PATH`. */
  readonly requests: string[];
}

/** Starts an operator that is recorded; `shorten` says how the path of a request is written down. */
export async function startRecordedRun(
  options: Omit<OperatorOptions, "observer" | "onRequest">,
  shorten = (path: string) => path,
): Promise<RecordedRun> {
  const events: ReconcileEvent[] = [];
  const requests: string[] = [];
  const operator = createOperator({
    ...options,
    observer: (event) => void events.push(event),
    onRequest: ({ method, path }: RequestObservation) => void requests.push(`${method} ${shorten(path)}`),
  });
  const { client } = await operator.start();
  const dispose = () => operator[Symbol.asyncDispose]();
  return { operator, client, events, requests, [Symbol.asyncDispose]: dispose };
}
