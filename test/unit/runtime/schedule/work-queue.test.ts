import fc from "fast-check";
import type { ReconcilePriority } from "#runtime/base/reconcile-reason.js";
import { NOT_QUEUED } from "#runtime/schedule/work-queue.js";
import { assert, suite } from "../../../support/suite.js";
import { KeyedWorkQueue } from "./keyed-queues.js";

function takeAll(queue: KeyedWorkQueue): string[] {
  const taken: string[] = [];
  for (let key = queue.take(); key !== undefined; key = queue.take()) taken.push(key);
  return taken;
}

suite("work queue", (test) => {
  test("an added key is handed out once, however often it was added", () => {
    const queue = new KeyedWorkQueue();
    for (const priority of ["edit", "edit", "background"] as const) queue.add("a", priority);
    assert.equal(takeAll(queue), ["a"]);
  });

  test("a key is not handed out before it is given back", () => {
    const queue = new KeyedWorkQueue();
    queue.add("a");
    assert.is(queue.take(), "a");
    queue.add("a");
    assert.is(queue.take(), undefined);
    queue.done("a");
    assert.is(queue.take(), "a");
  });

  test("a key added many times while it runs runs exactly once more, as urgently as the most urgent time", () => {
    const queue = new KeyedWorkQueue();
    queue.add("a");
    queue.take();
    for (const priority of ["background", "edit", "background"] as const) queue.add("a", priority);
    queue.add("b", "background");
    queue.done("a");
    assert.equal(takeAll(queue), ["a", "b"]);
    queue.done("a");
    assert.is(queue.take(), undefined);
  });

  test("edits come before the background, and each in the order in which they came", () => {
    const queue = new KeyedWorkQueue();
    queue.add("c", "background");
    queue.add("d", "background");
    queue.add("a");
    queue.add("b");
    assert.equal(takeAll(queue), ["a", "b", "c", "d"]);
  });

  test("a waiting key that becomes more urgent goes before the background, and never becomes less urgent", () => {
    const queue = new KeyedWorkQueue();
    for (const key of ["a", "b", "c"]) queue.add(key, "background");
    queue.add("c", "edit");
    queue.add("c", "background");
    assert.equal(takeAll(queue), ["c", "a", "b"]);
  });

  test("a ready key that is added again keeps its place", () => {
    const queue = new KeyedWorkQueue();
    for (const key of ["a", "b", "a"]) queue.add(key);
    assert.equal(takeAll(queue), ["a", "b"]);
  });

  test("the background gets one turn in five while edits wait", () => {
    const queue = new KeyedWorkQueue();
    for (let index = 0; index < 12; index++) queue.add(`edit${index}`);
    for (let index = 0; index < 3; index++) queue.add(`back${index}`, "background");
    const kinds = takeAll(queue).map((key) => key.slice(0, 1));
    assert.is(kinds.join(""), "eeeebeeeebeeeeb");
  });

  test("10,000 ready keys of one namespace delay a key of another by one turn", () => {
    const queue = new KeyedWorkQueue();
    for (let index = 0; index < 10_000; index++) queue.add(`crowd/${index}`);
    queue.take();
    queue.add("lone/one");
    assert.equal([queue.take(), queue.take()], ["crowd/1", "lone/one"]);
  });

  test("a removed key is forgotten, and a running one does not run again", () => {
    const queue = new KeyedWorkQueue();
    queue.add("ready");
    queue.add("running");
    queue.remove("ready");
    assert.is(queue.take(), "running");
    queue.add("running");
    queue.remove("running");
    queue.done("running");
    assert.equal(takeAll(queue), []);
    assert.is(queue.readyCount + queue.runningCount, 0);
  });

  test("a closed queue hands out nothing and takes nothing", () => {
    const queue = new KeyedWorkQueue();
    queue.add("running");
    queue.take();
    queue.add("ready");
    queue.add("running");
    queue.close();
    queue.add("new");
    assert.is(queue.runningCount, 1);
    queue.done("running");
    assert.equal(takeAll(queue), []);
    assert.is(queue.readyCount + queue.runningCount, 0);
  });

  test("what left a queue holds nothing of it", () => {
    const queue = new KeyedWorkQueue();
    for (const key of ["a/1", "a/2", "b/1", "ready", "removed", "running"]) queue.add(key);
    for (const key of [queue.take()!, queue.take()!]) {
      queue.add(key);
      queue.done(key);
    }
    queue.remove("removed");
    queue.close();
    for (const key of ["a/1", "a/2", "b/1", "ready", "removed", "running"]) {
      const { group: _group, key: _key, priority: _priority, ...place } = queue.itemOf(key);
      const { priority: _none, ...nowhere } = NOT_QUEUED;
      assert.equal(place, nowhere, key);
    }
  });

  test("giving back a key twice, or one never taken, changes nothing", () => {
    const queue = new KeyedWorkQueue();
    queue.done("a");
    queue.add("a");
    queue.done("a");
    assert.equal(takeAll(queue), ["a"]);
    queue.done("a");
    queue.done("a");
    assert.is(queue.runningCount, 0);
  });

  test("in any sequence of operations no key runs twice at once, none is lost, and turns are kept", () => {
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 120, size: "+1" }), (operations) => {
        const queue = new KeyedWorkQueue();
        const model = new Model();
        for (const apply of operations) {
          apply(queue, model);
          assert.is(queue.readyCount, model.ready.length, "ready");
          assert.is(queue.runningCount, model.running.size, "running");
        }
      }),
      { numRuns: 500 },
    );
  });

  test("whatever waits in a namespace, a key is handed out after at most one turn of each other namespace per place", () => {
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
  readonly running = new Map<string, ReconcilePriority | undefined>();
  editsInARow = 0;
}

type Operation = (queue: KeyedWorkQueue, model: Model) => void;

const key = fc.constantFrom("a/1", "a/2", "a/3", "b/1", "b/2", "c");
const priority = fc.constantFrom<ReconcilePriority>("edit", "background");

function add({ ready, running }: Model, name: string, urgency: ReconcilePriority): void {
  const waiting = ready.find((each) => each.key === name);
  if (running.has(name)) running.set(name, running.get(name) === "edit" ? "edit" : urgency);
  else if (waiting === undefined) ready.push({ key: name, priority: urgency });
  else if (urgency === "edit") waiting.priority = "edit";
}

function take(queue: KeyedWorkQueue, model: Model): void {
  const { ready, running } = model;
  const taken = queue.take();
  const index = ready.findIndex((each) => each.key === taken);
  if (ready.length === 0) {
    // The background did not wait while nothing was handed out.
    model.editsInARow = 0;
    return void assert.is(taken, undefined);
  }
  assert.ok(index >= 0, `${taken} was added`);
  assert.not(running.has(taken!), `${taken} is handed out twice at once`);
  const [entry] = ready.splice(index, 1);
  const others = new Set(ready.map((each) => each.priority));
  if (entry!.priority === "edit") model.editsInARow = others.has("background") ? model.editsInARow + 1 : 0;
  else {
    assert.ok(!others.has("edit") || model.editsInARow >= 4, "the background waits for edits");
    model.editsInARow = 0;
  }
  assert.ok(model.editsInARow <= 4, "the background gets its turn");
  running.set(taken!, undefined);
}

const operation: fc.Arbitrary<Operation> = fc.oneof(
  fc.tuple(key, priority).map(([name, urgency]): Operation => {
    return (queue, model) => {
      queue.add(name, urgency);
      add(model, name, urgency);
    };
  }),
  fc.constant<Operation>(take),
  key.map((name): Operation => {
    return (queue, model) => {
      queue.done(name);
      const again = model.running.get(name);
      if (model.running.delete(name) && again !== undefined) add(model, name, again);
    };
  }),
  key.map((name): Operation => {
    return (queue, model) => {
      queue.remove(name);
      const index = model.ready.findIndex((each) => each.key === name);
      if (index >= 0) model.ready.splice(index, 1);
      if (model.running.has(name)) model.running.set(name, undefined);
    };
  }),
);
