import fc from "fast-check";
import { ResourceCache } from "#runtime/cluster/resource-cache.js";
import { assert, suite } from "../../../support/suite.js";
import { SimulatedWatch } from "./simulated-watch.js";

const KEY = "x/a";

/** One thing that happens; its text is what a failure prints. */
interface Step {
  run(watch: SimulatedWatch): void;
  toString(): string;
}

const STEPS: { readonly [name: string]: (watch: SimulatedWatch, key: string, number: number) => void } = {
  changeByOthers: (watch, key) => watch.changeByOthers(key),
  deleteByOthers: (watch, key) => watch.deleteByOthers(key),
  beginWrite: (watch, key, number) => watch.beginWrite(key, number),
  beginDelete: (watch, key) => watch.beginDelete(key),
  execute: (watch, _, number) => watch.execute(number),
  finish: (watch, _, number) => watch.finish(number, { isLost: false }),
  lose: (watch, _, number) => watch.finish(number, { isLost: true }),
  deliver: (watch, _, number) => watch.deliver(number),
  beginList: (watch, _, number) => watch.beginList(number),
  endList: (watch, _, number) => watch.endList(number),
};

// Some things happen more often than others.
const NAMES = [...Object.keys(STEPS), "beginWrite", "execute", "finish", "deliver", "deliver"];

const steps: fc.Arbitrary<Step> = fc
  .tuple(fc.constantFrom(...NAMES), fc.constantFrom(KEY, KEY, "x/b", "y/a"), fc.nat(3))
  .map(([name, key, number]) => ({
    run: (watch) => STEPS[name]!(watch, key, number),
    toString: () => `${name}(${key}, ${number})`,
  }));

function checkLaws(options: { namespaces?: string[] }): void {
  fc.assert(
    fc.property(fc.array(steps, { maxLength: 40, size: "max" }), (sequence) => {
      const watch = new SimulatedWatch(options);
      for (const step of sequence) step.run(watch);
      watch.settle();
    }),
    { numRuns: 3000 },
  );
}

const object = (resourceVersion: string, more: object = {}) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "a", namespace: "x", uid: "u1", resourceVersion, ...more },
});

function createCache() {
  const cache = new ResourceCache({ label: ({ metadata }) => Object.keys(metadata.labels ?? {}) });
  const notes: string[] = [];
  cache.onChange(({ kind, key, object: changed }) => notes.push(`${kind} ${key}@${changed.metadata.resourceVersion}`));
  return { cache, notes };
}

