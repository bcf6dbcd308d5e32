import { messageOf } from "../base/logger.js";
import type { Clock } from "../base/clock.js";
import type { KubernetesObject, ObjectKey } from "../base/kubernetes-object.js";
import type {
  Context,
  Expectation,
  ExpectationArguments,
  ExpectationResult,
  Expectations,
} from "../workflow/definition/context.js";

interface ExpectationRegistryOptions {
  readonly clock: Clock;
  /** Asks for a primary to be reconciled: what was expected of it did not come in time. */
  onTimeout(primary: ObjectKey): void;
}

type AnyExpectation = Expectation<never>;
type Arguments = ExpectationArguments<KubernetesObject>;

interface Kept {
  readonly expectation: AnyExpectation;
  isTimedOut: boolean;
  cancel(): void;
}

/**
 * What the reconciles of one controller wait for across their runs, one expectation for each primary at most (JOSDK ExpectationManager).
 *
 * Unlike there, a timeout causes a reconcile, and what is expected of a primary that is gone is forgotten.
 */
export class ExpectationRegistry {
  readonly #options: ExpectationRegistryOptions;
  readonly #kept = new Map<ObjectKey, Kept>();
  #isClosed = false;

  constructor(options: ExpectationRegistryOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#kept.size;
  }

  get(primary: ObjectKey): AnyExpectation | undefined {
    return this.#kept.get(primary)?.expectation;
  }

  /** Expects something of a primary from now on, in place of what was expected before. */
  set(primary: ObjectKey, expectation: AnyExpectation): void {
    check(expectation);
    this.forget(primary);
    // A reconcile that was given up when the controller stopped may still get here.
    if (this.#isClosed) return;
    const expire = () => {
      kept.isTimedOut = true;
      this.#options.onTimeout(primary);
    };
    const cancel = this.#options.clock.schedule(expectation.timeoutMs, expire);
    const kept: Kept = { expectation, isTimedOut: false, cancel };
    this.#kept.set(primary, kept);
  }

  /** Tells what became of the expectation; a fulfilled one is forgotten, also if that was noticed after its time. */
  async check(primary: ObjectKey, args: Arguments): Promise<ExpectationResult | undefined> {
    const kept = this.#kept.get(primary);
    if (kept === undefined) return undefined;
    const { name } = kept.expectation;
    if (!(await isFulfilled(kept.expectation, args)))
      return { name, status: kept.isTimedOut ? "timedOut" : "notYetFulfilled" };
    // It may have been replaced meanwhile.
    if (this.#kept.get(primary) === kept) this.forget(primary);
    return { name, status: "fulfilled" };
  }

  forget(primary: ObjectKey): void {
    this.#kept.get(primary)?.cancel();
    this.#kept.delete(primary);
  }

  /** Forgets everything, and takes nothing any more. */
  close(): void {
    this.#isClosed = true;
    for (const primary of [...this.#kept.keys()]) this.forget(primary);
  }
}

/** Returns what one reconcile sees of the expectations of its controller. */
export function expectationsOf(
  registry: ExpectationRegistry,
  key: ObjectKey,
  args: { readonly primary: KubernetesObject; readonly context: Context },
): Expectations<KubernetesObject> {
  // The context is made for this primary, so it fits.
  const fitting = args as Arguments;
  return {
    get current() {
      return registry.get(key)?.name;
    },
    expect: (expectation) => registry.set(key, expectation as AnyExpectation),
    async expectUnlessFulfilled(expectation) {
      check(expectation as AnyExpectation);
      if (await isFulfilled(expectation as AnyExpectation, fitting)) return false;
      registry.set(key, expectation as AnyExpectation);
      return true;
    },
    async check(name) {
      return name !== undefined && registry.get(key)?.name !== name ? undefined : registry.check(key, fitting);
    },
    remove: () => registry.forget(key),
  };
}

function check({ name, timeoutMs, isFulfilled }: AnyExpectation): void {
  const fail = (problem: string) => new TypeError(`an expectation ${problem}`);
  if (typeof name !== "string" || name === "") throw fail("needs a name, by which its result is told");
  if (typeof isFulfilled !== "function") throw fail(`needs a function isFulfilled: "${name}" has none`);
  if (!(Number.isFinite(timeoutMs) && timeoutMs > 0))
    throw fail(`needs a timeoutMs of more than 0: "${name}" has ${String(timeoutMs)}`);
}

async function isFulfilled({ name, isFulfilled }: AnyExpectation, args: Arguments): Promise<boolean> {
  try {
    return await isFulfilled(args as never);
  } catch (error) {
    throw new Error(`expectation "${name}": ${messageOf(error)}`, { cause: error });
  }
}
