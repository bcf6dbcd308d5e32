// Primaries whose functions blocked the event loop, or may have. Promise: they hold up no other primary. They are reconciled when no controller
// has anything else to do, one at a time, so that a function that blocks again is known for sure; and none of them waits for ever.
import type { Clock } from "../../base/clock.js";
import type { ObjectKey } from "../../base/kubernetes-object.js";
import type { Logger } from "../../base/logger.js";
import type { KnownPrimary } from "../known-primary.js";

/** A primary of which a function blocked the event loop, or may have. */
export interface Suspect {
  readonly controller: string;
  readonly primary: ObjectKey;
  /** How often that happened since its last reconcile that succeeded. */
  readonly stalls: number;
}

/** What begins the reconciles of one controller. */
export interface SuspectQueue {
  readonly controller: string;
  /** Whether it may begin reconciles now. */
  readonly isRunning: boolean;
  /** Whether nothing waits or is in progress. */
  readonly isIdle: boolean;
  /** Begins the reconcile of a primary, unless it turns out that it has to wait. */
  begin(primary: KnownPrimary): void;
  /** Begins what waits. */
  fill(): void;
}

interface SuspectsOptions {
  /** The controllers of the operator. */
  readonly controllers: readonly string[];
  readonly clock: Clock;
  readonly logger: Logger;
}

// A busy operator is never idle.
const MAX_WAIT_MS = 60_000;
// How long no other reconcile begins beside one of a suspect: enough to see whether it blocks, and short for all others.
const ALONE_MS = 5_000;
const CHECK_MS = 1_000;
// A suspect that ends the process each time would keep the operator in a crash loop, in which the kubelet makes all primaries wait.
const DELAY = { firstMs: 30_000, factor: 4, maxMs: 15 * 60_000 };
// What is kept has to fit into an annotation.
const MAX_SUSPECTS = 100;

/** The suspects of an operator, over all its starts. */
export class Suspects {
  readonly #options: SuspectsOptions;
  readonly #suspects = new Map<string, Suspect & { readonly notedAt: number }>();
  readonly #queues = new Set<SuspectQueue>();
  readonly #waiting = new Map<KnownPrimary, { readonly queue: SuspectQueue; readonly since: number }>();
  #alone: { readonly primary: KnownPrimary; readonly end: () => void } | undefined;
  #cancelCheck: (() => void) | undefined;
  /** The ids in the annotation, as it was seen last and as it is being written. */
  #seen: ReadonlySet<string> = new Set();
  #written: ReadonlySet<string> = new Set();

  constructor(options: SuspectsOptions) {
    this.#options = options;
  }

