/** What can be in a list; an item is in one list at a time. */
export interface Linked<Item> {
  previous: Item | undefined;
  next: Item | undefined;
}

/** A list that any item can leave at once, wherever it stands. */
export class LinkedList<Item extends Linked<Item>> {
  #first: Item | undefined;
  #last: Item | undefined;

  get first(): Item | undefined {
    return this.#first;
  }

  /** Puts an item, which is in no list, at the end. */
  append(item: Item): void {
    item.previous = this.#last;
    if (this.#last === undefined) this.#first = item;
    else this.#last.next = item;
    this.#last = item;
  }

  /** Takes an item of this list out. */
  remove(item: Item): void {
    if (item.previous === undefined) this.#first = item.next;
    else item.previous.next = item.next;
    if (item.next === undefined) this.#last = item.previous;
    else item.next.previous = item.previous;
    item.previous = item.next = undefined;
  }
}
