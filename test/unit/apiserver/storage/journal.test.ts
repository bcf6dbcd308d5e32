import { type Change, type Journal, Store } from "#apiserver/storage/store.js";
import { assert, suite } from "../../../support/suite.js";

const object = { metadata: { name: "x" } };

// Keeps what it is given until it is told that it is durable.
function createJournal(): { journal: Journal; changes: Change[]; finish(revision: number): void } {
  const changes: Change[] = [];
  const listeners: ((revision: number) => void)[] = [];
  const journal: Journal = {
    append: (change) => void changes.push(change),
    pending: undefined,
    onDurable: (listener) => void listeners.push(listener),
  };
  return { journal, changes, finish: (revision) => listeners.forEach((listener) => listener(revision)) };
}

function subscribed(store: Store): { told: string[]; seen: string[] } {
  const [told, seen]: [string[], string[]] = [[], []];
  store.resource("things").subscribe({ next: ({ key }) => told.push(key), end: () => undefined });
  store.resource("things").follow(({ key }) => seen.push(key));
  return { told, seen };
}

suite("Store with a journal", (test) => {
  test("notifies watches of a write in order once it is durable, and its own followers at once", () => {
    const store = new Store();
    const { journal, finish } = createJournal();
    store.attach(journal);
    const { told, seen } = subscribed(store);
    const [first, second] = ["a", "b"].map((key) => store.resource("things").put(key, object).revision);
    store.resource("things").remove("a");
    assert.equal([told, seen], [[], ["a", "b", "a"]]);
    finish(first ?? 0);
    assert.equal(told, ["a"]);
    finish(second ?? 0);
    assert.equal(told, ["a", "b"]);
    finish(store.revision);
    assert.equal(told, ["a", "b", "a"]);
  });

  test("returns no bookmark revision beyond the writes that watches have received", () => {
    const store = new Store();
    const { journal, finish } = createJournal();
    store.attach(journal);
    const things = store.resource("things");
    const before = store.revision;
    const { revision } = things.put("a", object);
    store.resource("others").put("b", object);
    assert.is(things.shownRevision, before);
    finish(revision);
    assert.is(things.shownRevision, revision);
    finish(store.revision);
    assert.is(things.shownRevision, store.revision);
  });

  test("releases each revision once when no read can need it any more", () => {
    const store = new Store({ historyLimit: 2 });
    const { journal, changes } = createJournal();
    store.attach(journal);
    const things = store.resource("things");
    const kept = new Set<number>();
    const follow = (): void => {
      for (const { write, revision, forgotten } of changes.splice(0)) {
        if (write !== undefined) kept.add(revision);
        for (const old of forgotten) assert.ok(kept.delete(old));
      }
    };
    for (let round = 0; round < 5; round++) {
      things.put("a", object);
      things.put("b", object);
      if (round % 2 === 0) things.remove("b");
      follow();
      assert.equal([...kept].sort(), [...new Set(things.neededRevisions)].sort());
    }
    store.compact();
    follow();
    assert.equal([...kept].sort(), [...things.neededRevisions].sort());
    store.drop("things");
    follow();
    assert.is(kept.size, 0);
  });
});
