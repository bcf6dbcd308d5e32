import type { ReconcilePriority } from "../base/reconcile-reason.js";
import { LinkedList, type Linked } from "./linked-list.js";

// One in this many goes to the background while both wait: a flood of edits slows a start down, and does not stop it.
const BACKGROUND_SHARE = 5;

/** What a work queue hands out. It carries its place in the queue itself, which only the queue changes. */
export interface WorkItem<Item extends WorkItem<Item>> extends Queued<Item> {
  /** How urgently it waits. */
  priority: ReconcilePriority;
  isRunning: boolean;
  /** How urgently it was added while it runs. */
  again: ReconcilePriority | undefined;
}

/** The place of an item that is in no queue. */
export const NOT_QUEUED = {
  line: undefined,
  previous: undefined,
  next: undefined,
  priority: "background",
  isRunning: false,
  again: undefined,
} as const;

/**
 * The items that are ready, of which none is handed out twice at once.
 *
 * Every item that was added is handed out at least once afterwards; however often it was added, it waits only once. Edits come before the
 * background, which still gets one turn in five. Among equals the groups take turns. Every operation takes constant time, and none makes
 * anything that has to be collected.
 */
export class WorkQueue<Item extends WorkItem<Item>> {
  readonly #edits = new FairQueue<Item>();
  readonly #background = new FairQueue<Item>();
  #runningCount = 0;
  /** How many edits were handed out while the background waited. */
  #editsInARow = 0;
  #isClosed = false;

  /**
   * Adds an item.
   *
   * One that waits already keeps its place, unless it becomes more urgent. One that runs is handed out once more afterwards, so a change
   * seen during a reconcile is never lost.
   */
  add(item: Item, priority: ReconcilePriority = "edit"): void {
    if (this.#isClosed) return;
    if (item.isRunning) item.again = higher(item.again, priority);
    else if (item.line === undefined) this.#put(item, priority);
    else if (item.priority === "background" && priority === "edit") {
      this.#background.remove(item);
      this.#put(item, priority);
    }
  }

  /** Hands out the item whose turn it is; it must be given back with `done`. */
  take(): Item | undefined {
    const item = this.#next();
    if (item === undefined) return undefined;
    item.isRunning = true;
    this.#runningCount++;
    return item;
  }

  /** Gives back an item that was handed out; it is ready again if it was added meanwhile. */
  done(item: Item): void {
    if (!item.isRunning) return;
    const { again } = item;
    item.isRunning = false;
    item.again = undefined;
    this.#runningCount--;
    if (again !== undefined && !this.#isClosed) this.#put(item, again);
  }

  /** Forgets an item that waits; one that runs is not disturbed, and does not run again. */
  remove(item: Item): void {
    item.again = undefined;
    if (item.line !== undefined) this.#queueOf(item.priority).remove(item);
  }

  /** How many items wait to be handed out. */
  get readyCount(): number {
    return this.#edits.size + this.#background.size;
  }

  /** How many items are handed out. */
  get runningCount(): number {
    return this.#runningCount;
  }

  /** Hands out nothing more and forgets what waits. */
  close(): void {
    this.#isClosed = true;
    this.#edits.clear();
    this.#background.clear();
  }

  #put(item: Item, priority: ReconcilePriority): void {
    item.priority = priority;
    this.#queueOf(priority).add(item);
  }

  #next(): Item | undefined {
    const isBackgroundsTurn = this.#edits.size === 0 || this.#editsInARow >= BACKGROUND_SHARE - 1;
    if (this.#background.size > 0 && isBackgroundsTurn) {
      this.#editsInARow = 0;
      return this.#background.take();
    }
    this.#editsInARow = this.#background.size > 0 ? this.#editsInARow + 1 : 0;
    return this.#edits.take();
  }

  #queueOf(priority: ReconcilePriority): FairQueue<Item> {
    return priority === "edit" ? this.#edits : this.#background;
  }
}

function higher(one: ReconcilePriority | undefined, other: ReconcilePriority): ReconcilePriority {
  return one === "edit" ? one : other;
}

/** What stands in a fair queue. */
export interface Queued<Item extends Queued<Item>> extends Linked<Item> {
  /** Whose turn it takes; the queue only replaces it by an equal one. */
  group: string;
  /** Where it stands; set by the queue. */
  line: Line<Item> | undefined;
}

/** The items of one group in the order in which they came. */
interface Line<Item extends Queued<Item>> extends Linked<Line<Item>> {
  readonly group: string;
  readonly items: LinkedList<Item>;
}

/**
 * A queue that gives every group a turn: however many items one group has, it delays an item of another by one turn.
 *
 * Within a group, first come is first served. Every operation takes constant time.
 */
export class FairQueue<Item extends Queued<Item>> {
  readonly #lines = new Map<string, Line<Item>>();
  /** The groups that have items, the one whose turn is next at the front. */
  readonly #turns = new LinkedList<Line<Item>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Puts an item, which is in no queue, at the end of its group. */
  add(item: Item): void {
    let line = this.#lines.get(item.group);
    if (line === undefined) {
      line = { group: item.group, items: new LinkedList(), previous: undefined, next: undefined };
      this.#lines.set(item.group, line);
      this.#turns.append(line);
    }
    // Strings that are one and the same are compared without a look at what they say.
    item.group = line.group;
    line.items.append(item);
    item.line = line;
    this.#size++;
  }

  /** Takes the next item; the turn goes to the next group. */
  take(): Item | undefined {
    const line = this.#turns.first;
    const item = line?.items.first;
    if (line === undefined || item === undefined) return undefined;
    this.remove(item);
    // An empty line has left already.
    if (line.items.first !== undefined && line.next !== undefined) {
      this.#turns.remove(line);
      this.#turns.append(line);
    }
    return item;
  }

  /** Takes an item of this queue out, wherever it stands. */
  remove(item: Item): void {
    const { line } = item;
    if (line === undefined) return;
    line.items.remove(item);
    item.line = undefined;
    this.#size--;
    if (line.items.first !== undefined) return;
    this.#turns.remove(line);
    this.#lines.delete(line.group);
  }

  /** Takes everything out. */
  clear(): void {
    while (this.take() !== undefined);
  }
}