  get all(): readonly Suspect[] {
    return [...this.#suspects.values()].map(({ controller, primary, stalls }) => ({ controller, primary, stalls }));
  }

  /** Whether a suspect is reconciled, and no other reconcile may begin. */
  get isReconciling(): boolean {
    return this.#alone !== undefined;
  }

  has(controller: string, primary: ObjectKey): boolean {
    return this.#suspects.size > 0 && this.#suspects.has(idOf({ controller, primary }));
  }

  /** Notes that a function for a primary blocked the event loop, or may have. */
  add(controller: string, primary: ObjectKey): void {
    const id = idOf({ controller, primary });
    const { stalls = 0 } = this.#suspects.get(id) ?? {};
    if (stalls === 0 && this.#suspects.size >= MAX_SUSPECTS) return;
    this.#suspects.set(id, { controller, primary, stalls: stalls + 1, notedAt: this.#options.clock.now() });
  }

  /** Forgets a suspect. With `startedAt` its reconcile that began then succeeded: it stays if it blocked the event loop after that. */
  delete(controller: string, primary: ObjectKey, startedAt = Infinity): void {
    const id = idOf({ controller, primary });
    if ((this.#suspects.get(id)?.notedAt ?? Infinity) <= startedAt) this.#suspects.delete(id);
  }

  /** Forgets the suspects of a controller that do not exist any more. */
  retain(controller: string, exists: (primary: ObjectKey) => boolean): void {
    for (const [id, suspect] of this.#suspects)
      if (suspect.controller === controller && !exists(suspect.primary)) this.#suspects.delete(id);
  }

  join(queue: SuspectQueue): void {
    this.#queues.add(queue);
  }

  leave(queue: SuspectQueue): void {
    this.#queues.delete(queue);
    for (const [primary, { queue: its }] of this.#waiting) if (its === queue) this.withdraw(primary);
    if (this.#queues.size > 0) return;
    this.#alone?.end();
    this.#cancelCheck?.();
    this.#alone = this.#cancelCheck = undefined;
  }

  /** How many primaries of a queue wait. */
  waitingIn(queue: SuspectQueue): number {
    if (this.#waiting.size === 0) return 0;
    return [...this.#waiting.values()].filter((each) => each.queue === queue).length;
  }

  /** Lets a primary wait whose turn has come. */
  wait(queue: SuspectQueue, primary: KnownPrimary): void {
    if (this.#waiting.has(primary)) return;
    this.#waiting.set(primary, { queue, since: this.#options.clock.now() });
    const { controller } = queue;
    const retryAfterMs = this.#delayOf(primary, queue);
    const when = retryAfterMs === 0 ? "" : `, in ${retryAfterMs / 1000} s at the earliest, or when it is edited`;
    this.#options.logger.warn(
      { controller, primary: primary.key, retryAfterMs },
      `primary "${primary.key}" of controller "${controller}" is reconciled after all others${when}: its functions blocked the event loop before`,
    );
    this.#cancelCheck ??= this.#checkLater();
  }

  withdraw(primary: KnownPrimary): void {
    this.#waiting.delete(primary);
  }

  /** Begins the reconcile of the next suspect if nothing else is to be done; called whenever a queue is empty. */
  advance(): void {
    if (this.#waiting.size === 0 || this.#alone !== undefined) return;
    const isIdle = [...this.#queues].every((queue) => queue.isRunning && queue.isIdle);
    const now = this.#options.clock.now();
    // One that blocked again after it was alone is the one that blocks: those beside it that it made suspects come first.
    const stallsOf = ([primary, { queue }]: readonly [KnownPrimary, { readonly queue: SuspectQueue }]) =>
      this.#suspects.get(idOf({ controller: queue.controller, primary: primary.key }))?.stalls ?? 0;
    const waiting = [...this.#waiting].sort((one, other) => stallsOf(one) - stallsOf(other));
    for (const [primary, { queue, since }] of waiting) {
      const dueAt = since + this.#delayOf(primary, queue);
      if (!queue.isRunning || now < (isIdle ? dueAt : dueAt + MAX_WAIT_MS)) continue;
      this.#waiting.delete(primary);
      queue.begin(primary);
      if (primary.run === undefined) continue;
      const cancel = this.#options.clock.schedule(ALONE_MS, () => this.#endAlone());
      this.#alone = { primary, end: cancel };
      return;
    }
  }

  /** Lets others begin again after the reconcile of a suspect. */
  ended(primary: KnownPrimary): void {
    if (this.#alone?.primary === primary) this.#endAlone();
  }

  /** Returns the suspects as they are kept in an annotation; undefined if there are none. */
  write(): string | undefined {
    this.#written = new Set(this.#suspects.keys());
    return this.#suspects.size === 0 ? undefined : JSON.stringify(this.all);
  }

  /** Takes over what another process noted. The leader knows better what is over; a replica that stands by forgets it, too. */
  read(text: string | undefined, isLeading: boolean): void {
    const found = new Map(suspectsIn(text).map((each) => [idOf(each), each]));
    if (!isLeading) for (const id of this.#seen) if (!found.has(id)) this.#suspects.delete(id);
    for (const [id, suspect] of found) {
      const isNews = !this.#seen.has(id) && !this.#written.has(id);
      const isOwn = this.#options.controllers.includes(suspect.controller) && this.#suspects.size < MAX_SUSPECTS;
      if (isNews && isOwn && !this.#suspects.has(id)) this.#suspects.set(id, { ...suspect, notedAt: -Infinity });
    }
    this.#seen = new Set(found.keys());
  }

  #endAlone(): void {
    this.#alone?.end();
    this.#alone = undefined;
    for (const queue of [...this.#queues]) queue.fill();
  }

  // An edit may have mended it.
  #delayOf({ key: primary, state }: KnownPrimary, { controller }: SuspectQueue): number {
    const { stalls = 0 } = this.#suspects.get(idOf({ controller, primary })) ?? {};
    const isEdited = state.reasons.some((reason) => reason.kind === "primary" && !reason.isInitial);
    if (stalls < 2 || isEdited) return 0;
    return Math.min(DELAY.maxMs, DELAY.firstMs * DELAY.factor ** (stalls - 2));
  }

  #checkLater(): () => void {
    return this.#options.clock.schedule(CHECK_MS, () => {
      this.#cancelCheck = undefined;
      this.advance();
      if (this.#waiting.size > 0) this.#cancelCheck = this.#checkLater();
    });
  }
}

function idOf({ controller, primary }: Pick<Suspect, "controller" | "primary">): string {
  return `${controller} ${primary}`;
}

// Anyone who may write the Lease can write this. It only delays the reconciles of the named primaries, and never for longer than the longest delay.
function suspectsIn(text: string | undefined): readonly Suspect[] {
  try {
    const parsed: unknown = JSON.parse(text ?? "[]");
    if (!Array.isArray(parsed)) return [];
    return (parsed as readonly Partial<Record<keyof Suspect, unknown>>[]).flatMap((each) => {
      const { controller, primary, stalls } = Object(each) as Partial<Record<keyof Suspect, unknown>>;
      if (typeof controller !== "string" || typeof primary !== "string") return [];
      return [{ controller, primary, stalls: typeof stalls === "number" && stalls > 0 ? stalls : 1 }];
    });
  } catch {
    return [];
  }
}
