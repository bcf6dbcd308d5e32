import { messageOf } from "../base/logger.js";
import type { Clock } from "../base/clock.js";
import type { KubernetesObject, ObjectKey } from "../base/kubernetes-object.js";
import type { Expectation, ExpectationArguments, Expectations } from "../workflow/definition/context.js";

interface ExpectationRegistryOptions {
  readonly clock: Clock;
  /** Asks for a primary to be reconciled: what was expected of it did not come in time. */
  onTimeout(primary: ObjectKey): void;
}

type AnyExpectation = Expectation<KubernetesObject>;
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

  /** Returns what one reconcile of a primary sees. */
  of(primary: ObjectKey, args: Arguments): Expectations<KubernetesObject> {
    const current = () => this.#kept.get(primary);
    return {
      get current() {
        return current()?.expectation.name;
      },
      expect: (expectation) => this.#expect(primary, expectation),
      expectUnlessFulfilled: async (expectation) => {
        check(expectation);
        if (await isFulfilled(expectation, args)) return false;
        this.#expect(primary, expectation);
        return true;
      },
      check: async (wanted) => {
        const kept = current();
        if (kept === undefined || (wanted !== undefined && kept.expectation.name !== wanted)) return undefined;
        const { name } = kept.expectation;
        // One that is noticed after its time is fulfilled, too.
        if (!(await isFulfilled(kept.expectation, args)))
          return { name, status: kept.isTimedOut ? "timedOut" : "notYetFulfilled" };
        // It may have been replaced meanwhile.
        if (current() === kept) this.forget(primary);
        return { name, status: "fulfilled" };
      },
      remove: () => this.forget(primary),
    };
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

  #expect(primary: ObjectKey, expectation: AnyExpectation): void {
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
    return await isFulfilled(args);
  } catch (error) {
    throw new Error(`expectation "${name}": ${messageOf(error)}`, { cause: error });
  }
}
