import type { ReconcilePriority } from "../../base/reconcile-reason.js";

// One in this many goes to the background while both wait: a flood of edits slows a start down, and does not stop it.
const BACKGROUND_SHARE = 5;
// So many items that are out already may stay in memory for a while.
const FEW = 32;
const MANY = 1_000;

/** What a work queue hands out. */
export interface Queued {
  /** Whose turn it takes; it never changes. */
  readonly group: string;
  /** How urgently it waits; only the queue changes it. */
  waiting: ReconcilePriority | undefined;
}

/**
 * The items that are ready.
 *
 * However often an item was added, it waits only once. Edits come before the background, which still gets one turn in five. Among equals
 * the groups take turns: however many items one group has, it delays an item of another by one turn. Every operation takes constant time.
 */
export class WorkQueue<Item extends Queued> {
  readonly #queues = { edit: new FairQueue<Item>("edit"), background: new FairQueue<Item>("background") };
  /** How many edits were handed out while the background waited. */
  #editsInARow = 0;

  /** Adds an item. An item that waits already keeps its place, unless it becomes more urgent. */
  add(item: Item, priority: ReconcilePriority = "edit"): void {
    if (item.waiting === "edit" || item.waiting === priority) return;
    this.delete(item);
    item.waiting = priority;
    this.#queues[priority].push(item);
  }

  /** Hands out the item whose turn it is. */
  take(): Item | undefined {
    const { edit, background } = this.#queues;
    const isBackgroundsTurn = edit.size === 0 || this.#editsInARow >= BACKGROUND_SHARE - 1;
    const isBackground = background.size > 0 && isBackgroundsTurn;
    this.#editsInARow = background.size > 0 && !isBackground ? this.#editsInARow + 1 : 0;
    return isBackground ? background.shift() : edit.shift();
  }

  /** Forgets an item. If it is added again, it may take the place that it had. */
  delete(item: Item): void {
    if (item.waiting !== undefined) this.#queues[item.waiting].size--;
    item.waiting = undefined;
  }

  get size(): number {
    return this.#queues.edit.size + this.#queues.background.size;
  }
}

/** The items of one priority. Items that do not wait with it any more are stepped over when their turn comes. */
class FairQueue<Item extends Queued> {
  readonly #priority: ReconcilePriority;
  readonly #lines = new Map<string, Fifo<Item>>();
  /** The lines that have items, the line whose turn is next first. */
  readonly #turns = new Fifo<Fifo<Item>>();
  size = 0;

  constructor(priority: ReconcilePriority) {
    this.#priority = priority;
  }

  push(item: Item): void {
    // Lines are kept for the next batch, but not for ever: namespaces come and go.
    if (this.size === 0 && this.#lines.size > MANY) this.#lines.clear();
    let line = this.#lines.get(item.group);
    if (line === undefined) this.#lines.set(item.group, (line = new Fifo<Item>()));
    if (line.isEmpty) this.#turns.push(line);
    line.push(item);
    this.size++;
  }

  shift(): Item | undefined {
    for (let line = this.#turns.shift(); line !== undefined; line = this.#turns.shift()) {
      let item = line.shift();
      while (item !== undefined && item.waiting !== this.#priority) item = line.shift();
      if (!line.isEmpty) this.#turns.push(line);
      if (item === undefined) continue;
      item.waiting = undefined;
      this.size--;
      return item;
    }
    return undefined;
  }
}

/** First in, first out, in constant time on average. */
class Fifo<Item> {
  #items: Item[] = [];
  /** How many of them are out already. */
  #taken = 0;

  push(item: Item): void {
    this.#items.push(item);
  }

  shift(): Item | undefined {
    if (this.isEmpty) return undefined;
    const item = this.#items[this.#taken++];
    if (this.#taken > FEW && this.#taken * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#taken);
      this.#taken = 0;
    }
    return item;
  }

  get isEmpty(): boolean {
    return this.#taken === this.#items.length;
  }
}
