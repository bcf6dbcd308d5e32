import fc from "fast-check";
import { WorkQueue } from "#runtime/queue/work-queue.js";
import { assert, suite } from "../../../support/suite.js";
import { VirtualClock } from "../../../support/virtual-clock.js";

function createQueue() {
  const clock = new VirtualClock();
  let readyCalls = 0;
  const queue = new WorkQueue<string>({ clock, onReady: () => readyCalls++ });
  const takeAll = () => {
    const taken: string[] = [];
    for (let key = queue.take(); key !== undefined; key = queue.take()) taken.push(key);
    return taken;
  };
  return { clock, queue, takeAll, readyCalls: () => readyCalls };
}

suite("work queue", (test) => {
  test("an added key is handed out once, however often it was added", () => {
    const { queue, takeAll } = createQueue();
    queue.add("a");
    queue.add("a");
    queue.add("a", 50);
    assert.equal(takeAll(), ["a"]);
  });

  test("a key is not handed out before it is given back", () => {
    const { queue } = createQueue();
    queue.add("a");
    assert.is(queue.take(), "a");
    queue.add("a");
    assert.is(queue.take(), undefined);
    queue.done("a");
    assert.is(queue.take(), "a");
  });

  test("a key added many times while it runs runs exactly once more", () => {
    const { queue } = createQueue();
    queue.add("a");
    queue.take();
    for (let index = 0; index < 5; index++) queue.add("a");
    queue.done("a");
    assert.is(queue.take(), "a");
    queue.done("a");
    assert.is(queue.take(), undefined);
  });

  test("the earlier of two due times holds, also while the key runs", () => {
    const { queue, clock, takeAll } = createQueue();
    queue.add("a", 100);
    queue.add("a", 30);
    queue.add("a", 70);
    clock.advance(29);
    assert.equal(takeAll(), []);
    clock.advance(1);
    assert.equal(takeAll(), ["a"]);
    queue.add("a", 100);
    queue.add("a", 20);
    queue.done("a");
    clock.advance(20);
    assert.equal(takeAll(), ["a"]);
  });

  test("keys come out in the order in which they became due", () => {
    const { queue, clock, takeAll } = createQueue();
    queue.add("late", 30);
    queue.add("early", 10);
    queue.add("middle", 20);
    queue.add("now");
    clock.advance(40);
    assert.equal(takeAll(), ["now", "early", "middle", "late"]);
  });

  test("a ready key that is added again keeps its place", () => {
    const { queue, takeAll } = createQueue();
    queue.add("a");
    queue.add("b");
    queue.add("a");
    assert.equal(takeAll(), ["a", "b"]);
  });

  test("a removed key is forgotten, and a running one does not run again", () => {
    const { queue, clock, takeAll } = createQueue();
    queue.add("ready");
    queue.add("waiting", 10);
    queue.add("running");
    queue.remove("ready");
    queue.remove("waiting");
    assert.is(queue.take(), "running");
    queue.add("running");
    queue.remove("running");
    queue.done("running");
    clock.advance(20);
    assert.equal(takeAll(), []);
  });

  test("a closed queue hands out nothing and takes nothing", () => {
    const { queue, clock, takeAll } = createQueue();
    queue.add("running");
    queue.take();
    queue.add("ready");
    queue.add("waiting", 10);
    queue.add("running");
    queue.close();
    queue.done("running");
    queue.add("new");
    clock.advance(20);
    assert.equal(takeAll(), []);
    assert.is(clock.nextDueAt, undefined);
  });

  test("a key is imminent when it is ready or was added without delay while it runs", () => {
    const { queue, clock } = createQueue();
    queue.add("a", 10);
    assert.not(queue.isImminent("a"));
    clock.advance(10);
    assert.ok(queue.isImminent("a"));
    queue.take();
    assert.not(queue.isImminent("a"));
    queue.add("a", 10);
    assert.not(queue.isImminent("a"));
    queue.add("a");
    assert.ok(queue.isImminent("a"));
  });

  test("giving back a key twice, or one never taken, changes nothing", () => {
    const { queue, takeAll } = createQueue();
    queue.done("a");
    queue.add("a");
    assert.equal(takeAll(), ["a"]);
    queue.done("a");
    queue.done("a");
    assert.is(queue.depth, 0);
    assert.equal(takeAll(), []);
  });

  test("whoever is told of a ready key can take it at once", () => {
    const clock = new VirtualClock();
    const taken: (string | undefined)[] = [];
    const queue: WorkQueue<string> = new WorkQueue<string>({ clock, onReady: () => taken.push(queue.take()) });
    queue.add("a");
    queue.add("b", 5);
    clock.advance(5);
    assert.equal(taken, ["a", "b"]);
  });

  test("any sequence of operations agrees with the model", () => {
    const key = fc.constantFrom("a", "b", "c", "d");
    const delay = fc.constantFrom(0, 0, 1, 5, 5, 20);
    const commands = [
      fc.tuple(key, delay).map(([name, delayMs]) => new Add(name, delayMs)),
      fc.constant(new Take()),
      key.map((name) => new Done(name)),
      key.map((name) => new Remove(name)),
      fc.constantFrom(0, 1, 5, 21).map((ms) => new Advance(ms)),
    ];
    fc.assert(
      fc.property(fc.commands(commands, { maxCommands: 60, size: "+1" }), (sequence) => {
        fc.modelRun(() => {
          const { queue, clock } = createQueue();
          return { model: new Model(), real: { queue, clock } };
        }, sequence);
      }),
      { numRuns: 400 },
    );
  });
});