suite("resource cache", (test) => {
  test("our own write is read back at once, and its event is swallowed", () => {
    const watch = new SimulatedWatch();
    watch.beginWrite(KEY, 1);
    watch.execute(0);
    watch.finish(0, { isLost: false });
    assert.ok(watch.cache.has(KEY));
    watch.deliver(0);
    assert.equal(watch.notes, []);
  });

  test("the event of our own write is swallowed also if it comes before the answer", () => {
    const watch = new SimulatedWatch();
    watch.beginWrite(KEY, 1);
    watch.execute(0);
    watch.deliver(0);
    watch.finish(0, { isLost: false });
    assert.equal(watch.notes, []);
  });

  test("a change by others while a write is under way is reported when it ends", () => {
    const watch = new SimulatedWatch();
    watch.changeByOthers(KEY);
    watch.deliver(0);
    watch.beginWrite(KEY, 1);
    watch.changeByOthers(KEY);
    watch.deliver(0);
    assert.is(watch.notes.length, 1);
    watch.execute(0);
    watch.finish(0, { isLost: false });
    assert.equal(watch.notes, ["added x/a@96", "updated x/a@97"]);
  });

  test("a change by others that an answer brings ahead of its event is still reported", () => {
    const watch = new SimulatedWatch();
    watch.changeByOthers(KEY);
    watch.deliver(0);
    watch.beginWrite(KEY, 1);
    watch.changeByOthers(KEY);
    watch.execute(0);
    watch.finish(0, { isLost: false });
    watch.deliver(0);
    assert.is(watch.notes.at(-1), "updated x/a@97");
  });

  test("a write that changes nothing does not hide the change that it met", () => {
    const watch = new SimulatedWatch();
    watch.beginWrite(KEY, 1);
    watch.execute(0);
    watch.finish(0, { isLost: true });
    watch.beginWrite(KEY, 1);
    watch.changeByOthers(KEY);
    watch.execute(0);
    watch.finish(0, { isLost: false });
    watch.deliver(0);
    watch.deliver(0);
    assert.is(watch.notes.at(-1), "updated x/a@97");
  });

  test("an object that we deleted is not brought back by events from before, and a new one of the name is told of", () => {
    const watch = new SimulatedWatch();
    watch.beginWrite(KEY, 1);
    watch.execute(0);
    watch.finish(0, { isLost: false });
    watch.beginDelete(KEY);
    watch.execute(0);
    watch.finish(0, { isLost: false });
    watch.deliver(0);
    assert.not(watch.cache.has(KEY));
    watch.deliver(0);
    assert.equal(watch.notes, []);
    watch.changeByOthers(KEY);
    watch.deliver(0);
    assert.equal(watch.notes, ["added x/a@98"]);
  });

  test("an answer that arrives after the deletion of the object does not bring it back", () => {
    const watch = new SimulatedWatch();
    watch.beginWrite(KEY, 1);
    watch.execute(0);
    watch.deleteByOthers(KEY);
    watch.deliver(0);
    watch.deliver(0);
    watch.finish(0, { isLost: false });
    assert.not(watch.cache.has(KEY));
    assert.is(watch.notes.at(-1), "deleted x/a@96");
  });

  test("a change by others that only a list brings, inside a version of our own, is reported", () => {
    const watch = new SimulatedWatch();
    watch.changeByOthers(KEY);
    watch.deliver(0);
    watch.beginWrite(KEY, 1);
    watch.changeByOthers(KEY);
    watch.execute(0);
    watch.finish(0, { isLost: false });
    watch.beginList(0);
    watch.endList(0);
    assert.is(watch.notes.at(-1), "updated x/a@98");
  });

  test("a list reports what is missing in it, but not what we wrote since", () => {
    const { cache, notes } = createCache();
    cache.replace([{ object: object("5") }], "10");
    cache.beginWrite("x/b");
    cache.endWrite("x/b", {
      entry: { object: object("12", { name: "b", uid: "u2" }) },
      isOwn: true,
    });
    cache.replace([], "11");
    assert.equal(notes, ["added x/a@5", "deleted x/a@5"]);
    assert.ok(cache.has("x/b"));
  });

  test("a list of one namespace says nothing about another", () => {
    const cache = new ResourceCache({}, { isPerNamespace: true });
    cache.replace([{ object: object("5") }], "10", "x");
    cache.replace([], "20", "y");
    assert.ok(cache.has(KEY));
    cache.replace([], "20", "x");
    assert.not(cache.has(KEY));
  });

  test("an index follows every change", () => {
    const { cache } = createCache();
    cache.observe({ object: object("1", { labels: { red: "" } }) });
    assert.equal([...cache.keysByIndex("label", "red")], [KEY]);
    cache.observe({ object: object("2", { labels: { blue: "" } }) });
    assert.equal([...cache.keysByIndex("label", "red")], []);
    assert.equal([...cache.keysByIndex("label", "blue")], [KEY]);
    cache.observeDeletion(object("3"));
    assert.equal([...cache.keysByIndex("label", "blue")], []);
  });

  test("what is read is frozen, deeply", () => {
    const { cache } = createCache();
    cache.observe({ object: object("1", { labels: { red: "" } }) });
    assert.throws(() => {
      cache.get(KEY)!.object.metadata.labels!["red"] = "no";
    });
  });

  test("own events are swallowed, changes of others never lost, nothing comes back", () => checkLaws({}), {
    timeoutMs: 60_000,
  });

  test("the same holds with one watch for each namespace", () => checkLaws({ namespaces: ["x", "y"] }), {
    timeoutMs: 60_000,
  });
});
