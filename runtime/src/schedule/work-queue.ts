import type { ReconcilePriority } from "../base/reconcile-reason.js";

// One in this many goes to the background while both wait: a flood of edits slows a start down, and does not stop it.
const BACKGROUND_SHARE = 5;

/** What a work queue hands out. */
export interface Queued {
  /** Whose turn it takes; it never changes. */
  readonly group: string;
}

/**
 * The items that are ready.
 *
 * However often an item was added, it waits only once. Edits come before the background, which still gets one turn in five. Among equals
 * the groups take turns. Every operation takes constant time.
 */
export class WorkQueue<Item extends Queued> {
  readonly #edits = new FairQueue<Item>();
  readonly #background = new FairQueue<Item>();
  /** How many edits were handed out while the background waited. */
  #editsInARow = 0;

  /** Adds an item. An item that waits already keeps its place, unless it becomes more urgent. */
  add(item: Item, priority: ReconcilePriority = "edit"): void {
    if (this.#edits.has(item)) return;
    if (priority === "background") return this.#background.add(item);
    this.#background.delete(item);
    this.#edits.add(item);
  }

  /** Hands out the item whose turn it is. */
  take(): Item | undefined {
    const isBackgroundsTurn = this.#edits.size === 0 || this.#editsInARow >= BACKGROUND_SHARE - 1;
    if (this.#background.size > 0 && isBackgroundsTurn) {
      this.#editsInARow = 0;
      return this.#background.take();
    }
    this.#editsInARow = this.#background.size > 0 ? this.#editsInARow + 1 : 0;
    return this.#edits.take();
  }

  /** Forgets an item. */
  delete(item: Item): void {
    this.#edits.delete(item);
    this.#background.delete(item);
  }

  /** How many items wait to be handed out. */
  get size(): number {
    return this.#edits.size + this.#background.size;
  }

  /** Forgets what waits. */
  clear(): void {
    this.#edits.clear();
    this.#background.clear();
  }
}

/** The items of one group in the order in which they came, and the walk through them. */
interface Line<Item> {
  readonly items: Set<Item>;
  readonly walk: IterableIterator<Item>;
}

/**
 * A queue that gives every group a turn: however many items one group has, it delays an item of another by one turn.
 *
 * Sets and maps keep the order of insertion. Each is walked by one iterator: a new one would step over all that was deleted before.
 */
class FairQueue<Item extends Queued> {
  /** The groups that have items; the group whose turn is next comes first in the walk. */
  readonly #lines = new Map<string, Line<Item>>();
  #turns = this.#lines.values();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  has(item: Item): boolean {
    return this.#lines.get(item.group)?.items.has(item) === true;
  }

  /** Puts an item at the end of its group, unless it waits there. */
  add(item: Item): void {
    if (this.has(item)) return;
    let line = this.#lines.get(item.group);
    if (line === undefined) {
      const items = new Set<Item>();
      // A walk that has ended sees nothing that comes later.
      if (this.#lines.size === 0) this.#turns = this.#lines.values();
      this.#lines.set(item.group, (line = { items, walk: items.values() }));
    }
    line.items.add(item);
    this.#size++;
  }

  /** Takes the next item; the turn goes to the next group. */
  take(): Item | undefined {
    if (this.#size === 0) return undefined;
    const line = this.#turns.next().value as Line<Item>;
    const item = line.walk.next().value as Item;
    this.delete(item);
    if (line.items.size === 0) return item;
    this.#lines.delete(item.group);
    this.#lines.set(item.group, line);
    return item;
  }

  /** Takes an item out, wherever it stands. */
  delete(item: Item): void {
    const line = this.#lines.get(item.group);
    if (line?.items.delete(item) !== true) return;
    this.#size--;
    if (line.items.size === 0) this.#lines.delete(item.group);
  }

  clear(): void {
    this.#lines.clear();
    this.#size = 0;
  }
}
