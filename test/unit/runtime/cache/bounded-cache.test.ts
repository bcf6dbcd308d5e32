// Caches that keep only some of their objects whole (JOSDK BoundedItemStore).
import {
  type DecodedResource,
  type KubernetesObject,
  type ObjectKey,
  type ObjectMeta,
  keyOf,
} from "#runtime/base/kubernetes-object.js";
import { ResourceCache } from "#runtime/cache/resource-cache.js";
import { ResourceView } from "#runtime/cache/resource-view.js";
import fc from "../../../support/fast-check.js";
import { builtinDefinition } from "../../../support/kinds/kind-definitions.js";
import { listInto } from "../../../support/runtime/resource-view.js";
import { assert, suite } from "../../../support/suite.js";

type Config = KubernetesObject & { readonly data?: { readonly text: string } };

const textOf = (object: KubernetesObject) => [(object as Config).data?.text ?? "nothing"];

/** A view of a cache that keeps `maxObjects` whole, and a server from which it reads again. */
function createBounded(maxObjects: number) {
  const server = new Map<ObjectKey, DecodedResource>();
  const fetched: ObjectKey[] = [];
  let beforeAnswer = async () => {};
  const fetch = async (key: ObjectKey) => {
    fetched.push(key);
    const answer = server.get(key);
    await beforeAnswer();
    return answer;
  };
  const cache = new ResourceCache({ bound: { maxObjects, fetch } });
  const view = new ResourceView(builtinDefinition("v1", "ConfigMap"), { text: textOf });
  view.attach(cache);
  const told: string[] = [];
  view.onChange(({ kind, key, object, old }) => {
    const texts = [old, object].map((each) => each && textOf(each)[0]);
    told.push(`${kind} ${key} ${texts[0] === undefined ? "" : `${texts[0]}>`}${texts[1]}`);
  });
  let version = 0;
  /** Changes an object on the server; the watch has not brought it. */
  const change = (name: string, text: string, metadata: Partial<ObjectMeta> = {}) => {
    const named = {
      name,
      namespace: "x",
      uid: name,
      resourceVersion: `${++version}`,
      generation: version,
      ...metadata,
    };
    const object = { apiVersion: "v1", kind: "ConfigMap", metadata: named, data: { text } };
    server.set(keyOf(named), { object });
    return object;
  };
  const observe = (...args: Parameters<typeof change>) => cache.observe({ object: structuredClone(change(...args)) });
  const remove = (name: string) => {
    const key = `x/${name}`;
    const { object } = server.get(key)!;
    server.delete(key);
    cache.observeDeletion({ ...object, metadata: { ...object.metadata, resourceVersion: `${++version}` } });
  };
  const text = (name: string) => (view.get(`x/${name}`)?.object as Config | undefined)?.data?.text;
  return {
    ...{ cache, view, server, fetched, told, change, observe, remove, text },
    byText: (value: string) => [...view.keysByIndex("text", value)].sort(),
    answerAfter: (wait: () => Promise<void>) => void (beforeAnswer = wait),
  };
}

