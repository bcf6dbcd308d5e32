// Bulk dependents: what becomes of their items.
import { messageOf } from "#runtime/base/logger.js";
import { assert, suite } from "../../../support/suite.js";
import { before, bulkOf, createWorkflow, fails, FakeCluster, itemsOf, only, type Asked } from "./fake-cluster.js";

suite("bulk dependents", (test) => {
  test("creates, keeps, updates and deletes items, and deletes unwanted ones first", async () => {
    const cluster = new FakeCluster();
    let keys = ["x", "y", "z"];
    let value = 1;
    const desired = () => new Map(keys.map((key) => [key, { value }]));
    const { reconcile } = createWorkflow([{ name: "a", bulk: {}, desired }], cluster);
    const first = await reconcile();
    assert.equal(cluster.ids, ["a[x]", "a[y]", "a[z]"]);
    assert.is(first.dependents["a"]?.kind, "created");
    cluster.history.length = 0;
    const second = await reconcile();
    assert.equal(cluster.history, [], "what is as desired is not written");
    assert.is(second.dependents["a"]?.kind, "unchanged");
    [keys, value] = [["y", "new"], 2];
    cluster.pauses = [2, 5, 1];
    const third = await reconcile();
    assert.equal(itemsOf(third, "a"), { x: "deleted", y: "updated", z: "deleted", new: "created" });
    for (const gone of ["x", "z"])
      for (const written of ["y", "new"]) before(cluster, `removed a[${gone}]`, `write a[${written}]`);
    assert.ok(third.isReady);
    keys = [];
    const fourth = await reconcile();
    assert.equal(cluster.ids, []);
    assert.equal(fourth.dependents["a"], {
      kind: "updated",
      isReady: true,
      items: Object.fromEntries(
        ["y", "new"].map((key) => [key, { kind: "deleted", isGone: true, because: "desired() does not return it" }]),
      ),
    });
  });

  test("evaluates postconditions for each item, and the other conditions once", async () => {
    const asked: string[] = [];
    const cluster = new FakeCluster();
    cluster.put("a", { item: "old" });
    const ask = (name: string) => (args: Asked) => {
      asked.push([name, args.item, args.live?.item].filter(Boolean).join(" "));
      return { isMet: true, detail: `${name} ${args.item}` };
    };
    const { reconcile } = createWorkflow(
      [
        bulkOf("a", ["x", "y"], {
          activationCondition: ask("activation"),
          reconcilePrecondition: ask("precondition"),
          readyPostcondition: ask("ready"),
          deletePostcondition: ask("deleted"),
        }),
      ],
      cluster,
    );
    const result = await reconcile();
    assert.equal(asked.sort(), ["activation", "deleted old", "precondition", "ready x x", "ready y y"]);
    assert.is(result.detailOf("a", "readyPostcondition", { item: "x", type: "string" }), "ready x");
    assert.is(result.detailOf("a", "deletePostcondition", { item: "old" }), "deleted old");
    assert.is(result.detailOf("a", "reconcilePrecondition"), "precondition undefined");
    assert.throws(() => result.detailOf("a", "readyPostcondition", { item: "z" }), 'dependent "a" has no item "z"');
    assert.throws(() => result.detailOf("b", "readyPostcondition"), 'the workflow has no dependent "b"; it has a');
  });

  test("continues with other items if one fails, and fails the dependent", async () => {
    const cluster = new FakeCluster();
    cluster.failures.set("a[y]", new Error("no room"));
    const { reconcile } = createWorkflow([bulkOf("a", ["x", "y", "z"]), { name: "after", dependsOn: ["a"] }], cluster);
    const result = await reconcile();
    assert.equal(itemsOf(result, "a"), { x: "created", y: "failed", z: "created" });
    assert.is(result.error?.message, 'the workflow failed: dependent "a", item "y": no room');
    assert.equal(
      (result.error?.errors as Error[]).map(({ message }) => message),
      ['dependent "a", item "y": no room'],
    );
    assert.equal(result.dependents["after"], { kind: "waiting", for: ["a"] });
  });

  test("is ready if all its items are ready", async () => {
    let ready = only("x");
    const nodes = [
      bulkOf("a", ["x", "y"], { readyPostcondition: (args: Asked) => ready(args) }),
      { name: "after", dependsOn: ["a"] },
    ];
    const { cluster, reconcile } = createWorkflow(nodes);
    const first = await reconcile();
    assert.equal(first.notReady, ["a", "after"]);
    assert.equal(first.dependents["a"]?.kind, "created");
    ready = only("x", "y");
    assert.ok((await reconcile()).isReady);
    before(cluster, "written a[y]", "write after");
  });

  test("is not ready while an item is being deleted, without blocking dependent steps", async () => {
    const cluster = new FakeCluster();
    cluster.put("a", { item: "old" });
    const nodes = [bulkOf("a", ["x"], { deletePostcondition: fails }), { name: "after", dependsOn: ["a"] }];
    const result = await createWorkflow(nodes, cluster).reconcile();
    assert.equal(cluster.writes, ["a[x]", "after"]);
    assert.equal(result.notReady, ["a"]);
  });

  test("writes at most 10 items concurrently, or maxConcurrency", async () => {
    const keys = [...Array(40).keys()].map(String);
    for (const [bulk, wanted] of [
      [{}, 10],
      [{ maxConcurrency: 3 }, 3],
      [{ maxConcurrency: 100 }, 40],
    ] as const) {
      const cluster = new FakeCluster();
      // Items start in several turns of the event loop if the machine is busy.
      cluster.turn = () => new Promise(setImmediate);
      cluster.pauses = [20, 10];
      const { reconcile, cleanup } = createWorkflow([bulkOf("a", keys, { bulk })], cluster);
      await reconcile();
      assert.is(cluster.mostAtOnce, wanted);
      cluster.mostAtOnce = 0;
      assert.ok((await cleanup()).isReady);
      assert.is(cluster.mostAtOnce, wanted);
    }
  });

  test("adds fewer than 20 listeners to the signal for 500 queued items", async () => {
    const { signal } = new AbortController();
    let listeners = 0;
    const add = signal.addEventListener.bind(signal);
    signal.addEventListener = (...args: Parameters<typeof add>) => {
      listeners++;
      add(...args);
    };
    const keys = Array.from({ length: 500 }, (_, index) => String(index));
    const { reconcile } = createWorkflow([bulkOf("a", keys)]);
    const result = await reconcile(signal);
    assert.ok(result.isReady);
    assert.ok(listeners < 20, `${listeners} listeners`);
  });

  test("yields to the event loop while items are unchanged", async () => {
    const keys = Array.from({ length: 50 }, (_, index) => String(index));
    let turns = 0;
    const seen: number[] = [];
    const slow = () => {
      const end = performance.now() + 1;
      while (performance.now() < end);
      seen.push(turns);
      return true;
    };
    const { reconcile } = createWorkflow([bulkOf("a", keys, { readyPostcondition: slow })]);
    await reconcile();
    seen.length = 0;
    setImmediate(() => turns++);
    await reconcile();
    assert.is(seen.at(-1), 1);
  });

  test("frees the slot of an item that waits for its retry", async () => {
    const cluster = new FakeCluster();
    cluster.failures.set("a[x]", new Error("not now"));
    const rest = { bulk: { maxConcurrency: 1 }, retry: { maxRetries: 1 } };
    const { reconcile } = createWorkflow([bulkOf("a", ["x", "y", "z"], rest)], cluster);
    const result = reconcile();
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
    assert.equal(cluster.writes, ["a[x]", "a[y]", "a[z]"]);
    cluster.failures.clear();
    await cluster.clock.advance(1_000);
    assert.ok((await result).isReady);
    assert.equal(cluster.writes, ["a[x]", "a[y]", "a[z]", "a[x]"]);
  });

  test("rejects a desired() that does not return items by key", async () => {
    for (const [returned, found] of [
      [[{}], "a list"],
      [null, "null"],
      ["x", "string"],
      [new Set(["x"]), "a Set"],
      [new Date(0), "a Date"],
      [Object.create(Object.create(Object.create(null))), "an object of an unknown class"],
      [new Map([[1, {}]]), "a Map with the key 1, which is no text"],
    ] as const) {
      const { reconcile } = createWorkflow([{ name: "a", bulk: {}, desired: () => returned }]);
      const { error } = await reconcile();
      const wanted = `desired() of a bulk dependent has to return its items by their keys, and returned ${found}`;
      assert.is(error?.message, `the workflow failed: dependent "a": ${wanted}`);
    }
  });

  test("fails the second of two items with the same object", async () => {
    const desired = () => ({ x: { id: "same" }, y: { id: "same" } });
    const { cluster, reconcile } = createWorkflow([{ name: "a", bulk: {}, desired }]);
    const result = await reconcile();
    assert.equal(cluster.ids, ["same"]);
    assert.equal(itemsOf(result, "a"), { x: "created", y: "failed" });
    assert.match(result.error?.message ?? "", 'it is same, and so is the item "x"');
  });

  test("deletes all items on a false reconcilePrecondition and on cleanup", async () => {
    const cluster = new FakeCluster();
    for (const item of ["x", "y"]) cluster.put("a", { item });
    const unwanted = createWorkflow([bulkOf("a", ["x"], { reconcilePrecondition: fails })], cluster);
    const result = await unwanted.reconcile();
    assert.equal(cluster.ids, []);
    assert.is(result.dependents["a"]?.kind, "deleted");
    assert.equal(itemsOf(result, "a"), { x: "deleted", y: "deleted" });
    for (const item of ["x", "y"]) cluster.put("a", { item });
    const cleanup = await createWorkflow([bulkOf("a", ["x"])], cluster).cleanup();
    assert.equal(cluster.ids, []);
    assert.ok(cleanup.isReady);
  });

  test("keeps its dependencies while an item is not deleted or fails to be deleted", async () => {
    const cluster = new FakeCluster();
    for (const item of ["x", "y"]) cluster.put("b", { item });
    cluster.put("a");
    let gone = only("x");
    const deletePostcondition = (args: Asked) => gone(args);
    const { cleanup } = createWorkflow(
      [{ name: "a" }, bulkOf("b", [], { dependsOn: ["a"], deletePostcondition })],
      cluster,
    );
    const first = await cleanup();
    assert.equal(cluster.ids, ["a"]);
    assert.equal(first.remaining, ["b"]);
    cluster.put("b", { item: "z" });
    gone = only("z");
    cluster.failures.set("b[z]", new Error("no"));
    const second = await cleanup();
    assert.equal(itemsOf(second, "b"), { z: "failed" });
    assert.equal(second.waiting, ["a"]);
    cluster.failures.clear();
    assert.ok((await cleanup()).isReady);
    assert.equal(cluster.ids, []);
  });

  test("waits for objects of other clients if it is read-only, as single dependents do", async () => {
    const cluster = new FakeCluster();
    const readyPostcondition = ({ live }: Asked) => live?.item !== "bad";
    const { reconcile, cleanup } = createWorkflow(
      [
        { name: "one", canWrite: false },
        { name: "many", bulk: {}, canWrite: false, readyPostcondition },
        { name: "after", dependsOn: ["one"] },
      ],
      cluster,
    );
    const first = await reconcile();
    assert.equal(first.dependents["one"], { kind: "waiting", for: ["one"] });
    assert.equal(first.notReady, ["one", "after"]);
    cluster.put("one");
    cluster.put("many", { item: "good" });
    cluster.put("many", { item: "bad" });
    const second = await reconcile();
    assert.equal(second.dependents["one"], { kind: "unchanged", isReady: true });
    assert.equal(second.notReady, ["many"]);
    assert.equal(cluster.writes, ["after"]);
    const cleaned = await cleanup();
    assert.ok(cleaned.isReady);
    assert.equal(cluster.ids, ["many[bad]", "many[good]", "one"]);
    assert.is(cleaned.dependents["one"]?.kind, "left");
    assert.is(cleaned.dependents["many"]?.kind, "left");
  });

  test("is not ready if it is read-only and empty, unless its readyPostcondition is met", async () => {
    const readOnly = { bulk: {}, canWrite: false };
    const { reconcile } = createWorkflow([
      { name: "none", ...readOnly },
      { name: "any", ...readOnly, readyPostcondition: ({ item }) => item === undefined },
    ]);
    const result = await reconcile();
    assert.equal(result.dependents["none"], { kind: "waiting", for: ["none"] });
    assert.equal(result.notReady, ["none"]);
  });

  test("passes items by key to functions of other dependents", async () => {
    let seen: unknown;
    const desired = ({ secondary }: { secondary: { all: object } }) => ((seen = { ...secondary.all }), {});
    const { reconcile } = createWorkflow([bulkOf("all", ["x"]), { name: "after", dependsOn: ["all"], desired }]);
    await reconcile();
    assert.equal(seen, { x: { id: "all[x]", item: "x", value: { of: "all x" } } });
  });
});

suite("errors of many items", (test) => {
  test("are limited to the first 5 and the number of the others in the message", async () => {
    const cluster = new FakeCluster();
    const keys = [...Array(12).keys()].map(String);
    for (const key of keys) cluster.failures.set(`a[${key}]`, new Error(`no ${key}`));
    const { error } = await createWorkflow([bulkOf("a", keys)], cluster).reconcile();
    const told = keys.slice(0, 5).map((key) => `dependent "a", item "${key}": no ${key}`);
    const message = `the workflow failed: ${told.join("; ")}; 7 more items of dependent "a"`;
    assert.is(error?.message, message);
    assert.is(messageOf(error), message, "a log has it once");
    assert.is(error?.errors.length, 12);
  });
});
