import { messageOf, type Logger } from "../base/logger.js";
import type { SourceHealth } from "../cluster/event-source.js";
import type { IndexFunction } from "../cluster/object-index.js";

// A reason with a line for each of thousands of objects helps nobody.
const MOST_REASONS = 3;

/** How an event source is doing, part by part: it is unhealthy while any part fails; the log gets one line when that begins and one when it ends. */
export class HealthRecord {
  readonly #source: string;
  readonly #problems = new Map<string, string>();
  /** What `guard` reported, by part: a function that fails for one object and works for the next would fill the log. */
  readonly #guarded = new Map<string, string>();
  #logger: Logger | undefined;
  #wasReported = false;

  constructor(source: string) {
    this.#source = source;
  }

  /** Unknown unless the source runs. */
  get health(): SourceHealth {
    if (this.#logger === undefined) return { status: "unknown" };
    if (this.#problems.size === 0) return { status: "healthy" };
    const reasons = [...this.#problems.values()].slice(0, MOST_REASONS);
    const more = this.#problems.size - reasons.length;
    return { status: "unhealthy", reason: reasons.join("; ") + (more > 0 ? `; and ${more} more` : "") };
  }

  /** Begins with nothing wrong. */
  start(logger: Logger): void {
    this.#logger = logger;
    this.#problems.clear();
    this.#guarded.clear();
    this.#wasReported = false;
  }

  /** Ends, and forgets what was wrong. */
  stop(): void {
    this.#logger = undefined;
    this.#problems.clear();
  }

  /** Takes that a part fails. */
  fail(part: string, error: unknown): void {
    this.#report(part, { error, isNews: !this.#wasReported });
  }

  /** Takes that a part works, or is no more. */
  succeed(part: string): void {
    if (!this.#problems.delete(part) || this.#problems.size > 0 || !this.#wasReported) return;
    this.#wasReported = false;
    this.#logger?.info({ source: this.#source }, `event source "${this.#source}" works again`);
  }

  /** Calls a function of the user; if it throws, the source is unhealthy until it works again, and `fallback` is returned. */
  guard<Result>(part: string, call: () => Result, fallback: Result): Result {
    try {
      const result = call();
      this.succeed(part);
      return result;
    } catch (error) {
      const message = messageOf(error);
      this.#report(part, { error, isNews: this.#guarded.get(part) !== message });
      this.#guarded.set(part, message);
      return fallback;
    }
  }

  #report(part: string, { error, isNews }: { error: unknown; isNews: boolean }): void {
    const message = `${part} failed: ${messageOf(error)}`;
    this.#problems.set(part, message);
    const text = `event source "${this.#source}": ${message}`;
    if (!isNews) return this.#logger?.debug({ source: this.#source }, text);
    this.#wasReported = true;
    this.#logger?.warn({ source: this.#source }, text);
  }
}

/** Makes indexes of the user's functions that never throw: an object that a function fails for has no values. */
export function guardIndexes(
  indexes: { readonly [name: string]: IndexFunction } = {},
  record: HealthRecord,
): { readonly [name: string]: IndexFunction } {
  const guarded = Object.entries(indexes).map(([name, valuesOf]) => {
    const valuesOrThrow: IndexFunction = (object) => [...valuesOf(object)];
    return [name, ((object) => record.guard(`the index "${name}"`, () => valuesOrThrow(object), [])) as IndexFunction];
  });
  return Object.fromEntries(guarded) as { readonly [name: string]: IndexFunction };
}
