import { systemClock, type Clock } from "../base/clock.js";

/** What waits for a time. It carries its place in the queue itself, which only the queue changes. */
export interface TimerItem<Item> {
  /** When it is due, by the clock of the queue; `Infinity` unless it is scheduled. */
  dueAt: number;
  /** The node of the heap that stands for it; others are left over. */
  timerNode: TimerNode<Item> | undefined;
}

/** A node of the heap of a timer queue. */
export interface TimerNode<Item> {
  /** Not later than the item is due. */
  readonly at: number;
  readonly item: Item;
}

/** The place of an item that is not scheduled. */
export const NOT_SCHEDULED = { dueAt: Infinity, timerNode: undefined } as const;

// Below this the nodes that are left over are not worth a thought.
const FEW_NODES = 64;

/**
 * Calls back when items are due: one time for each item, of which the newest replaces the one before (JOSDK's TimerEventSource).
 *
 * A heap on one timer of the clock. A time that is put off costs nothing until the earlier one has passed, and what is cancelled is left
 * in the heap until it comes up or half of the heap is like it; so 100,000 items that are put off over and over are cheap.
 */
export class TimerQueue<Item extends TimerItem<Item>> {
  readonly #clock: Clock;
  readonly #onDue: (item: Item) => void;
  readonly #heap: TimerNode<Item>[] = [];
  #size = 0;
  #pending: { readonly at: number; readonly cancel: () => void } | undefined;
  #isFiring = false;
  #isClosed = false;

  /** `onDue` must not throw. */
  constructor({ onDue, clock = systemClock }: { onDue: (item: Item) => void; clock?: Clock }) {
    this.#clock = clock;
    this.#onDue = onDue;
  }

  /**
   * Calls back for `item` after `delayMs`, instead of when it was due before; with 0 at once, before this returns. Whoever has just read
   * the clock passes `now`.
   */
  schedule(item: Item, delayMs: number, now: number = this.#clock.now()): void {
    if (this.#isClosed) return;
    if (!(delayMs > 0)) {
      this.cancel(item);
      return this.#onDue(item);
    }
    const dueAt = now + delayMs;
    const isPutOff = item.timerNode !== undefined && dueAt >= item.dueAt;
    item.dueAt = dueAt;
    // Its node comes up earlier, and will see.
    if (isPutOff) return;
    if (item.timerNode === undefined) this.#size++;
    if (item.timerNode === undefined || dueAt < item.timerNode.at) this.#push(item);
    this.#compact();
    this.#arm();
  }

  /** Forgets `item`; the function that is called back is not called for it any more. */
  cancel(item: Item): void {
    if (item.timerNode === undefined) return;
    this.#forget(item);
    if (this.#size === 0) this.#clear();
    else this.#compact();
  }

  /** How many items are scheduled. */
  get size(): number {
    return this.#size;
  }

  /** Forgets everything and takes nothing more. */
  close(): void {
    this.#isClosed = true;
    for (const node of this.#heap) if (isLive(node)) this.#forget(node.item);
    this.#clear();
  }

  #forget(item: Item): void {
    item.dueAt = Infinity;
    item.timerNode = undefined;
    this.#size--;
  }

  #clear(): void {
    this.#heap.length = 0;
    this.#disarm();
  }

  #fire(): void {
    this.#pending = undefined;
    this.#isFiring = true;
    const now = this.#clock.now();
    for (let node = this.#heap[0]; node !== undefined && node.at <= now; node = this.#heap[0]) {
      this.#pop();
      const { item } = node;
      if (!isLive(node)) continue;
      if (item.dueAt > now) this.#push(item);
      else {
        this.#forget(item);
        this.#onDue(item);
      }
    }
    this.#isFiring = false;
    this.#arm();
  }

  #arm(): void {
    const at = this.#heap[0]?.at;
    if (at === undefined || this.#isFiring || (this.#pending !== undefined && this.#pending.at <= at)) return;
    this.#disarm();
    this.#pending = { at, cancel: this.#clock.schedule(at - this.#clock.now(), () => this.#fire()) };
  }

  #disarm(): void {
    this.#pending?.cancel();
    this.#pending = undefined;
  }

  #compact(): void {
    if (this.#heap.length < 2 * this.#size + FEW_NODES) return;
    const items = this.#heap.filter(isLive).map(({ item }) => item);
    items.sort((a, b) => a.dueAt - b.dueAt);
    // A sorted array is a heap.
    this.#heap.length = 0;
    for (const item of items) this.#heap.push((item.timerNode = { at: item.dueAt, item }));
  }

  #push(item: Item): void {
    const node = (item.timerNode = { at: item.dueAt, item });
    const heap = this.#heap;
    let index = heap.length;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (heap[parent]!.at <= node.at) break;
      heap[index] = heap[parent]!;
      index = parent;
    }
    heap[index] = node;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop()!;
    const { length } = heap;
    if (length === 0) return;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= length) break;
      if (child + 1 < length && heap[child + 1]!.at < heap[child]!.at) child++;
      if (heap[child]!.at >= last.at) break;
      heap[index] = heap[child]!;
      index = child;
    }
    heap[index] = last;
  }
}

function isLive<Item extends TimerItem<Item>>(node: TimerNode<Item>): boolean {
  return node.item.timerNode === node;
}
