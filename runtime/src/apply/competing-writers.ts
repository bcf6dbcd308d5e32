// Detects competing writers: another client that reverts objects, and a second process that runs the same controller.
//
// A write loop is an object that is written repeatedly because another client reverts each write, or because the desired state differs each time. Its
// writes are postponed with exponential backoff. A new desired state is written immediately, and a loop ends when the object stays as desired for
// some time. Memory is bounded: an object is dropped some time after its last write.
import {
  type LoopEvent,
  type LoopListener,
  type LoopObserver,
  type LoopWrite,
  type PostponedWrite,
  type Reporter,
  type Requeue,
  type WrittenFor,
  report,
} from "../base/activity.js";
import {
  type KubernetesObject,
  type ManagedWrite,
  type ResourceDefinition,
  describeObject,
  keyOf,
} from "../base/kubernetes-object.js";
import { type Clock, systemClock } from "../base/wait.js";
import { collectionPath, objectPath } from "../client/api-client.js";
import { type OwnWrites, secondsOf } from "../client/own-writes.js";

/** When writes form a loop, and how they back off. Times are in milliseconds. */
const DEFAULTS = {
  /** This many writes of the same content within `windowMs` form a loop. */
  sameWrites: 3,
  /** This many writes of any content without a new input form a loop, within `windowMs` or, for a status, within `statusWindowMs`. */
  writes: 20,
  /** The same limit, including writes that follow an event of another client, such as those of a status that counts the pods of a rollout. */
  followingWrites: 200,
  windowMs: 60_000,
  /**
   * A status that is written every 30 s or less often reports progress: `writes` such writes span 19 intervals, or 570 s. The window is shorter by
   * half an interval, because timers are inexact and the first of these writes may be slow.
   */
  statusWindowMs: 555_000,
  /** An object that matches this long after its last write is not in a loop. */
  calmMs: 10_000,
  initialPauseMs: 2_000,
  maxPauseMs: 300_000,
  /** The maximum number of tracked objects. If it is exceeded, the 10% with the oldest last writes are dropped. */
  capacity: 10_000,
};

/** A write in the form that the detector compares. */
export interface ObservedWrite {
  /** A digest of the written content. */
  readonly content: string;
  /** The input of the write, such as the generation of the primary. Writes with a new input do not continue a loop. */
  readonly input: string;
  /** Whether the write follows an event of another client. Such an event counts as a new input, up to a limit. */
  readonly isFollowing?: boolean;
  readonly isStatus?: boolean;
}

/** A detected loop. */
export type KnownLoop = Pick<LoopWrite, "loop" | "writes" | "pauseMs">;

const SWEEP_INTERVAL_MS = 1_000;

interface Writes extends ObservedWrite {
  /** Times of the last writes with the same content, oldest first. */
  readonly sameTimes: readonly number[];
  /** Times of writes with the same input. */
  readonly times: readonly number[];
  /** Times of writes with the same input that follow no event. */
  readonly unaskedTimes: readonly number[];
  readonly lastAt: number;
  /** Absent if the writes do not form a loop. */
  readonly loop: KnownLoop | undefined;
}

/** The recent writes of one field manager, by object. Times are monotonic, in milliseconds. */
export class LoopDetector {
  readonly #options: typeof DEFAULTS;
  /** In the order of the last write. */
  readonly #objects = new Map<string, Writes>();
  #sweptAt = -Infinity;

  constructor(options: Partial<typeof DEFAULTS> = {}) {
    this.#options = { ...DEFAULTS, ...options };
  }

  /** The number of tracked objects. */
  get size(): number {
    return this.#objects.size;
  }

  /** Returns the loop that a write would continue, with the remaining backoff. Returns undefined if the write may be sent immediately. */
  postponementOf(key: string, write: () => ObservedWrite, now = systemClock.now()): KnownLoop | undefined {
    const known = this.#objects.get(key);
    if (known?.loop === undefined || !continues(known, write())) return undefined;
    const pauseMs = known.lastAt + known.loop.pauseMs - now;
    return pauseMs > 0 ? { ...known.loop, pauseMs } : undefined;
  }

  /** Records a write. Returns the loop that it belongs to, if any. */
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
    // Most objects are written once and need no further lists.
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

