// Calls the user's own create, update and delete of a dependent, each with the runtime's as `next`.
import type { DeletionOptions, Operations } from "../definition/operations.js";
import { originOf } from "../step.js";
import type { DriverRun, WriteOutcome } from "./driver.js";

const keptIn = new WeakMap<object, Set<object>>();

/** Writes an object by the own `create` or `update` of its dependent; by `write` if it has none. */
export async function writeBy(
  operations: Operations | undefined,
  { run, desired, live }: { readonly run: DriverRun; readonly desired: object; readonly live: object | undefined },
  write: () => Promise<WriteOutcome>,
): Promise<WriteOutcome> {
  const [name, undone] = live === undefined ? (["create", "absent"] as const) : (["update", "unchanged"] as const);
  const operation = operations?.[name];
  if (operation === undefined) return write();
  if (operation === false) return undone;
  const next = new Next(name, write);
  await operation({ ...argumentsOf(run), desired, live, next: async () => void (await next.call()) } as never);
  // Whoever catches the error of a write, such as that of a field that cannot change, deletes the object to make it anew.
  return (await next.end()?.catch(() => "waiting" as const)) ?? undone;
}

/** Deletes an object by the own `delete` of its dependent; by `remove` if it has none. */
export async function removeBy(
  operation: Operations["delete"],
  { run, live }: { readonly run: DriverRun; readonly live: object },
  remove: (options?: DeletionOptions) => Promise<void>,
): Promise<void> {
  if (operation === false) return;
  if (operation === undefined) return remove();
  const next = new Next("delete", async (options?: DeletionOptions) => {
    await remove(options);
    return true;
  });
  await operation({
    ...argumentsOf(run),
    live,
    next: async (options?: DeletionOptions) => void (await next.call(options)),
  } as never);
  if ((await next.end()?.catch(() => undefined)) === undefined) noteKept(run.context, live);
}

/** Tells whether the own `delete` of a dependent left an object in this reconcile, so that nobody else deletes it. */
export function isKept(context: object | undefined, live: object): boolean {
  return context !== undefined && (keptIn.get(originOf(context))?.has(live) ?? false);
}

function noteKept(context: object, live: object): void {
  const origin = originOf(context);
  keptIn.set(origin, (keptIn.get(origin) ?? new Set()).add(live));
}

function argumentsOf({ primary, secondary, context }: DriverRun) {
  return { primary, secondary, context };
}

/** What the runtime does, at most once, and only while the function of the user runs. */
class Next<Options extends readonly unknown[], Result> {
  readonly #name: string;
  readonly #work: (...options: Options) => Promise<Result>;
  #done: Promise<Result> | undefined;
  #isOver = false;

  constructor(name: string, work: (...options: Options) => Promise<Result>) {
    this.#name = name;
    this.#work = work;
  }

  call(...options: Options): Promise<Result> {
    if (this.#isOver) throw new Error(`next() was called after ${this.#name}() returned; await it there`);
    return (this.#done ??= this.#work(...options));
  }

  end(): Promise<Result> | undefined {
    this.#isOver = true;
    return this.#done;
  }
}
