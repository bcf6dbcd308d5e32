import { type ResourceStore, Store } from "#apiserver/storage/store.js";
import fc from "../../../support/fast-check.js";
import { assert, suite } from "../../../support/suite.js";

const objectOf = (value: number) => ({ metadata: { name: "x" }, value });

type Step = { key: string; value: number | undefined };

// A write whose value is undefined removes the object.
function write(store: ResourceStore, { key, value }: Step): void {
  if (value === undefined) store.remove(key);
  else store.put(key, objectOf(value));
}

const steps = fc.array(
  fc.record({
    key: fc.constantFrom("a/x", "a-b/x", "a/y", "b/z", "a.b/x", "a0/x"),
    value: fc.option(fc.nat(9), { nil: undefined }),
  }),
  { maxLength: 40 },
);

const stateOf = (objects: { key: string; object: object }[]) => objects.map(({ key, object }) => [key, { ...object }]);

suite("Store", (test) => {
  test("lists the same objects at an old revision as it did then", () => {
    fc.assert(
      fc.property(steps, (all) => {
        const root = new Store();
        const store = root.resource("things");
        const seen = all.map((step) => {
          write(store, step);
          return { revision: root.revision, list: stateOf(store.list("")), inA: stateOf(store.list("a/")) };
        });
        for (const { revision, list, inA } of seen) {
          assert.equal(stateOf(store.listAt(revision, "") ?? []), list);
          assert.equal(stateOf(store.listAt(revision, "a/") ?? []), inA);
        }
      }),
    );
  });

  test("lists keys in order, limited to the prefix", () => {
    fc.assert(
      fc.property(steps, (all) => {
        const store = new Store().resource("things");
        for (const step of all) write(store, step);
        const keys = store.list("").map(({ key }) => key);
        assert.equal(keys, [...keys].sort());
        assert.equal(
          store.list("a/").map(({ key }) => key),
          keys.filter((key) => key.startsWith("a/")),
        );
      }),
    );
  });

  test("returns events after a revision that replay to the current state", () => {
    fc.assert(
      fc.property(steps, fc.nat(40), (all, at) => {
        const root = new Store();
        const store = root.resource("things");
        let revision = root.revision;
        let then = new Map<string, unknown>();
        all.forEach((step, index) => {
          write(store, step);
          if (index === at) {
            revision = root.revision;
            then = new Map(store.list("").map(({ key, json }) => [key, json]));
          }
        });
        for (const { key, current } of store.eventsAfter(revision) ?? []) {
          if (current === undefined) then.delete(key);
          else then.set(key, current.json);
        }
        assert.equal(
          [...then].sort(),
          store.list("").map(({ key, json }) => [key, json]),
        );
      }),
    );
  });

  test("shares increasing revisions between all resources", () => {
    const root = new Store();
    const first = root.resource("a").put("x", objectOf(1));
    const second = root.resource("b").put("x", objectOf(1));
    assert.is(second.revision, first.revision + 1);
    assert.is((second.object["metadata"] as { resourceVersion: string }).resourceVersion, String(second.revision));
    assert.is(root.resource("a").remove("x")?.revision, second.revision + 1);
  });

  test("compacts history beyond historyLimit and keeps the rest complete", () => {
    const root = new Store({ historyLimit: 3 });
    const store = root.resource("things");
    const revisions = [1, 2, 3, 4, 5, 6, 7, 8, 9].map((value) => store.put("x", objectOf(value)).revision);
    const newest = revisions.at(-1) as number;
    assert.is(store.eventsAfter(newest - 3)?.length, 3);
    assert.is(store.eventsAfter(newest - 4), undefined);
    assert.is(store.listAt(newest - 4, ""), undefined);
  });

  test("rejects the latest revision of a resource after a compaction", () => {
    const root = new Store();
    const store = root.resource("things");
    const { revision } = store.put("x", objectOf(1));
    root.compact();
    assert.is(store.eventsAfter(revision), undefined);
    assert.equal(store.eventsAfter(root.revision), []);
  });

  test("notifies a subscriber before a write returns, until it unsubscribes", () => {
    const store = new Store().resource("things");
    const seen: string[] = [];
    const leave = store.subscribe({ next: ({ key }) => seen.push(key), end: () => seen.push("end") });
    store.put("x", objectOf(1));
    assert.equal(seen, ["x"]);
    leave();
    store.put("y", objectOf(1));
    store.endWatches();
    assert.equal(seen, ["x"]);
  });

  test("returns the same version of an object after 3000 other writes", () => {
    const store = new Store().resource("things");
    const object = { metadata: { name: "x" }, value: [1, "ü", { a: null }] };
    const first = store.put("first", object);
    for (let number = 0; number < 3000; number++) store.put(`more-${number}`, objectOf(number));
    assert.is(store.get("first"), first);
    const metadata = { name: "x", resourceVersion: String(first.revision) };
    assert.equal(first.object, { ...object, metadata });
    assert.is(first.json, JSON.stringify(first.object));
  });
});
