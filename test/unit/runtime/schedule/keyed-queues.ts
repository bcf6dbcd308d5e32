// The queues hand out objects that carry their own places; these hand out the keys of such objects.
import type { ReconcilePriority } from "#runtime/base/reconcile-reason.js";
import { NOT_SCHEDULED, TimerQueue, type TimerItem } from "#runtime/schedule/timer-queue.js";
import { NOT_QUEUED, WorkQueue, type WorkItem } from "#runtime/schedule/work-queue.js";
import { VirtualClock } from "../../../support/virtual-clock.js";

interface Work extends WorkItem<Work> {
  readonly key: string;
}

/** A work queue of keys; what comes before the slash is the group. */
export class KeyedWorkQueue {
  readonly #queue = new WorkQueue<Work>();
  readonly #items = new Map<string, Work>();

  add(key: string, priority?: ReconcilePriority): void {
    this.#queue.add(this.itemOf(key), priority);
  }

  take(): string | undefined {
    return this.#queue.take()?.key;
  }

  done(key: string): void {
    this.#queue.done(this.itemOf(key));
  }

  remove(key: string): void {
    this.#queue.remove(this.itemOf(key));
  }

  close(): void {
    this.#queue.close();
  }

  get readyCount(): number {
    return this.#queue.readyCount;
  }

  get runningCount(): number {
    return this.#queue.runningCount;
  }

  itemOf(key: string): Work {
    const group = key.slice(0, Math.max(0, key.indexOf("/")));
    const item = this.#items.get(key) ?? { ...NOT_QUEUED, key, group };
    this.#items.set(key, item);
    return item;
  }
}

interface Timed extends TimerItem<Timed> {
  readonly key: string;
}

/** A timer queue of keys on a clock that stands still, with a record of what was due when. */
export class KeyedTimers {
  readonly clock = new VirtualClock();
  readonly fired: [string, number][] = [];
  readonly #items = new Map<string, Timed>();
  readonly #timers = new TimerQueue<Timed>({
    clock: this.clock,
    onDue: ({ key }) => {
      this.fired.push([key, this.clock.now()]);
      this.onDue(key);
    },
  });

  /** Called as well when a key is due. */
  onDue: (key: string) => void = () => {};

  schedule(key: string, delayMs: number): void {
    this.#timers.schedule(this.#itemOf(key), delayMs);
  }

  cancel(key: string): void {
    this.#timers.cancel(this.#itemOf(key));
  }

  close(): void {
    this.#timers.close();
  }

  /** When a key is due; undefined if it is not scheduled. */
  dueAt(key: string): number | undefined {
    const { dueAt } = this.#itemOf(key);
    return dueAt === Infinity ? undefined : dueAt;
  }

  get size(): number {
    return this.#timers.size;
  }

  #itemOf(key: string): Timed {
    const item = this.#items.get(key) ?? { ...NOT_SCHEDULED, key };
    this.#items.set(key, item);
    return item;
  }
}
