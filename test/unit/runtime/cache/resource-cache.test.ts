import type { Draft, KubernetesObject } from "#runtime/base/kubernetes-object.js";
import fc from "../../../support/fast-check.js";
import { createView } from "../../../support/runtime/resource-view.js";
import { runs } from "../../../support/runs.js";
import { assert, suite } from "../../../support/suite.js";
import { SimulatedWatch } from "./simulated-watch.js";

const KEY = "x/a";

/** One thing that happens; its text is what a failure prints. */
interface Step {
  run(watch: SimulatedWatch): void;
  toString(): string;
}

type Act = (watch: SimulatedWatch, at: { key: string; number: number; by: number }) => void;

const STEPS: { readonly [name: string]: Act } = {
  changeByOthers: (watch, { key }) => watch.changeByOthers(key),
  deleteByOthers: (watch, { key }) => watch.deleteByOthers(key),
  beginWrite: (watch, { key, number, by }) => watch.beginWrite(key, number, by),
  beginDelete: (watch, { key, by }) => watch.beginDelete(key, by),
  execute: (watch, { number }) => watch.execute(number),
  finish: (watch, { number }) => watch.finish(number, { isLost: false }),
  lose: (watch, { number }) => watch.finish(number, { isLost: true }),
  deliver: (watch, { number }) => watch.deliver(number),
  beginList: (watch, { number }) => watch.beginList(number),
  endList: (watch, { number }) => watch.endList(number),
};

const WITH_NAMESPACES: { readonly [name: string]: Act } = {
  ...STEPS,
  toggle: (watch, { number, by }) => watch.toggle(number, by),
};

// Some things happen more often than others.
const OFTEN = ["beginWrite", "execute", "finish", "deliver", "deliver"];

interface Laws {
  readonly namespaces?: string[];
  readonly controllers?: number;
  readonly acts?: { readonly [name: string]: Act };
}

function checkLaws({ acts = STEPS, ...options }: Laws): void {
  const names = [...Object.keys(acts), ...Object.keys(STEPS), ...OFTEN];
  const at = fc.record({ key: fc.constantFrom(KEY, KEY, "x/b", "y/a"), number: fc.nat(3), by: fc.nat(1) });
  const steps: fc.Arbitrary<Step> = fc.tuple(fc.constantFrom(...names), at).map(([name, where]) => ({
    run: (watch) => acts[name]!(watch, where),
    toString: () => `${name}(${where.key}, ${where.number}, ${where.by})`,
  }));
  fc.assert(
    fc.property(fc.array(steps, { maxLength: 40, size: "max" }), (sequence) => {
      const watch = new SimulatedWatch(options);
      for (const step of sequence) step.run(watch);
      watch.settle();
    }),
    { numRuns: runs(3000) },
  );
}

const object = (resourceVersion: string, more: object = {}) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "a", namespace: "x", uid: "u1", resourceVersion, ...more },
});

function createCache() {
  const { view, cache } = createView({ indexes: { label: ({ metadata }) => Object.keys(metadata.labels ?? {}) } });
  const notes: string[] = [];
  view.onChange(({ kind, key, object: changed }) => notes.push(`${kind} ${key}@${changed.metadata.resourceVersion}`));
  return { view, cache, notes };
}

suite("ResourceCache", (test) => {
  test("reads back an own write immediately and drops its watch event", () => {
    const watch = new SimulatedWatch();
    watch.beginWrite(KEY, 1);
    watch.execute(0);
    watch.finish(0, { isLost: false });
    assert.ok(watch.view.has(KEY));
    watch.deliver(0);
    assert.equal(watch.notes, []);
  });

  test("drops the watch event of an own write that arrives before the response", () => {
    const watch = new SimulatedWatch();
    watch.beginWrite(KEY, 1);
    watch.execute(0);
    watch.deliver(0);
    watch.finish(0, { isLost: false });
    assert.equal(watch.notes, []);
  });

  test("emits a foreign change during an own write when the write ends", () => {
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

  test("emits a foreign change that the response of an own write contains before its watch event", () => {
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

  test("emits a foreign change that preceded an own no-op write", () => {
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

  test("ignores older events of an own deletion, and emits a new object of the same name", () => {
    const watch = new SimulatedWatch();
    watch.beginWrite(KEY, 1);
    watch.execute(0);
    watch.finish(0, { isLost: false });
    watch.beginDelete(KEY);
    watch.execute(0);
    watch.finish(0, { isLost: false });
    watch.deliver(0);
    assert.not(watch.view.has(KEY));
    watch.deliver(0);
    assert.equal(watch.notes, []);
    watch.changeByOthers(KEY);
    watch.deliver(0);
    assert.equal(watch.notes, ["added x/a@98"]);
  });

  test("does not restore a deleted object on a late write response", () => {
    const watch = new SimulatedWatch();
    watch.beginWrite(KEY, 1);
    watch.execute(0);
    watch.deleteByOthers(KEY);
    watch.deliver(0);
    watch.deliver(0);
    watch.finish(0, { isLost: false });
    assert.not(watch.view.has(KEY));
    assert.is(watch.notes.at(-1), "deleted x/a@97");
  });

  test("emits a foreign change that only a relist delivers, merged with an own version", () => {
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

  test("emits a deletion for objects missing in a relist, but not for newer own writes", () => {
    const { view, cache, notes } = createCache();
    cache.beginReplace();
    cache.observe({ object: object("5") });
    cache.endReplace("10");
    view.beginWrite("x/b")({ entry: { object: object("12", { name: "b", uid: "u2" }) }, isOwn: true });
    cache.beginReplace();
    cache.endReplace("11");
    assert.equal(notes, ["added x/a@5", "deleted x/a@5"]);
    assert.ok(view.has("x/b"));
  });

  test("updates an index on every change", () => {
    const { view, cache } = createCache();
    cache.observe({ object: object("1", { labels: { red: "" } }) });
    assert.equal([...view.keysByIndex("label", "red")], [KEY]);
    cache.observe({ object: object("2", { labels: { blue: "" } }) });
    assert.equal([...view.keysByIndex("label", "red")], []);
    assert.equal([...view.keysByIndex("label", "blue")], [KEY]);
    cache.observeDeletion(object("3"));
    assert.equal([...view.keysByIndex("label", "blue")], []);
  });

  test("returns deeply frozen objects", () => {
    const { view, cache } = createCache();
    cache.observe({ object: object("1", { labels: { red: "" } }) });
    assert.throws(() => {
      const { metadata } = view.get(KEY)!.object as Draft<KubernetesObject>;
      metadata.labels!["red"] = "no";
    }, "read only property 'red'");
  });

  const laws = "drops own events, emits all foreign changes and restores no deleted object";

  test(laws, () => checkLaws({}), { timeoutMs: 60_000 });

  test(`${laws}, with one watch per namespace`, () => checkLaws({ namespaces: ["x", "y"] }), {
    timeoutMs: 60_000,
  });

  test(`${laws}, with two controllers`, () => checkLaws({ controllers: 2 }), { timeoutMs: 60_000 });

  test(
    `${laws}, with two controllers that add and remove namespaces`,
    () => checkLaws({ namespaces: ["x", "y"], controllers: 2, acts: WITH_NAMESPACES }),
    { timeoutMs: 60_000 },
  );
});