  /** Records that an object matches the desired state. This ends a loop, unless the object was written very recently. */
  noteMatch(key: string, now = systemClock.now()): void {
    const known = this.#objects.get(key);
    if (known !== undefined && now - known.lastAt >= this.#options.calmMs) this.#objects.delete(key);
  }

  /** Stops tracking an object. */
  forget(key: string): void {
    this.#objects.delete(key);
  }

  #windowOf({ isStatus = false }: ObservedWrite): number {
    return isStatus ? this.#options.statusWindowMs : this.#options.windowMs;
  }

  #isOver(known: Writes, now: number): boolean {
    return now - known.lastAt > (known.loop?.pauseMs ?? 0) + this.#windowOf(known);
  }

  // Checks only the oldest objects: one with a long backoff delays the removal of those behind it until it is over or the capacity is reached.
  // Finding the oldest entry of a Map is slow after many deletions, so this runs rarely, and removes 10% at once beyond the capacity.
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

// A new desired state ends a loop in which the same content is reverted. Only a new input ends a loop of changing content.
function continues({ loop, content, input }: Writes, write: ObservedWrite): boolean {
  return loop !== undefined && (loop.loop === "undone" ? content === write.content : input === write.input);
}

interface LoopReporterOptions extends Reporter {
  readonly observer?: LoopObserver | undefined;
  /** Called for the primary when the backoff of an object has ended. */
  readonly reconcile: Requeue;
  readonly clock?: Clock;
  /** Returns a digest of the inputs of the last reconcile of a primary. Default: the controller has no inputs */
  inputsOf?(primary: KubernetesObject): string | undefined;
}

// An object that still matches after this time is not in a loop.
const LOOK_AGAIN_AFTER_MS = 10_000;

/** Reports each write loop once, and requeues its primary after the backoff. */
export class LoopReporter implements LoopListener {
  readonly #options: LoopReporterOptions;
  /** The postponed writes, by primary and object. */
  readonly #waiting = new Map<string, { readonly postponed: PostponedWrite; readonly cancel: () => void }>();
  #isClosed = false;

  constructor(options: LoopReporterOptions) {
    this.#options = options;
  }

