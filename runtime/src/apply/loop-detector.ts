import type { LoopWrite } from "../base/activity.js";
import { systemClock } from "../base/wait.js";

/**
 * Detects write loops: objects that are written repeatedly because another client reverts each write, or because the desired state differs each time.
 * Writes of an object in a loop back off exponentially. A new desired state is written at once, and a loop ends when the object stays as desired for a
 * while. Memory is bounded, and an object is forgotten some time after its last write.
 */

/** When writes are a loop, and how they back off; times in milliseconds. */
const DEFAULTS = {
  /** So many writes of the same content within `windowMs` are a loop. */
  sameWrites: 3,
  /** So many writes of any content within `windowMs`, of a status within `statusWindowMs`, without a new input, are a loop. */
  writes: 20,
  /** The same with the writes that follow an event of another client, as a status does that counts the pods of a rollout. */
  followingWrites: 200,
  windowMs: 60_000,
  /**
   * A status that is written every 30 s, or less often, reports progress: `writes` of it are 19 intervals apart, which take 570 s. The window is
   * shorter by half an interval, because timers are inexact and the first of these writes may be a slow one.
   */
  statusWindowMs: 555_000,
  /** An object that is found as desired so long after its last write is in no loop. */
  calmMs: 10_000,
  initialPauseMs: 2_000,
  maxPauseMs: 300_000,
  /** How many objects are remembered; beyond that, the tenth with the oldest last writes is forgotten. */
  capacity: 10_000,
};

/** A write as the detector compares it. */
export interface ObservedWrite {
  /** A digest of what is written. */
  readonly content: string;
  /** What the write follows from, such as the generation of the primary: a new input is no loop. */
  readonly input: string;
  /** Whether it follows an event of another client, which is a new input, unless there are very many. */
  readonly isFollowing?: boolean;
  readonly isStatus?: boolean;
}

/** A detected loop. */
export type KnownLoop = Pick<LoopWrite, "loop" | "writes" | "pauseMs">;

const SWEEP_INTERVAL_MS = 1_000;

interface Writes extends ObservedWrite {
  /** Times of the last writes with the same content, the latest last. */
  readonly sameTimes: readonly number[];
  /** Of those with the same input. */
  readonly times: readonly number[];
  /** Of those with the same input that follow no event. */
  readonly unaskedTimes: readonly number[];
  readonly lastAt: number;
  /** Absent as long as it is no loop. */
  readonly loop: KnownLoop | undefined;
}

/** The recent writes of one field manager, by object. Times are milliseconds that never run backwards. */
export class LoopDetector {
  readonly #options: typeof DEFAULTS;
  /** In the order of their last write. */
  readonly #objects = new Map<string, Writes>();
  #sweptAt = -Infinity;

  constructor(options: Partial<typeof DEFAULTS> = {}) {
    this.#options = { ...DEFAULTS, ...options };
  }

  /** How many objects are kept in view. */
  get size(): number {
    return this.#objects.size;
  }

  /** Returns the loop that a write would continue, and how long it has to wait now; undefined if it may be made at once. */
  postponementOf(key: string, write: () => ObservedWrite, now = systemClock.now()): KnownLoop | undefined {
    const known = this.#objects.get(key);
    if (known?.loop === undefined || !continues(known, write())) return undefined;
    const pauseMs = known.lastAt + known.loop.pauseMs - now;
    return pauseMs > 0 ? { ...known.loop, pauseMs } : undefined;
  }

  /** Takes note of a write; returns the loop that it belongs to, if it does. */
  noteWrite(
    key: string,
    write: ObservedWrite,
    now = systemClock.now(),
  ): (KnownLoop & Pick<LoopWrite, "isNew">) | undefined {
    const { sameWrites, writes, followingWrites, windowMs, initialPauseMs, maxPauseMs } = this.#options;
    const last = this.#objects.get(key);
    const known = last === undefined || this.#isOver(last, now) ? undefined : last;
    const before = known !== undefined && continues(known, write) ? known.loop : undefined;
    const isSameInput = known?.input === write.input;
    const times = added(isSameInput ? known.times : [], { now, windowMs, most: followingWrites });
    const unasked = isSameInput ? known.unaskedTimes : [];
    const own = { now, windowMs: this.#windowOf(write), most: writes };
    // Most objects are written once: they need no further lists.
    const isFirst = known === undefined && write.isFollowing !== true;
    const unaskedTimes = isFirst ? times : write.isFollowing === true ? unasked : added(unasked, own);
    const isSame = known?.content === write.content;
    const sameTimes =
      known === undefined ? times : added(isSame ? known.sameTimes : [], { now, windowMs, most: sameWrites });
    const isUnsettled = unaskedTimes.length === writes || times.length === followingWrites;
    const kind = before?.loop ?? (sameTimes.length === sameWrites ? "undone" : isUnsettled ? "unsettled" : undefined);
    const counted = kind === "undone" ? sameTimes : unaskedTimes.length === writes ? unaskedTimes : times;
    const loop = kind && {
      loop: kind,
      writes: before === undefined ? counted.length : before.writes + 1,
      pauseMs: before === undefined ? initialPauseMs : Math.min(maxPauseMs, before.pauseMs * 2),
    };
    this.#objects.delete(key);
    const { content, input, isStatus = false } = write;
    this.#objects.set(key, { content, input, isStatus, sameTimes, times, unaskedTimes, lastAt: now, loop });
    if (this.#objects.size > this.#options.capacity || now - this.#sweptAt >= SWEEP_INTERVAL_MS) this.#sweep(now);
    return loop && { ...loop, isNew: before === undefined };
  }

  /** Takes note that an object was found as desired: unless it was written just now, that ends a loop. */
  noteMatch(key: string, now = systemClock.now()): void {
    const known = this.#objects.get(key);
    if (known !== undefined && now - known.lastAt >= this.#options.calmMs) this.#objects.delete(key);
  }

  /** Forgets an object. */
  forget(key: string): void {
    this.#objects.delete(key);
  }

  #windowOf({ isStatus = false }: ObservedWrite): number {
    return isStatus ? this.#options.statusWindowMs : this.#options.windowMs;
  }

  #isOver(known: Writes, now: number): boolean {
    return now - known.lastAt > (known.loop?.pauseMs ?? 0) + this.#windowOf(known);
  }

  // Looks at the oldest only: one in a long pause holds up the others behind it until it is over, or the capacity is reached. To find the
  // oldest of a map takes long when many before it were deleted, so this is done seldom, and beyond the capacity a tenth goes at once.
  #sweep(now: number): void {
    const { capacity } = this.#options;
    const most = this.#objects.size > capacity ? 0.9 * capacity : capacity;
    this.#sweptAt = now;
    for (const [key, known] of this.#objects) {
      if (this.#objects.size <= most && !this.#isOver(known, now)) return;
      this.#objects.delete(key);
    }
  }
}

function added(
  times: readonly number[],
  { now, windowMs, most }: { now: number; windowMs: number; most: number },
): readonly number[] {
  return [...times.filter((time) => now - time <= windowMs), now].slice(-most);
}

// What is desired anew ends a loop in which the same was undone; only a new input ends one that never settles.
function continues({ loop, content, input }: Writes, write: ObservedWrite): boolean {
  return loop !== undefined && (loop.loop === "undone" ? content === write.content : input === write.input);
}