suite("bounded cache", (test) => {
  test("evicts the least recently used object but keeps its key", () => {
    const { view, observe, text } = createBounded(2);
    observe("a", "1");
    observe("b", "2");
    assert.is(text("a"), "1");
    observe("c", "3");
    assert.equal([text("a"), text("b"), text("c")], ["1", undefined, "3"]);
    assert.equal([...view.keys()], ["x/a", "x/b", "x/c"]);
    assert.ok(view.has("x/b"));
    assert.equal(
      view.list().map(({ object }) => object.metadata.name),
      ["a", "c"],
    );
    assert.is(view.getVersion("x/b", "2"), undefined);
  });

  test("keeps type and metadata of an evicted object, without the last-applied annotation", () => {
    const { cache, observe } = createBounded(1);
    const annotations = { note: "n", "kubectl.kubernetes.io/last-applied-configuration": "{}" };
    observe("a", "1", { labels: { app: "web" }, annotations });
    observe("b", "2");
    assert.equal(cache.peek("x/a"), {
      object: {
        apiVersion: "v1",
        kind: "ConfigMap",
        metadata: {
          name: "a",
          namespace: "x",
          uid: "a",
          resourceVersion: "1",
          generation: 1,
          labels: { app: "web" },
          annotations: { note: "n" },
        },
      },
    });
  });

  test("indexes evicted objects by their full content until they change or are deleted", () => {
    const { observe, remove, byText, cache } = createBounded(1);
    observe("a", "red");
    observe("b", "red");
    observe("c", "blue");
    assert.equal([byText("red"), byText("blue"), byText("nothing")], [["x/a", "x/b"], ["x/c"], []]);
    observe("a", "blue");
    assert.equal([byText("red"), byText("blue")], [["x/b"], ["x/a", "x/c"]]);
    for (const name of ["a", "b", "c"]) remove(name);
    assert.is(cache.counts.indexed, 0);
  });

  test("emits the update of an evicted object with its remaining metadata as the old state", () => {
    const { observe, remove, told } = createBounded(1);
    observe("a", "1");
    observe("b", "2");
    observe("a", "3");
    remove("b");
    assert.equal(told, ["added x/a 1", "added x/b 2", "updated x/a nothing>3", "deleted x/b nothing>2"]);
  });

  test("loads an evicted object without an event, and does not fetch a cached one", async () => {
    const { view, observe, text, fetched, told, byText } = createBounded(1);
    observe("a", "1");
    observe("b", "2");
    told.length = 0;
    await view.load(["x/a", "x/none"], { holder: "one" });
    assert.equal([text("a"), fetched, told, byText("1")], ["1", ["x/a"], [], ["x/a"]]);
    await view.load(["x/a"], { holder: "one" });
    assert.equal(fetched, ["x/a"]);
  });

  test("keeps a loaded object until all holders have released it", async () => {
    const { view, observe, text, cache } = createBounded(1);
    for (const name of ["a", "b", "c"]) observe(name, name);
    await Promise.all([
      view.load(["x/a"], { holder: "one" }),
      view.load(["x/b", "x/a"], { holder: "two" }),
      view.load(["x/c"], { holder: "three" }),
    ]);
    assert.equal(["a", "b", "c"].map(text), ["a", "b", "c"]);
    observe("a", "newer");
    observe("d", "d");
    assert.is(text("a"), "newer");
    view.release("two");
    assert.equal(["a", "b", "c"].map(text), ["newer", "b", "c"]);
    view.release("one");
    view.release("three");
    assert.is(["a", "b", "c", "d"].map(text).filter((each) => each !== undefined).length, 1);
    assert.is(cache.counts.held, 0);
  });

  test("keeps a newer state that the watch delivers during a fetch", async () => {
    const { view, observe, text, answerAfter, told } = createBounded(1);
    observe("a", "old");
    observe("b", "b");
    answerAfter(async () => observe("a", "new"));
    told.length = 0;
    await view.load(["x/a"], { holder: "one" });
    assert.equal([text("a"), told], ["new", ["updated x/a nothing>new"]]);
  });

  test("does not restore an object that is deleted during a fetch", async () => {
    const { view, observe, remove, text, answerAfter } = createBounded(1);
    observe("a", "old");
    observe("b", "b");
    answerAfter(async () => remove("a"));
    await view.load(["x/a"], { holder: "one" });
    assert.equal([text("a"), view.has("x/a")], [undefined, false]);
  });

  test("reads a fetched state that is newer than the watch, and emits it when the watch delivers it", async () => {
    const { view, observe, change, cache, text, told, byText } = createBounded(1);
    observe("a", "old");
    observe("b", "b");
    const newer = change("a", "new");
    told.length = 0;
    await view.load(["x/a"], { holder: "one" });
    assert.equal([text("a"), byText("old"), byText("new"), told], ["new", [], ["x/a"], []]);
    cache.observe({ object: newer });
    assert.equal([text("a"), byText("new"), told], ["new", ["x/a"], ["updated x/a nothing>new"]]);
  });

  test("does not fail if the object to load no longer exists on the server", async () => {
    const { view, observe, server, text } = createBounded(1);
    observe("a", "old");
    observe("b", "b");
    server.delete("x/a");
    await view.load(["x/a"], { holder: "one" });
    assert.equal([text("a"), view.has("x/a")], [undefined, true]);
  });

  test("emits deletions on a relist without fetching the evicted objects", () => {
    const { cache, observe, server, told, fetched, text } = createBounded(1);
    observe("a", "1");
    observe("b", "2");
    told.length = 0;
    listInto(cache, [server.get("x/b")!], "9");
    assert.equal([told, fetched, text("b"), cache.counts.observed], [["deleted x/a nothing>nothing"], [], "2", 1]);
  });

  test("has the same keys and index as an unbounded cache after any sequence of operations", () => {
    const name = fc.constantFrom("a", "b", "c", "d");
    const step = fc.oneof(
      fc.record({ kind: fc.constant("observe" as const), name, text: fc.constantFrom("1", "2", "3") }),
      fc.record({ kind: fc.constant("remove" as const), name }),
      fc.record({ kind: fc.constant("read" as const), name }),
      fc.record({ kind: fc.constant("hold" as const), name }),
      fc.record({ kind: fc.constant("release" as const), name }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), fc.integer({ min: 1, max: 3 }), (steps, max) => {
        const bounded = createBounded(max);
        const [{ view, cache }, texts] = [bounded, new Map<ObjectKey, string>()];
        for (const each of steps) {
          const key = `x/${each.name}`;
          if (each.kind === "observe") {
            bounded.observe(each.name, each.text);
            texts.set(key, each.text);
          } else if (each.kind === "remove" && texts.delete(key)) bounded.remove(each.name);
          else if (each.kind === "read") assert.ok([undefined, texts.get(key)].includes(bounded.text(each.name)));
          else if (each.kind === "hold")
            void view.load(bounded.text(each.name) === undefined ? [] : [key], { holder: key });
          else if (each.kind === "release") view.release(key);
          assert.equal([...view.keys()].sort(), [...texts.keys()].sort());
          for (const text of ["1", "2", "3"]) {
            const wanted = [...texts].filter(([, value]) => value === text).map(([found]) => found);
            assert.equal(bounded.byText(text), wanted.sort());
          }
          assert.ok(view.list().length <= max + cache.counts.held);
        }
      }),
    );
  });
});
