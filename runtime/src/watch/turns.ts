// How long work without a wait may occupy the event loop, for which leader election, probes and answers wait, too.
const LONGEST_TURN_MS = 10;

/** Shares the event loop out among those who have much to do: each in its turn, one for each round of the loop. */
export class Turns {
  readonly #now: () => number;
  readonly #waiting: (() => void)[] = [];
  /** Absent if nothing was done yet in this round. */
  #startedAt: number | undefined;
  #isArmed = false;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Whether more may be done at once; if not, `next` says when. */
  mayGoOn(): boolean {
    const now = this.#now();
    if (this.#startedAt === undefined) {
      // Whoever waits has waited for longer.
      if (this.#waiting.length > 0) return false;
      this.#startedAt = now;
      this.#arm();
    }
    return now - this.#startedAt < LONGEST_TURN_MS;
  }

  /** Resolves when the turn of the caller has come; those who wait are called in the order in which they came. */
  next(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      this.#arm();
    });
  }

  #arm(): void {
    if (this.#isArmed) return;
    this.#isArmed = true;
    setImmediate(() => {
      this.#isArmed = false;
      const resolve = this.#waiting.shift();
      this.#startedAt = resolve === undefined ? undefined : this.#now();
      if (resolve === undefined) return;
      this.#arm();
      resolve();
    });
  }
}

/** Work that is taken up in turns. */
export interface TurnsOptions<Item> {
  readonly turns: Turns;
  /** Asked whenever a turn begins: work that nobody wants any more ends there. */
  isOver(): boolean;
  visit(item: Item): void;
}

/** Visits all items in their order, in as many turns as it takes; returns nothing if one was enough. */
export function visitInTurns<Item>(items: Iterator<Item>, options: TurnsOptions<Item>): void | Promise<void> {
  return visitSome(items, options) ? undefined : visitRest(items, options);
}

async function visitRest<Item>(items: Iterator<Item>, options: TurnsOptions<Item>): Promise<void> {
  do {
    await options.turns.next();
    if (options.isOver()) return;
  } while (!visitSome(items, options));
}

/** Visits items until they end, which it tells, or the turn does. */
function visitSome<Item>(items: Iterator<Item>, { turns, visit }: TurnsOptions<Item>): boolean {
  while (turns.mayGoOn()) {
    const next = items.next();
    if (next.done === true) return true;
    visit(next.value);
  }
  return false;
}
