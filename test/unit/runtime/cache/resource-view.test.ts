// What one controller is told around its own writes (the parts of JOSDK's InformerEventSourceTest and ControllerEventSourceTest that are
// about the cache).
import { OwnViews, type ResourceView } from "#runtime/cache/resource-view.js";
import { ResourceCache } from "#runtime/cache/resource-cache.js";
import { createView, listInto } from "../../../support/runtime/resource-view.js";
import { assert, suite } from "../../../support/suite.js";

const KEY = "x/a";
const object = (resourceVersion: string, more: object = {}) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "a", namespace: "x", uid: "u1", resourceVersion, ...more },
});

function createTold(own?: OwnViews) {
  const { view, cache } = createView({ indexes: { label: ({ metadata }) => Object.keys(metadata.labels ?? {}) } });
  const told: string[] = [];
  view.onChange(({ kind, object: { metadata }, old }) => {
    told.push(`${kind} ${metadata.resourceVersion}${old === undefined ? "" : `<${old.metadata.resourceVersion}`}`);
  });
  cache.observe({ object: object("1") });
  told.length = 0;
  own?.add(view, {});
  const beginWrite = () => {
    const end = view.beginWrite(KEY, own?.around(view));
    return (version?: string) =>
      end(version === undefined ? undefined : { entry: { object: object(version) }, isOwn: true });
  };
  return { view, cache, told, beginWrite };
}

interface Recreated {
  readonly cache: ResourceCache;
  readonly endWrite: ReturnType<ResourceView["beginWrite"]>;
}

suite("ResourceView", (test) => {
  test("lists each key of the watch and of write responses once", () => {
    const { view } = createTold();
    view.put({ object: object("2") });
    view.put({ object: object("3", { name: "b", uid: "u2" }) });
    assert.equal([...view.keys()].sort(), ["x/a", "x/b"]);
  });

  test("emits a foreign deletion during an own write", () => {
    const { view, cache, told, beginWrite } = createTold();
    const endWrite = beginWrite();
    cache.observe({ object: object("2") });
    cache.observeDeletion(object("3"));
    endWrite("2");
    assert.equal(
      told,
      ["deleted 3"].map((line) => `${line}<2`),
    );
    assert.not(view.has(KEY));
  });

  test("merges several foreign changes during an own write into one event", () => {
    const { cache, told, beginWrite } = createTold();
    const endWrite = beginWrite();
    cache.observe({ object: object("2") });
    cache.observe({ object: object("3") });
    cache.observe({ object: object("4") });
    assert.equal(told, []);
    endWrite("4");
    assert.equal(told, ["updated 4<1"]);
  });

  test("emits a kept deletion before a new object of the same name, even during a write", () => {
    const { view, cache, told, beginWrite } = createTold();
    const endWrite = beginWrite();
    cache.observe({ object: object("2", { labels: { red: "" } }) });
    cache.observeDeletion(object("3"));
    assert.equal(told, []);
    cache.observe({ object: object("4", { uid: "u2" }) });
    assert.equal(told, ["deleted 3<2"]);
    endWrite();
    assert.equal([told, view.ownWrites], [["deleted 3<2", "added 4"], 0]);
  });

  test("emits the deletion before an own recreation with the primary that it was created for", () => {
    const own = { entry: { object: object("9", { uid: "u2" }) }, isOwn: true };
    for (const happen of [
      ({ cache, endWrite }: Recreated) => {
        endWrite(own);
        listInto(cache, [own.entry], "10");
      },
      ({ cache, endWrite }: Recreated) => {
        endWrite(own);
        cache.observeDeletion(object("8"));
        cache.observe(own.entry);
      },
      ({ cache, endWrite }: Recreated) => {
        cache.observe({ object: object("7") });
        cache.observeDeletion(object("8"));
        endWrite(own);
        cache.observe(own.entry);
      },
    ]) {
      const { view, cache } = createTold();
      const told: unknown[] = [];
      view.onChange(({ kind, madeFor, object: { metadata } }) => void told.push([kind, metadata.uid, madeFor]));
      happen({ cache, endWrite: view.beginWrite(KEY, { views: [view], madeFor: "x/other" }) });
      assert.equal(told[0], ["deleted", "u1", "x/other"], happen.toString());
      assert.equal([told.length, (told[1] as string[]).slice(0, 2), view.ownWrites], [2, ["added", "u2"], 0]);
    }
  });

  test("emits a deletion and an addition if a relist delivers an object with another uid", () => {
    const { cache, told, beginWrite } = createTold();
    const relist = (version: string, uid: string) => listInto(cache, [{ object: object(version, { uid }) }], version);
    relist("5", "u2");
    assert.equal(told.splice(0), ["deleted 1<1", "added 5"]);
    const endWrite = beginWrite();
    relist("7", "u3");
    assert.equal(told.splice(0), ["deleted 5<5"], "what is new may be our own");
    endWrite();
    assert.equal(told, ["added 7"]);
  });

  test("emits a deletion and an addition if a new cache has an object with another uid", () => {
    const { view, told } = createTold();
    const other = new ResourceCache();
    listInto(other, [{ object: object("5", { uid: "u2" }) }], "5");
    view.show(new Map([["x", other]]));
    assert.equal(told, ["deleted 1<1", "added 5"]);
  });

  test("updates an index on every change, also if the event is kept or dropped", () => {
    const { view, cache, told } = createTold();
    const endWrite = view.beginWrite(KEY);
    cache.observe({ object: object("2", { labels: { red: "" } }) });
    assert.equal([[...view.keysByIndex("label", "red")], told], [[KEY], []]);
    cache.observeDeletion(object("3", { labels: { red: "" } }));
    assert.equal([...view.keysByIndex("label", "red")], []);
    endWrite();
    assert.equal(told, ["deleted 3<2"]);
  });
});

