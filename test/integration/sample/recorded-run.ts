import type { ApiClient, OperatorOptions } from "@gen-operator/runtime";
import { createRecordedOperator, type RecordedOperator } from "../../support/runtime/recorded-operator.js";

/** An operator of a sample that runs, with its client; its requests are without their status. */
export interface RecordedRun extends RecordedOperator {
  readonly client: ApiClient;
}

/** Starts an operator that is recorded; `shorten` says how the path of a request is written down. */
export async function startRecordedRun(
  options: Omit<OperatorOptions, "observer" | "onRequest">,
  shorten = (path: string) => path,
): Promise<RecordedRun> {
  const recorded = createRecordedOperator(options, ({ method, path }) => `${method} ${shorten(path)}`);
  const operator = await recorded.operator.start();
  return { ...recorded, operator, client: operator.client };
}
