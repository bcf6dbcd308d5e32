import type { StoredObject } from "./stored-object.js";

/** One write: what was there before and what is there now; one of the two is missing for creations and deletions. */
export class StoreEvent {
  readonly revision: number;
  readonly key: string;
  readonly previous: StoredObject | undefined;
  readonly current: StoredObject | undefined;
  #departed: StoredObject | undefined;

  constructor(write: {
    revision: number;
    key: string;
    previous: StoredObject | undefined;
    current: StoredObject | undefined;
  }) {
    this.revision = write.revision;
    this.key = write.key;
    this.previous = write.previous;
    this.current = write.current;
  }

  /** The state before the write at the revision of the write, which is what DELETED events carry. Rarely needed, so made when it is. */
  get departed(): StoredObject | undefined {
    return (this.#departed ??= this.previous?.at(this.revision));
  }
}

const NONE: readonly StoreEvent[] = [];

/** The latest writes to one resource, in order, up to a limit; older ones are compacted away. */
export class History {
  readonly #limit: number;
  #events: StoreEvent[] = [];
  #start = 0;
  #compacted: number;

  constructor(options: { limit: number; compacted: number }) {
    this.#limit = options.limit;
    this.#compacted = options.compacted;
  }

  /** The newest revision whose event is gone; what happened after it is known completely. */
  get compacted(): number {
    return this.#compacted;
  }

  /** The writes that are remembered, oldest first. */
  get events(): readonly StoreEvent[] {
    return this.#events.slice(this.#start);
  }

  /** Appends the newest write; returns the writes that are forgotten for it. */
  push(event: StoreEvent): readonly StoreEvent[] {
    this.#events.push(event);
    return this.#events.length - this.#start > this.#limit ? this.#dropUntil(this.#start + 1) : NONE;
  }

  /** Returns the writes after `revision`; undefined when some of them are compacted. */
  after(revision: number): StoreEvent[] | undefined {
    if (revision < this.#compacted) return undefined;
    return this.#events.slice(this.#indexAfter(revision));
  }

  /** Forgets every write up to `revision`, and returns those that it had. */
  compact(revision: number): readonly StoreEvent[] {
    const dropped = this.#dropUntil(this.#indexAfter(revision));
    this.#compacted = Math.max(this.#compacted, revision);
    return dropped;
  }

  #dropUntil(index: number): readonly StoreEvent[] {
    const dropped = this.#events.slice(this.#start, index);
    if (index > this.#start) this.#compacted = (this.#events[index - 1] as StoreEvent).revision;
    this.#start = index;
    // Moving the rest only now and then keeps an append cheap.
    if (this.#start > this.#limit) {
      this.#events = this.#events.slice(this.#start);
      this.#start = 0;
    }
    return dropped;
  }

  #indexAfter(revision: number): number {
    let low = this.#start;
    let high = this.#events.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#events[middle] as StoreEvent).revision <= revision) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