suite("own deletion", (test) => {
  const others = (resourceVersion: string) => ({ object: object(resourceVersion, { uid: "u2" }) });

  test("drops a watch event that arrives before the response", () => {
    const { view, cache, told } = createTold();
    const end = view.beginDeletion(KEY, "u1");
    cache.observeDeletion(object("2"));
    assert.equal([told, view.has(KEY)], [[], false]);
    end({ isGone: true });
    cache.observe(others("3"));
    assert.equal([told, view.ownWrites], [["added 3"], 0]);
  });

  test("drops a watch event that arrives after the response", () => {
    const { view, cache, told } = createTold();
    view.beginDeletion(KEY, "u1")({ isGone: true });
    assert.not(view.has(KEY));
    cache.observeDeletion(object("2"));
    assert.equal([told, view.ownWrites], [[], 0]);
  });

  test("emits the watch event at its end if another client deleted the object", () => {
    const { view, cache, told } = createTold();
    const end = view.beginDeletion(KEY, "u1");
    cache.observeDeletion(object("2"));
    end({ isGone: false });
    assert.equal([told, view.ownWrites], [["deleted 2<1"], 0]);
  });

  test("emits the watch event before its end if the object is recreated", () => {
    const { view, cache, told } = createTold();
    const end = view.beginDeletion(KEY, "u1");
    cache.observeDeletion(object("2"));
    cache.observe(others("3"));
    end({ isGone: true });
    assert.equal([told, view.has(KEY), view.ownWrites], [["deleted 2<1", "added 3"], true, 0]);
  });

  test("emits foreign changes before the deletion, and events of other objects", () => {
    const { view, cache, told } = createTold();
    const end = view.beginDeletion(KEY, "u1");
    cache.observe({ object: object("2") });
    cache.observe({ object: object("3", { name: "b", uid: "u3" }) });
    cache.observeDeletion(object("4", { name: "b", uid: "u3" }));
    cache.observeDeletion(object("5"));
    end({ isGone: true });
    assert.equal(told, ["updated 2<1", "added 3", "deleted 4<3"]);
  });

  test("keeps the watch event until the last of two concurrent deletions has ended", () => {
    for (const isGone of [true, false]) {
      const { view, cache, told } = createTold();
      const [first, second] = [view.beginDeletion(KEY, "u1"), view.beginDeletion(KEY, "u1")];
      cache.observeDeletion(object("2"));
      first({ isGone: false });
      assert.equal(told, []);
      second({ isGone });
      assert.equal([told, view.ownWrites], [isGone ? [] : ["deleted 2<1"], 0]);
    }
  });

  test("emits no deletion for an object missing in a relist, and returns it on detach()", () => {
    const { view, cache, told } = createTold();
    const end = view.beginDeletion(KEY, "u1");
    listInto(cache, [], "5");
    assert.equal(told, []);
    assert.equal(
      view.detach().map(({ kind }) => kind),
      ["deleted"],
    );
    end({ isGone: true });
    assert.equal(told, []);
  });
});

