import { LinkedList, type Linked } from "./linked-list.js";

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