  get postponed(): readonly PostponedWrite[] {
    return [...this.#waiting.values()].map(({ postponed }) => postponed);
  }

  postponedFor({ metadata }: KubernetesObject): readonly PostponedWrite[] {
    if (this.#waiting.size === 0) return [];
    const prefix = `${keyOf(metadata)} `;
    return [...this.#waiting].flatMap(([key, { postponed }]) => (key.startsWith(prefix) ? [postponed] : []));
  }

  inputOf(primary: KubernetesObject | undefined): string {
    const inputs = primary && this.#options.inputsOf?.(primary);
    return `${primary?.metadata.generation ?? 0}${inputs === undefined ? "" : ` ${inputs}`}`;
  }

  onLoop(written: LoopWrite & { readonly isUrgent?: boolean }, { primary, dependent }: WrittenFor): void {
    if (primary === undefined) return;
    const { controller, observer } = this.#options;
    const at = { controller, primary: keyOf(primary.metadata), ...(dependent !== undefined && { dependent }) };
    const { isUrgent = false, ...write } = written;
    const event: LoopEvent = { ...at, ...write };
    if (written.isNew) this.#announce(primary, event, isUrgent);
    // An urgent write is never postponed, so there is nothing to requeue.
    if (isUrgent) return;
    observer?.(event);
    // The loop is over if the object keeps the written state. No event reports that, so check again later.
    const { isNew: _, pauseMs, ...loop } = write;
    this.#wait({ ...loop, managers: [], retryAfterMs: Math.max(pauseMs, LOOK_AGAIN_AFTER_MS) }, { primary, dependent });
  }

  onPostponed(postponed: PostponedWrite, writtenFor: WrittenFor): void {
    this.#wait(postponed, writtenFor);
  }

  #wait(postponed: PostponedWrite, { primary, dependent }: WrittenFor): void {
    if (primary === undefined || this.#isClosed) return;
    const { clock = systemClock, reconcile } = this.#options;
    const { kind, object, retryAfterMs } = postponed;
    const owner = keyOf(primary.metadata);
    const key = `${owner} ${kind} ${object}`;
    this.#waiting.get(key)?.cancel();
    const resume = () => {
      this.#waiting.delete(key);
      reconcile(owner, { source: dependent ?? "write loop", object, isTimer: true });
    };
    this.#waiting.set(key, { postponed, cancel: clock.schedule(retryAfterMs, resume) });
  }

  /** Cancels all requeues. */
  close(): void {
    this.#isClosed = true;
    for (const { cancel } of this.#waiting.values()) cancel();
    this.#waiting.clear();
  }

  #announce(about: KubernetesObject, event: LoopEvent, isUrgent: boolean): void {
    const { dependent, kind, object, paths, writes, loop } = event;
    const what = paths.length === 0 ? "the object itself" : paths.join(", ");
    const why =
      loop === "undone"
        ? `although the desired object did not change: another client, primary, or admission policy reverts ${what} each time`
        : `although the inputs did not change: ${paths.length === 0 ? "the desired object" : `desired ${what}`} differs on every reconcile`;
    const next = isUrgent ? "restoring it immediately, because objects would be orphaned without it" : "backing off";
    report(this.#options, about, {
      type: "Warning",
      reason: "WriteLoop",
      // One Event per kind.
      action: `Write${kind.split(".")[0]}`,
      note: `${kind} ${object} was written ${writes} times ${why}; ${next}`,
      fields: { dependent, object, paths, writes },
    });
  }
}

interface ForeignWritesOptions extends Reporter {
  readonly fieldManagers: readonly string[];
  readonly writes: Pick<OwnWrites, "isForeign" | "time">;
  /** Called for each write by another process under these field managers. */
  readonly onForeignWrite?: ((write: { readonly controller: string }) => void) | undefined;
  readonly clock?: Clock;
}

/** A write that a watch has delivered, with the primary of its object. */
interface WatchedWrite {
  readonly definition: ResourceDefinition;
  readonly object: KubernetesObject;
  readonly written: ManagedWrite;
  readonly primary: KubernetesObject;
}

// By then, the API server has executed all writes of the previous leader.
const SETTLED_SECONDS = 60;
const REPORT_EVERY_MS = 600_000;

/**
 * Detects a second process that runs the same controller: a write under its field manager that is newer than the leadership of this process and was
 * not sent by this process. The other process may be legitimate, so it is only reported.
 */
export class ForeignWrites {
  readonly #options: ForeignWritesOptions;
  /** Only later writes are considered, on the clock of the API server. Absent while this process does not lead. */
  #since: number | undefined;
  #quietUntil = -Infinity;

  constructor(options: ForeignWritesOptions) {
    this.#options = options;
  }

  /** Called when this process becomes the leader. */
  begin(): void {
    const { time } = this.#options.writes;
    if (time !== undefined) this.#since = time + SETTLED_SECONDS;
  }

  /** Called when another process may become the leader. */
  end(): void {
    this.#since = undefined;
  }

  observe({ definition, object, written, primary }: WatchedWrite): void {
    const { fieldManagers, writes, controller, onForeignWrite } = this.#options;
    if (this.#since === undefined || !fieldManagers.includes(written.fieldManager)) return;
    const time = secondsOf(written.time);
    if (time <= this.#since) return;
    const { namespace } = object.metadata;
    const paths = [objectPath(definition, object.metadata), collectionPath(definition, namespace)];
    if (!writes.isForeign(paths, time)) return;
    onForeignWrite?.({ controller });
    this.#report({ definition, object, written, primary });
  }

  #report({ definition, object, written, primary }: WatchedWrite): void {
    const { controller, clock = systemClock } = this.#options;
    if (clock.now() < this.#quietUntil) return;
    this.#quietUntil = clock.now() + REPORT_EVERY_MS;
    const { fieldManager, time } = written;
    const note =
      `${describeObject(definition, object.metadata)} was written at ${time} by field manager "${fieldManager}", and not by this process: ` +
      `another process runs controller "${controller}"; stop one of the two, or give them different namespaces, selectors or field managers`;
    const fields = { object: keyOf(object.metadata), fieldManager, time };
    report(this.#options, primary, { type: "Warning", reason: "SecondOperator", action: "Watch", note, fields });
  }
}
