// A server that was restored from a backup: the whole state is older than what was observed, and is the truth.
import fc from "../../../support/fast-check.js";
import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import { ResourceCache, type ResourceChange } from "#runtime/cache/resource-cache.js";
import { ResourceView } from "#runtime/cache/resource-view.js";
import { builtinDefinition } from "../../../support/kinds/kind-definitions.js";
import { runs } from "../../../support/runs.js";
import { listInto } from "../../../support/runtime/resource-view.js";
import { assert, suite } from "../../../support/suite.js";

function objectOf(name: string, version: number, uid = name): KubernetesObject {
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name, namespace: "x", uid, resourceVersion: `${version}`, labels: { version: `${version}` } },
  };
}

const labels = ({ metadata }: KubernetesObject) => Object.values(metadata.labels ?? {});

/** A cache that has observed these objects up to version 100, and a view that writes down what it is told. */
function createBed(...objects: KubernetesObject[]) {
  const cache = new ResourceCache();
  const view = new ResourceView(builtinDefinition("v1", "ConfigMap"), { labels });
  view.attach(cache);
  listInto(
    cache,
    objects.map((object) => ({ object })),
    "100",
  );
  const told: string[] = [];
  const describe = ({ kind, object: { metadata } }: ResourceChange) =>
    `${kind} ${metadata.name} ${metadata.resourceVersion}`;
  view.onChange((change) => void told.push(describe(change)));
  const relist = (version: number, ...listed: KubernetesObject[]) =>
    listInto(
      cache,
      listed.map((object) => ({ object })),
      `${version}`,
      { isRestored: true },
    );
  const versionOf = (name: string) => view.get(`x/${name}`)?.object.metadata.resourceVersion;
  return { cache, view, told, relist, versionOf };
}

