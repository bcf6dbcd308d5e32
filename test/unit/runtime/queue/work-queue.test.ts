import fc from "../../../support/fast-check.js";
import type { ReconcilePriority } from "#runtime/queue/processor.js";
import { WorkQueue, type Queued } from "#runtime/queue/work-queue.js";
import { assert, suite } from "../../../support/suite.js";

interface Work extends Queued {
  readonly key: string;
}

/** A work queue of keys; what comes before the slash is the group. */
class KeyedWorkQueue {
  readonly #queue = new WorkQueue<Work>();
  readonly #items = new Map<string, Work>();

  add(key: string, priority?: ReconcilePriority): void {
    this.#queue.add(this.#itemOf(key), priority);
  }

  take(): string | undefined {
    return this.#queue.take()?.key;
  }

  delete(key: string): void {
    this.#queue.delete(this.#itemOf(key));
  }

  get size(): number {
    return this.#queue.size;
  }

  #itemOf(key: string): Work {
    const item = this.#items.get(key) ?? {
      waiting: undefined,
      key,
      group: key.slice(0, Math.max(0, key.indexOf("/"))),
    };
    this.#items.set(key, item);
    return item;
  }
}

function takeAll(queue: KeyedWorkQueue): string[] {
  const taken: string[] = [];
  for (let key = queue.take(); key !== undefined; key = queue.take()) taken.push(key);
  return taken;
}

suite("WorkQueue", (test) => {
  test("returns a key once, however often it was added", () => {
    const queue = new KeyedWorkQueue();
    for (const priority of ["edit", "edit", "background"] as const) queue.add("a", priority);
    assert.equal(takeAll(queue), ["a"]);
  });

  test("returns edits before background keys, each in order of arrival", () => {
    const queue = new KeyedWorkQueue();
    queue.add("c", "background");
    queue.add("d", "background");
    queue.add("a");
    queue.add("b");
    assert.equal(takeAll(queue), ["a", "b", "c", "d"]);
  });

  test("raises the priority of a waiting key but never lowers it", () => {
    const queue = new KeyedWorkQueue();
    for (const key of ["a", "b", "c"]) queue.add(key, "background");
    queue.add("c", "edit");
    queue.add("c", "background");
    assert.equal(takeAll(queue), ["c", "a", "b"]);
  });

  test("keeps the position of a waiting key that is added again", () => {
    const queue = new KeyedWorkQueue();
    for (const key of ["a", "b", "a"]) queue.add(key);
    assert.equal(takeAll(queue), ["a", "b"]);
  });

  test("returns one background key after four edits", () => {
    const queue = new KeyedWorkQueue();
    for (let index = 0; index < 12; index++) queue.add(`edit${index}`);
    for (let index = 0; index < 3; index++) queue.add(`back${index}`, "background");
    const kinds = takeAll(queue).map((key) => key.slice(0, 1));
    assert.is(kinds.join(""), "eeeebeeeebeeeeb");
  });

  test("alternates between namespaces, so that 10,000 keys of one delay another by one turn", () => {
    const queue = new KeyedWorkQueue();
    for (let index = 0; index < 10_000; index++) queue.add(`crowd/${index}`);
    queue.take();
    queue.add("lone/one");
    assert.equal([queue.take(), queue.take()], ["crowd/1", "lone/one"]);
  });

  test("removes a deleted key, which can be added again", () => {
    const queue = new KeyedWorkQueue();
    for (const key of ["a/1", "a/2", "b/1"]) queue.add(key);
    queue.delete("a/1");
    queue.delete("b/1");
    queue.delete("b/2");
    assert.is(queue.size, 1);
    queue.add("a/1");
    assert.equal(takeAll(queue), ["a/1", "a/2"]);
    assert.is(queue.size, 0);
  });

  test("returns each waiting key once, by priority and with fairness, in any sequence of operations", () => {
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 120, size: "+1" }), (operations) => {
        const queue = new KeyedWorkQueue();
        const model = new Model();
        for (const apply of operations) {
          apply(queue, model);
          assert.is(queue.size, model.ready.length);
        }
      }),
      { numRuns: 500 },
    );
  });

  test("returns a key after at most one turn of each other namespace per position", () => {
    const added = fc.array(fc.tuple(fc.integer({ min: 0, max: 3 }), fc.integer({ min: 0, max: 20 })), { minLength: 1 });
    fc.assert(
      fc.property(added, (pairs) => {
        const queue = new KeyedWorkQueue();
        const keys = [...new Set(pairs.map(([namespace, name]) => `n${namespace}/${name}`))];
        for (const key of keys) queue.add(key);
        const placeOf = (key: string) => keys.filter((other) => other.split("/")[0] === key.split("/")[0]).indexOf(key);
        const namespaces = new Set(keys.map((key) => key.split("/")[0])).size;
        for (const [turn, key] of takeAll(queue).entries())
          assert.ok(turn < (placeOf(key) + 1) * namespaces, `${key} in turn ${turn}`);
      }),
    );
  });
});

/** The queue as its promises describe it. */
class Model {
  readonly ready: { key: string; priority: ReconcilePriority }[] = [];
  editsInARow = 0;
}

type Operation = (queue: KeyedWorkQueue, model: Model) => void;

const key = fc.constantFrom("a/1", "a/2", "a/3", "b/1", "b/2", "c");
const priority = fc.constantFrom<ReconcilePriority>("edit", "background");

function take(queue: KeyedWorkQueue, model: Model): void {
  const { ready } = model;
  const taken = queue.take();
  const index = ready.findIndex((each) => each.key === taken);
  if (ready.length === 0) {
    // The background did not wait while nothing was handed out.
    model.editsInARow = 0;
    return void assert.is(taken, undefined);
  }
  assert.ok(index >= 0, `${taken} was added`);
  const [entry] = ready.splice(index, 1);
  const others = new Set(ready.map((each) => each.priority));
  if (entry!.priority === "edit") model.editsInARow = others.has("background") ? model.editsInARow + 1 : 0;
  else {
    assert.ok(!others.has("edit") || model.editsInARow >= 4, "the background waits for edits");
    model.editsInARow = 0;
  }
  assert.ok(model.editsInARow <= 4, "the background gets its turn");
}

const operation: fc.Arbitrary<Operation> = fc.oneof(
  fc.tuple(key, priority).map(([name, urgency]): Operation => {
    return (queue, { ready }) => {
      queue.add(name, urgency);
      const waiting = ready.find((each) => each.key === name);
      if (waiting === undefined) ready.push({ key: name, priority: urgency });
      else if (urgency === "edit") waiting.priority = "edit";
    };
  }),
  fc.constant<Operation>(take),
  key.map((name): Operation => {
    return (queue, { ready }) => {
      queue.delete(name);
      const index = ready.findIndex((each) => each.key === name);
      if (index >= 0) ready.splice(index, 1);
    };
  }),
);
