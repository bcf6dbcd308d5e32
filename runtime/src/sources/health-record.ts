import { messageOf, type Logger } from "../base/logger.js";
import type { SourceHealth } from "../base/activity.js";
import { callUnawaited, synchronous } from "../base/promises.js";
import { userCalls, type UserCall } from "../base/user-calls.js";

// A reason with a line for each of thousands of objects helps nobody.
const MOST_REASONS = 3;

/** The health of an event source, part by part: it is unhealthy while any part fails. The log gets one line when that begins, and one when it ends. */
export class HealthRecord {
  readonly #source: string;
  readonly #problems = new Map<string, string>();
  /** What `guard` reported, by part: a function that fails for one object and works for the next would fill the log. */
  readonly #guarded = new Map<string, string>();
  #logger: Logger | undefined;
  #controller: string | undefined;
  #wasReported = false;

  constructor(source: string) {
    this.#source = source;
  }

  get health(): SourceHealth {
    if (this.#logger === undefined) return { status: "unknown" };
    if (this.#problems.size === 0) return { status: "healthy" };
    const reasons = [...this.#problems.values()].slice(0, MOST_REASONS);
    const more = this.#problems.size - reasons.length;
    return { status: "unhealthy", reason: reasons.join("; ") + (more > 0 ? `; and ${more} more` : "") };
  }

  start({ logger, controller }: { readonly logger: Logger; readonly controller: string }): void {
    this.#logger = logger;
    this.#controller = controller;
    this.#problems.clear();
    this.#guarded.clear();
    this.#wasReported = false;
  }

  stop(): void {
    this.#logger = undefined;
    this.#problems.clear();
  }

  fail(part: string, error: unknown): void {
    this.#report(part, error, !this.#wasReported);
  }

  /** Records that a part works, or no longer exists. */
  succeed(part: string): void {
    if (!this.#problems.delete(part) || this.#problems.size > 0 || !this.#wasReported) return;
    this.#wasReported = false;
    this.#logger?.info({ source: this.#source }, `event source "${this.#source}" works again`);
  }

  /** Calls a function of the user whose error is the caller's. */
  run<Result>(part: string, call: () => Result): Result {
    return userCalls.run(this.#callOf(part), call);
  }

  /** Calls a function of the user; if it throws, the source is unhealthy until it works again, and `fallback` is returned. `object` is what it is called with. */
  guard<Result>(part: string, call: () => Result, fallback: Result, object?: unknown): Result {
    try {
      const result = synchronous(userCalls.run(this.#callOf(part, object), call));
      this.succeed(part);
      return result;
    } catch (error) {
      this.#noteGuarded(part, error);
      return fallback;
    }
  }

  /** Calls a function of the user that returns nothing, now or later; if it fails, the source is unhealthy until it works again. */
  callUnawaited(part: string, call: () => unknown): void {
    callUnawaited(() => userCalls.run(this.#callOf(part), call), {
      onSuccess: () => this.succeed(part),
      onFailure: (error) => this.#noteGuarded(part, error),
    });
  }

  #callOf(part: string, object?: unknown): UserCall {
    return { what: `${part} of event source "${this.#source}"`, controller: this.#controller, object };
  }

  #noteGuarded(part: string, error: unknown): void {
    const message = messageOf(error);
    this.#report(part, error, this.#guarded.get(part) !== message);
    this.#guarded.set(part, message);
  }

  #report(part: string, error: unknown, isNews: boolean): void {
    const message = `${part} failed: ${messageOf(error)}`;
    this.#problems.set(part, message);
    const text = `event source "${this.#source}": ${message}`;
    if (!isNews) return this.#logger?.debug({ source: this.#source }, text);
    this.#wasReported = true;
    this.#logger?.warn({ source: this.#source }, text);
  }
}