suite("restored API server", (test) => {
  test("restores objects to older versions and deletes newer ones", () => {
    const { cache, view, told, relist, versionOf } = createBed(
      objectOf("a", 90),
      objectOf("new", 95),
      objectOf("same", 20),
    );
    relist(50, objectOf("a", 30), objectOf("same", 20));
    assert.equal(told, ["added a 30", "added same 20", "deleted new 95"]);
    assert.equal([versionOf("a"), versionOf("new"), versionOf("same")], ["30", undefined, "20"]);
    assert.equal([...view.keysByIndex("labels", "30")], ["x/a"]);
    assert.is(view.keysByIndex("labels", "90").size, 0);
    assert.is(cache.observedVersion, "50");
  });

  test("continues the watch from the version of the list", () => {
    const { cache, told, relist, versionOf } = createBed(objectOf("a", 90));
    relist(50, objectOf("a", 30));
    cache.observe({ object: objectOf("a", 51) });
    assert.is(versionOf("a"), "51");
    assert.equal(told, ["added a 30", "updated a 51"]);
  });

  test("emits a deletion and an addition for an object with another uid", () => {
    const { view, relist } = createBed(objectOf("a", 90, "later"));
    const uids: unknown[] = [];
    view.onChange(({ kind, object, old }) => void uids.push([kind, object.metadata.uid, old?.metadata.uid]));
    relist(50, objectOf("a", 30, "earlier"));
    const later = ["deleted", "later", "later"];
    assert.equal(uids, [later, ["added", "earlier", undefined]]);
  });

  test("forgets own writes and deletions that the restore reverted", () => {
    const { cache, view, told, relist, versionOf } = createBed(objectOf("a", 90), objectOf("b", 91));
    for (const [name, version] of [["a", 120] as const, ["created", 121] as const]) {
      view.beginWrite(`x/${name}`)({ entry: { object: objectOf(name, version) }, isOwn: true });
    }
    view.beginDeletion("x/b", "b")({ isGone: true });
    assert.equal([versionOf("a"), versionOf("created"), versionOf("b")], ["120", "121", undefined]);
    relist(50, objectOf("a", 30), objectOf("b", 31));
    assert.equal([versionOf("a"), versionOf("created"), versionOf("b")], ["30", undefined, "31"]);
    assert.equal(told.sort(), ["added a 30", "added b 31", "deleted created 121"]);
    assert.equal([cache.counts.pending, cache.counts.ownDeletions, view.ownWrites], [0, 0, 0]);
  });

  test("rejects writes with a RetryAfterError until the state of the server is listed", () => {
    const { cache, view, relist } = createBed(objectOf("a", 90));
    cache.beginReplace({ isRestored: true });
    // An error that uses up no attempt, as an outage.
    const isPassing = (error: Error) =>
      error.name === "RetryAfterError" && /x\/a.* cannot be written now: .* restored/.test(error.message);
    assert.throws(() => view.beginWrite("x/a"), isPassing);
    // A list that breaks off begins anew.
    cache.beginReplace({ isRestored: true });
    assert.throws(() => view.requireWhole("x/a"), /restored/);
    relist(50, objectOf("a", 30));
    view.beginWrite("x/a")();
  });

  test("ignores late responses of writes that were sent before the restore", () => {
    const { cache, view, versionOf, relist } = createBed(objectOf("a", 90), objectOf("b", 91));
    const endWrite = view.beginWrite("x/a");
    const endDeletion = view.beginDeletion("x/b", "b");
    cache.beginReplace({ isRestored: true });
    endWrite({ entry: { object: objectOf("a", 120) }, isOwn: true });
    endDeletion({ isGone: true });
    relist(50, objectOf("a", 30), objectOf("b", 31));
    assert.equal([versionOf("a"), versionOf("b")], ["30", "31"]);
    assert.equal([cache.counts.pending, cache.counts.ownDeletions, view.ownWrites], [0, 0, 0]);
  });

  test("emits an object whose own deletion was reverted, also in its known version", () => {
    const { view, told, relist, versionOf } = createBed(objectOf("a", 30));
    view.beginDeletion("x/a", "a")({ isGone: true });
    relist(50, objectOf("a", 30));
    assert.is(versionOf("a"), "30");
    assert.equal(told, ["added a 30"]);
  });

  test("emits later foreign changes without awaiting own events from before the restore", () => {
    const { cache, view, told, relist } = createBed(objectOf("a", 90));
    view.beginWrite("x/a")({ entry: { object: objectOf("a", 120) }, isOwn: true });
    relist(50, objectOf("a", 30));
    cache.observe({ object: objectOf("a", 51) });
    assert.equal(told, ["added a 30", "updated a 51"]);
  });

  test("keeps newer objects on a relist that is not older than the watch", () => {
    const { cache, told, versionOf } = createBed(objectOf("a", 90));
    listInto(cache, [{ object: objectOf("a", 80) }], "100");
    assert.is(versionOf("a"), "90");
    assert.equal(told, []);
  });

  test("reads and emits the state of the server after any sequence of writes and deletions", () => {
    const names = ["a", "b", "c", "d"] as const;
    const some = <Value>(value: fc.Arbitrary<Value>) =>
      fc.uniqueArray(fc.tuple(fc.constantFrom(...names), value), { selector: ([name]) => name });
    const script = fc.record({
      known: some(fc.integer({ min: 1, max: 99 })),
      written: some(fc.boolean()),
      deleted: fc.subarray([...names]),
      restored: some(fc.tuple(fc.integer({ min: 1, max: 49 }), fc.boolean())),
      breaksOff: fc.boolean(),
    });
    fc.assert(
      fc.property(script, ({ known, written, deleted, restored, breaksOff }) => {
        const { cache, view, relist } = createBed(...known.map(([name, version]) => objectOf(name, version)));
        const heard = new Map(known.map(([name, version]) => [name as string, `${version}`]));
        view.onChange(({ kind, object: { metadata } }) => {
          if (kind === "deleted") heard.delete(metadata.name);
          else heard.set(metadata.name, metadata.resourceVersion!);
        });
        written.forEach(([name, hasEnded], index) => {
          const endWrite = view.beginWrite(`x/${name}`);
          const entry = { object: objectOf(name, 101 + index) };
          if (hasEnded) endWrite({ entry, isOwn: true });
        });
        for (const name of deleted) view.beginDeletion(`x/${name}`, name)({ isGone: true });
        const listed = restored.map(([name, [version, isOther]]) =>
          objectOf(name, version, isOther ? `other-${name}` : name),
        );
        if (breaksOff) {
          cache.beginReplace({ isRestored: true });
          for (const object of listed.slice(1)) cache.observe({ object });
          cache.beginReplace({ isRestored: true });
        }
        relist(50, ...listed);
        const state = new Map(restored.map(([name, [version]]) => [name as string, `${version}`]));
        const read = [...view.keys()].map((key) => view.get(key)!.object.metadata);
        assert.equal(new Map(read.map(({ name, resourceVersion }) => [name, resourceVersion!])), state);
        assert.equal(heard, state);
        for (const [name, version] of state) assert.ok(view.keysByIndex("labels", version).has(`x/${name}`));
        assert.equal([cache.counts.pending, cache.counts.ownDeletions, view.ownWrites], [0, 0, 0]);
        assert.is(cache.counts.indexed, new Set(state.values()).size);
        // And so on from there.
        for (const object of listed) cache.observe({ object: objectOf(object.metadata.name, 60, object.metadata.uid) });
        assert.equal(
          [...heard.values()],
          [...state].map(() => "60"),
        );
      }),
      { numRuns: runs(1000) },
    );
  });

  test("accepts every list as the current state if versions cannot be compared", () => {
    const cache = new ResourceCache({ comparesVersions: false });
    listInto(cache, [{ object: objectOf("a", 90) }], "100");
    listInto(cache, [{ object: objectOf("a", 30) }], "50");
    assert.is(cache.get("x/a")?.object.metadata.resourceVersion, "30");
  });
});