/** Two views of one owner, each of a cache of its own. */
function createTwins() {
  const own = new OwnViews();
  return { own, written: createTold(own), twin: createTold(own) };
}

suite("views of one owner", (test) => {
  test("drop the events of writes through another view, before and after the write ends", () => {
    for (const comesFirst of [true, false]) {
      const { written, twin } = createTwins();
      const endWrite = written.beginWrite();
      if (comesFirst) twin.cache.observe({ object: object("2") });
      assert.equal(twin.told, []);
      endWrite("2");
      if (!comesFirst) twin.cache.observe({ object: object("2") });
      assert.equal(twin.told, []);
      twin.cache.observe({ object: object("3") });
      assert.equal([twin.told, twin.view.ownWrites, written.view.ownWrites], [["updated 3<2"], 0, 1]);
    }
  });

  test("emit foreign changes during a write, and all changes if the write fails", () => {
    const { own, written, twin } = createTwins();
    const endWrite = written.beginWrite();
    for (const { cache } of [written, twin])
      for (const version of ["2", "3"]) cache.observe({ object: object(version) });
    endWrite("3");
    assert.equal([written.told, twin.told], [["updated 3<1"], ["updated 3<1"]]);
    const fail = written.view.beginWrite(KEY, own.around(written.view));
    for (const { cache } of [written, twin]) cache.observe({ object: object("4") });
    fail();
    assert.equal([written.told.at(-1), twin.told.at(-1)], ["updated 4<3", "updated 4<3"]);
  });

  test("end concurrent writes through both views independently", () => {
    const { written, twin } = createTwins();
    const endWrite = written.beginWrite();
    const endTwin = twin.beginWrite();
    for (const { cache } of [written, twin])
      for (const version of ["2", "3"]) cache.observe({ object: object(version) });
    endWrite("2");
    assert.equal([written.told, twin.told], [[], []]);
    endTwin("3");
    assert.equal([written.told, twin.told, written.view.ownWrites, twin.view.ownWrites], [[], [], 0, 0]);
  });

  test("forget an own version that is never delivered once the watch has passed it", () => {
    const { written, twin } = createTwins();
    written.beginWrite()("2");
    assert.is(twin.view.ownWrites, 1);
    twin.cache.observeVersion("5");
    assert.equal([twin.view.ownWrites, twin.told], [0, []]);
  });

  test("drop the events of deletions through another view, and hide the object", () => {
    for (const comesFirst of [true, false]) {
      const { own, written, twin } = createTwins();
      const end = written.view.beginDeletion(KEY, "u1", own.around(written.view));
      if (comesFirst) twin.cache.observeDeletion(object("2"));
      end({ isGone: true });
      assert.not(twin.view.has(KEY));
      for (const { cache } of comesFirst ? [written] : [written, twin]) cache.observeDeletion(object("2"));
      assert.equal([written.told, twin.told, twin.view.ownWrites], [[], [], 0]);
    }
  });

  test("keep own writes when views are added or removed during a write", () => {
    const { own, written, twin } = createTwins();
    own.delete(twin.view);
    const endWrite = written.beginWrite();
    own.add(twin.view, {});
    own.delete(written.view);
    const endTwin = twin.beginWrite();
    endWrite("2");
    twin.cache.observe({ object: object("3") });
    assert.equal(twin.told, [], "its own write is still under way");
    endTwin("3");
    assert.equal(twin.told, []);
  });
});
