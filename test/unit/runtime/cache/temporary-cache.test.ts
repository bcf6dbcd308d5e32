// JOSDK's TemporaryResourceCacheTest: the numbers are those of its cases. The watch is at version 1, the object in question has version 2.
import type { DecodedResource } from "#runtime/base/kubernetes-object.js";
import { ResourceCache } from "#runtime/cache/resource-cache.js";
import { ResourceView } from "#runtime/cache/resource-view.js";
import { builtinDefinition } from "../../../support/kinds/kind-definitions.js";
import { listInto } from "../../../support/runtime/resource-view.js";
import { assert, suite } from "../../../support/suite.js";

const KEY = "x/a";

function entry(version: number, metadata: object = {}): DecodedResource {
  const named = { name: "a", namespace: "x", uid: "u1", resourceVersion: `${version}`, ...metadata };
  return { object: { apiVersion: "v1", kind: "ConfigMap", metadata: named } };
}

function createCaches(options: { comparesVersions?: boolean } = {}) {
  const cache = new ResourceCache(options);
  const view = new ResourceView(builtinDefinition("v1", "ConfigMap"));
  view.attach(cache, "x");
  cache.observeVersion("1");
  const told: string[] = [];
  view.onChange(({ kind, object, isFinalStateUnknown }) => {
    told.push(`${kind} ${object.metadata.resourceVersion}${isFinalStateUnknown === true ? " unknown" : ""}`);
  });
  const known = () => view.get(KEY)?.object.metadata.resourceVersion;
  const write = (version: number) => {
    view.beginWrite(KEY)({ entry: entry(version), isOwn: true });
  };
  return { cache, view, told, known, write };
}

suite("temporary cache", (test) => {
  test("returns a write response before the watch delivers it [TemporaryResourceCacheTest 1, 3]", () => {
    const { view, known, cache } = createCaches();
    view.put(entry(2));
    assert.is(known(), "2");
    assert.is(cache.counts.pending, 1);
  });

  test("drops a write response that is older than the watch [TemporaryResourceCacheTest 2]", () => {
    const { view, known, cache } = createCaches();
    cache.observe(entry(3));
    view.put(entry(2));
    assert.is(known(), "3");
    assert.is(cache.counts.pending, 0);
  });

  test("does not replace a newer response with an older one [TemporaryResourceCacheTest 4]", () => {
    const { view, known } = createCaches();
    view.put(entry(3));
    view.put(entry(2));
    assert.is(known(), "3");
  });

  test("replaces a response with a newer event [TemporaryResourceCacheTest 5]", () => {
    const { view, known, cache } = createCaches();
    view.put(entry(2));
    cache.observe(entry(3));
    assert.is(known(), "3");
    assert.is(cache.counts.pending, 0);
  });

  test("keeps no responses and drops no events if versions cannot be compared [TemporaryResourceCacheTest 6, K3]", () => {
    const { view, known, cache, told, write } = createCaches({ comparesVersions: false });
    view.put(entry(2));
    write(2);
    assert.is(known(), undefined);
    assert.is(view.ownWrites, 0);
    cache.observe(entry(5));
    cache.observe(entry(2));
    listInto(cache, [entry(9)], "4");
    cache.observeDeletion(entry(3).object);
    assert.equal(told, ["added 5", "updated 2", "updated 9", "deleted 3"]);
    assert.is(known(), undefined);
  });

  test("leaves no entry if the own event arrives before the response [TemporaryResourceCacheTest 7]", () => {
    const { view, known, cache, told } = createCaches();
    const endWrite = view.beginWrite(KEY);
    cache.observe(entry(2));
    endWrite({ entry: entry(2), isOwn: true });
    assert.equal(told, []);
    assert.is(known(), "2");
    assert.is(cache.counts.pending, 0);
    assert.is(view.ownWrites, 0);
  });

  test("replaces a response with its own event [TemporaryResourceCacheTest 8]", () => {
    const { view, cache, told, write } = createCaches();
    write(2);
    assert.is(cache.counts.pending, 1);
    cache.observe(entry(2));
    assert.equal(told, []);
    assert.is(cache.counts.pending, 0);
    assert.is(view.ownWrites, 0);
  });

  test("drops an own event that arrives after the response [TemporaryResourceCacheTest 9]", () => {
    const { cache, told, write } = createCaches();
    cache.observe(entry(2));
    write(3);
    cache.observe(entry(3));
    assert.equal(told, ["added 2"]);
  });

  test("drops an own event that arrives before the response [TemporaryResourceCacheTest 10]", () => {
    const { view, cache, told } = createCaches();
    cache.observe(entry(2));
    const endWrite = view.beginWrite(KEY);
    cache.observe(entry(3));
    endWrite({ entry: entry(3), isOwn: true });
    assert.equal(told, ["added 2"]);
  });

  test("emits kept events when a write ends without a response [TemporaryResourceCacheTest 11]", () => {
    const { view, cache, told } = createCaches();
    const endWrite = view.beginWrite(KEY);
    cache.observe(entry(4));
    assert.equal(told, []);
    endWrite();
    assert.equal(told, ["added 4"]);
  });

  test("emits an older event while a newer response is read [TemporaryResourceCacheTest 12]", () => {
    const { view, known, cache, told } = createCaches();
    view.put(entry(3));
    cache.observe(entry(2));
    assert.equal(told, ["added 2"]);
    assert.is(known(), "3");
  });

  test("does not restore an object that was deleted before the response [TemporaryResourceCacheTest 13]", () => {
    const { known, cache, write } = createCaches();
    cache.observe(entry(2));
    cache.observeDeletion(entry(3).object);
    write(2);
    assert.is(known(), undefined);
  });

  test("drops a response missing in a newer list, with one deletion event [TemporaryResourceCacheTest 14, K4]", () => {
    const { view, known, cache, told, write } = createCaches();
    write(2);
    listInto(cache, [], "3");
    assert.equal(told, ["deleted 2 unknown"]);
    assert.is(known(), undefined);
    assert.is(view.ownWrites, 0);
  });

  test("keeps a response that is newer than a list [TemporaryResourceCacheTest 15]", () => {
    const { known, cache, told, write } = createCaches();
    write(4);
    listInto(cache, [], "3");
    assert.is(known(), "4");
    assert.equal(told, []);
  });

  test("drops entries of namespaces that are no longer watched, without events [TemporaryResourceCacheTest 16]", () => {
    const { view, known, cache, told, write } = createCaches();
    write(2);
    view.detach("x");
    listInto(cache, [], "3");
    assert.is(known(), undefined);
    assert.equal(told, []);
    assert.is(view.ownWrites, 0);
  });

  test("drops late responses from namespaces that are no longer watched [TemporaryResourceCacheTest 17]", () => {
    const { view, known, cache, told } = createCaches();
    const endWrite = view.beginWrite(KEY);
    view.detach("x");
    endWrite({ entry: entry(2), isOwn: true });
    view.put(entry(3));
    assert.is(known(), undefined);
    assert.is(cache.counts.pending, 0);
    assert.equal(told, []);
  });

  test("drops a response older than a list without its object, with one deletion event [TemporaryResourceCacheTest 18]", () => {
    const { view, known, cache, told } = createCaches();
    cache.observe(entry(2));
    view.put(entry(5));
    told.length = 0;
    listInto(cache, [], "6");
    assert.is(known(), undefined);
    assert.equal(told, ["deleted 2 unknown"]);
  });
});
