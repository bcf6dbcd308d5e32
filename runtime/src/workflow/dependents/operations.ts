import type { DeletionOptions } from "../definition/operations.js";

/** An own `create`, `update` or `delete` of a dependent, with what it is called with besides `next`. */
export interface OwnOperation {
  readonly name: string;
  readonly call: (args: never) => unknown;
  readonly args: object;
}

/**
 * Calls an own operation of a dependent. Its `next` does `work`, at most once, and only while the operation runs. Returns what `work` did;
 * `failed` if the operation caught the error of `work`.
 */
export async function callOwn<Result>(
  { name, call, args }: OwnOperation,
  work: (options?: DeletionOptions) => Promise<Result>,
): Promise<Result | "notCalled" | "failed"> {
  let done: Promise<Result> | undefined;
  let isOver = false;
  const next = async (options?: DeletionOptions): Promise<void> => {
    if (isOver) throw new Error(`next() was called after ${name}() returned; await it there`);
    await (done ??= work(options));
  };
  await call({ ...args, next } as never);
  isOver = true;
  return done === undefined ? "notCalled" : (done as Promise<Result>).catch(() => "failed" as const);
}