/** The queue as its promises describe it: what waits with its due time, what became due in which order, what runs. */
class Model {
  now = 0;
  readonly waiting = new Map<string, number>();
  readonly ready: string[] = [];
  readonly running = new Map<string, number | undefined>();

  add(key: string, delayMs: number): void {
    const dueAt = this.now + delayMs;
    if (this.running.has(key)) this.running.set(key, Math.min(this.running.get(key) ?? Infinity, dueAt));
    else if (!this.ready.includes(key)) {
      // A later addition for an earlier time also changes the order among those due at once.
      const before = this.waiting.get(key);
      if (before === undefined || dueAt < before) {
        this.waiting.delete(key);
        this.waiting.set(key, dueAt);
      }
      this.advance(0);
    }
  }

  advance(ms: number): void {
    this.now += ms;
    const due = [...this.waiting].filter(([, dueAt]) => dueAt <= this.now).sort(([, a], [, b]) => a - b);
    for (const [key] of due) {
      this.waiting.delete(key);
      this.ready.push(key);
    }
  }

  take(): string | undefined {
    const key = this.ready.shift();
    if (key !== undefined) this.running.set(key, undefined);
    return key;
  }

  done(key: string): void {
    const again = this.running.get(key);
    if (this.running.delete(key) && again !== undefined) this.add(key, Math.max(0, again - this.now));
  }

  remove(key: string): void {
    this.waiting.delete(key);
    if (this.ready.includes(key)) this.ready.splice(this.ready.indexOf(key), 1);
    if (this.running.has(key)) this.running.set(key, undefined);
  }
}

interface Real {
  readonly queue: WorkQueue<string>;
  readonly clock: VirtualClock;
}

function checkAgreement(model: Model, { queue }: Real): void {
  assert.is(queue.depth, model.ready.length + model.running.size);
  for (const key of ["a", "b", "c", "d"]) {
    const again = model.running.get(key);
    const isImminent = model.ready.includes(key) || (again !== undefined && again <= model.now);
    assert.is(queue.isImminent(key), isImminent, `${key} is imminent`);
  }
}

class Add implements fc.Command<Model, Real> {
  readonly #key: string;
  readonly #delayMs: number;

  constructor(key: string, delayMs: number) {
    this.#key = key;
    this.#delayMs = delayMs;
  }

  check(): boolean {
    return true;
  }

  run(model: Model, real: Real): void {
    model.add(this.#key, this.#delayMs);
    real.queue.add(this.#key, this.#delayMs);
    checkAgreement(model, real);
  }

  toString(): string {
    return `add(${this.#key}, ${this.#delayMs})`;
  }
}

class Take implements fc.Command<Model, Real> {
  check(): boolean {
    return true;
  }

  run(model: Model, real: Real): void {
    const running = [...model.running.keys()];
    const key = real.queue.take();
    assert.not(key !== undefined && running.includes(key), `${key} is handed out twice at once`);
    assert.is(key, model.take());
    checkAgreement(model, real);
  }

  toString(): string {
    return "take()";
  }
}

class Done implements fc.Command<Model, Real> {
  readonly #key: string;

  constructor(key: string) {
    this.#key = key;
  }

  check(): boolean {
    return true;
  }

  run(model: Model, real: Real): void {
    model.done(this.#key);
    real.queue.done(this.#key);
    checkAgreement(model, real);
  }

  toString(): string {
    return `done(${this.#key})`;
  }
}

class Remove implements fc.Command<Model, Real> {
  readonly #key: string;

  constructor(key: string) {
    this.#key = key;
  }

  check(): boolean {
    return true;
  }

  run(model: Model, real: Real): void {
    model.remove(this.#key);
    real.queue.remove(this.#key);
    checkAgreement(model, real);
  }

  toString(): string {
    return `remove(${this.#key})`;
  }
}

class Advance implements fc.Command<Model, Real> {
  readonly #ms: number;

  constructor(ms: number) {
    this.#ms = ms;
  }

  check(): boolean {
    return true;
  }

  run(model: Model, real: Real): void {
    model.advance(this.#ms);
    real.clock.advance(this.#ms);
    checkAgreement(model, real);
  }

  toString(): string {
    return `advance(${this.#ms})`;
  }
}
