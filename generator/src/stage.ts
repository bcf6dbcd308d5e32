import { createHash } from "node:crypto";

/** Returns a digest of contents: two lists of contents have the same one only if they are the same. */
export function digestOf(...contents: readonly (string | Uint8Array)[]): string {
  const hash = createHash("sha256");
  // The length keeps what is in two contents from being taken for the same in other ones.
  for (const content of contents) hash.update(`${Buffer.byteLength(content)}:`).update(content);
  return hash.digest("base64url");
}

/** Returns everything that the result of a function depends on; undefined if nothing short stands for it. */
type InputsOf<Arguments extends readonly unknown[]> = (...args: Arguments) => readonly string[] | undefined;

/** A function whose results are kept. */
export interface CachedFunction<Arguments extends readonly unknown[], Result> {
  (...args: Arguments): Result | Awaited<Result>;
  /** Tells whether the result for some arguments is known. */
  isCached(...args: Arguments): boolean;
}

/**
 * Wraps a function as a stage, which returns the result of an earlier call with the same inputs, in this run or in an earlier one.
 *
 * Without inputs, the function is called each time. The result, or what it resolves to, has to be JSON and not undefined.
 */
export type Stage = <Arguments extends readonly unknown[], Result>(
  name: string,
  inputs: InputsOf<Arguments>,
  fn: (...args: Arguments) => Result,
) => CachedFunction<Arguments, Result>;

/** Calls the function each time. */
export const uncached: Stage = <Arguments extends readonly unknown[], Result>(
  _name: string,
  _inputs: InputsOf<Arguments>,
  fn: (...args: Arguments) => Result,
): CachedFunction<Arguments, Result> => Object.assign((...args: Arguments) => fn(...args), { isCached: () => false });

/** The results of stages, by the names of the stages and their inputs. */
export type StageResults = ReadonlyMap<string, unknown>;

/** Keeps the results of stages, of this run and of an earlier one. */
export class StageCache {
  readonly #earlier: StageResults;
  readonly #used = new Map<string, unknown>();

  constructor(earlier: StageResults = new Map()) {
    this.#earlier = earlier;
  }

  /** The results that this run has used. */
  get used(): StageResults {
    return this.#used;
  }

  readonly stage: Stage = <Arguments extends readonly unknown[], Result>(
    name: string,
    inputs: InputsOf<Arguments>,
    fn: (...args: Arguments) => Result,
  ): CachedFunction<Arguments, Result> => {
    const keyOf = (args: Arguments) => {
      const given = inputs(...args);
      return given === undefined ? undefined : `${name} ${digestOf(...given)}`;
    };
    const call = (...args: Arguments): Result | Awaited<Result> => {
      const key = keyOf(args);
      if (key === undefined) return fn(...args);
      if (this.#isKnown(key)) return this.#recall(key) as Awaited<Result>;
      const result = fn(...args);
      if (result instanceof Promise) return result.then((value) => this.#keep(key, value)) as Result;
      return this.#keep(key, result);
    };
    const isCached = (...args: Arguments) => {
      const key = keyOf(args);
      return key !== undefined && this.#isKnown(key);
    };
    return Object.assign(call, { isCached });
  };

  #isKnown(key: string): boolean {
    return this.#used.has(key) || this.#earlier.has(key);
  }

  #recall(key: string): unknown {
    return this.#used.has(key) ? this.#used.get(key) : this.#keep(key, this.#earlier.get(key));
  }

  #keep<Result>(key: string, result: Result): Result {
    this.#used.set(key, result);
    return result;
  }
}
