import { systemClock, type Clock } from "../base/clock.js";

/** When a key is due. */
interface Slot<Key> {
  readonly key: Key;
  dueAt: number;
  /** The node of the heap that stands for this slot; others are left over. */
  node: Node<Key>;
}

interface Node<Key> {
  /** Not later than the slot is due. */
  readonly at: number;
  readonly slot: Slot<Key>;
}

// Below this the nodes that are left over are not worth a thought.
const FEW_NODES = 64;

/**
 * Calls back when keys are due: one time for each key, of which the newest replaces the one before (JOSDK's TimerEventSource).
 *
 * A heap on one timer of the clock. A time that is put off costs nothing until the earlier one has passed, and what is cancelled is left
 * in the heap until it comes up or half of the heap is like it; so 100,000 keys that are put off over and over are cheap.
 */
export class TimerQueue<Key> {
  readonly #clock: Clock;
  readonly #onDue: (key: Key) => void;
  readonly #slots = new Map<Key, Slot<Key>>();
  readonly #heap: Node<Key>[] = [];
  #pending: { readonly at: number; readonly cancel: () => void } | undefined;
  #isFiring = false;
  #isClosed = false;

  /** `onDue` must not throw. */
  constructor({ onDue, clock = systemClock }: { onDue: (key: Key) => void; clock?: Clock }) {
    this.#clock = clock;
    this.#onDue = onDue;
  }

  /** Calls back for `key` after `delayMs`, instead of when it was due before; with 0 at once, before this returns. */
  schedule(key: Key, delayMs: number): void {
    if (this.#isClosed) return;
    if (!(delayMs > 0)) {
      this.cancel(key);
      return this.#onDue(key);
    }
    const dueAt = this.#clock.now() + delayMs;
    const slot = this.#slots.get(key);
    if (slot === undefined) {
      const added: Slot<Key> = { key, dueAt, node: undefined as never };
      this.#slots.set(key, added);
      this.#push(added);
    } else {
      slot.dueAt = dueAt;
      if (dueAt < slot.node.at) this.#push(slot);
    }
    this.#compact();
    this.#arm();
  }

  /** Forgets `key`; the function that is called back is not called for it any more. */
  cancel(key: Key): void {
    if (!this.#slots.delete(key)) return;
    if (this.#slots.size === 0) this.#clear();
    else this.#compact();
  }

  /** When a key is due; undefined if it is not scheduled. */
  dueAt(key: Key): number | undefined {
    return this.#slots.get(key)?.dueAt;
  }

  /** How many keys are scheduled. */
  get size(): number {
    return this.#slots.size;
  }

  /** Forgets everything and takes nothing more. */
  close(): void {
    this.#isClosed = true;
    this.#clear();
  }

  #clear(): void {
    this.#slots.clear();
    this.#heap.length = 0;
    this.#disarm();
  }

  #fire(): void {
    this.#pending = undefined;
    this.#isFiring = true;
    const now = this.#clock.now();
    for (let node = this.#heap[0]; node !== undefined && node.at <= now; node = this.#heap[0]) {
      this.#pop();
      const { slot } = node;
      if (!this.#isLive(node)) continue;
      if (slot.dueAt > now) this.#push(slot);
      else {
        this.#slots.delete(slot.key);
        this.#onDue(slot.key);
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

  #isLive(node: Node<Key>): boolean {
    return node.slot.node === node && this.#slots.get(node.slot.key) === node.slot;
  }

  #compact(): void {
    if (this.#heap.length < 2 * this.#slots.size + FEW_NODES) return;
    const slots = [...this.#slots.values()].sort((a, b) => a.dueAt - b.dueAt);
    // A sorted array is a heap.
    this.#heap.length = 0;
    for (const slot of slots) this.#heap.push((slot.node = { at: slot.dueAt, slot }));
  }

  #push(slot: Slot<Key>): void {
    const node = (slot.node = { at: slot.dueAt, slot });
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
