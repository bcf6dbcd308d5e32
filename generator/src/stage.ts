import { createHash } from "node:crypto";

/** Returns a digest of a list of contents. Different lists have different digests. */
export function digestOf(...contents: readonly (string | Uint8Array)[]): string {
  const hash = createHash("sha256");
  // The length prevents different splits of the same bytes from having the same digest.
  for (const content of contents) hash.update(`${Buffer.byteLength(content)}:`).update(content);
  return hash.digest("base64url");
}

/** Returns everything that determines the result of a function; undefined if the result cannot be cached. */
type InputsOf<Arguments extends readonly unknown[]> = (...args: Arguments) => readonly string[] | undefined;

/** A function with cached results. */
export interface CachedFunction<Arguments extends readonly unknown[], Result> {
  (...args: Arguments): Result | Awaited<Result>;
  /** Returns whether the result for the arguments is cached. */
  isCached(...args: Arguments): boolean;
}

/**
 * Wraps a function as a stage, which returns the cached result of an earlier call with the same inputs, in this run or an earlier one.
 *
 * Without inputs, the function is called every time. The result, or the value that it resolves to, must be JSON and not undefined.
 */
export type Stage = <Arguments extends readonly unknown[], Result>(
  name: string,
  inputs: InputsOf<Arguments>,
  fn: (...args: Arguments) => Result,
) => CachedFunction<Arguments, Result>;

/** A stage without a cache. */
export const uncached: Stage = <Arguments extends readonly unknown[], Result>(
  _name: string,
  _inputs: InputsOf<Arguments>,
  fn: (...args: Arguments) => Result,
): CachedFunction<Arguments, Result> => Object.assign((...args: Arguments) => fn(...args), { isCached: () => false });

/** Results of stages, by name and digest of the inputs. */
export type StageResults = ReadonlyMap<string, unknown>;

/** Caches the results of stages, starting with those of an earlier run. */
export class StageCache {
  readonly #earlier: StageResults;
  readonly #used = new Map<string, unknown>();

  constructor(earlier: StageResults = new Map()) {
    this.#earlier = earlier;
  }

  /** Results used by this run. */
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
