// Who else writes the same objects: another client that reverts them, and a second process that runs the same controller.
//
// A write loop is an object that is written repeatedly because another client reverts each write, or because the desired state differs each time. Its
// writes back off exponentially. A new desired state is written at once, and a loop ends when the object stays as desired for a while. Memory is
// bounded, and an object is forgotten some time after its last write.
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

interface LoopReporterOptions extends Reporter {
  readonly observer?: LoopObserver | undefined;
  /** Called for the primary when the pause of an object is over. */
  readonly reconcile: Requeue;
  readonly clock?: Clock;
  /** Returns a digest of the inputs that the last reconcile of a primary saw. Default: the controller has no inputs */
  inputsOf?(primary: KubernetesObject): string | undefined;
}

// An object that still matches after this time is not in a loop.
const LOOK_AGAIN_AFTER_MS = 10_000;

/** Reports each write loop once, and requeues its primary after the pause. */
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
    // The loop is over if the object stays as it was written. No event says so, so check again later.
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
      // One Event for each kind.
      action: `Write${kind.split(".")[0]}`,
      note: `${kind} ${object} was written ${writes} times ${why}; ${next}`,
      fields: { dependent, object, paths, writes },
    });
  }
}

interface ForeignWritesOptions extends Reporter {
  readonly fieldManagers: readonly string[];
  readonly writes: Pick<OwnWrites, "isForeign" | "time">;
  /** Called for each write of another process under these field managers. */
  readonly onForeignWrite?: ((write: { readonly controller: string }) => void) | undefined;
  readonly clock?: Clock;
}

/** A write that a watch delivered, and the primary of its object. */
interface WatchedWrite {
  readonly definition: ResourceDefinition;
  readonly object: KubernetesObject;
  readonly written: ManagedWrite;
  readonly primary: KubernetesObject;
}

// By then the API server has executed every write of the previous leader.
const SETTLED_SECONDS = 60;
const REPORT_EVERY_MS = 600_000;

/**
 * Detects a second process that runs the same controller: a write under its field manager, newer than the leadership of this process, that this
 * process did not send. The other process may be legitimate, so it is only reported.
 */
export class ForeignWrites {
  readonly #options: ForeignWritesOptions;
  /** Only later writes count, by the clock of the API server; absent while this process does not lead. */
  #since: number | undefined;
  #quietUntil = -Infinity;

  constructor(options: ForeignWritesOptions) {
    this.#options = options;
  }

  /** Call when this process becomes the leader. */
  begin(): void {
    const { time } = this.#options.writes;
    if (time !== undefined) this.#since = time + SETTLED_SECONDS;
  }

  /** Call when another process may become the leader. */
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
