import { refOfKey, type KubernetesObject, type ObjectKey } from "#runtime/base/kubernetes-object.js";
import type { ResourceChange } from "#runtime/cache/resource-cache.js";
import { untypedResource } from "#runtime/api/define-resource.js";
import { createPrimarySource, type Namespaces } from "#runtime/sources/kind-source.js";
import fc from "../../../support/fast-check.js";
import { assert, suite } from "../../../support/suite.js";
import { createSources, recordingSource } from "./controller-support.js";
import { keysOf, objectOf, SimulatedInformers } from "./simulated-informers.js";
import { createSourceContext } from "./source-context.js";

const { definition } = untypedResource({
  apiVersion: "v1",
  kind: "ConfigMap",
  plural: "configmaps",
  scope: "Namespaced",
});

const isIn = (key: ObjectKey, namespaces: Namespaces) =>
  namespaces === undefined || namespaces.includes(refOfKey(key).namespace ?? "");

/** A server whose objects the informers know, each those of its namespace. */
function createServer() {
  const objects = new Map<ObjectKey, KubernetesObject>();
  const informers = new SimulatedInformers();
  let version = 100;
  const inScope = (key: ObjectKey, namespace: string | undefined) =>
    isIn(key, namespace === undefined ? undefined : [namespace]);
  informers.onCreate = (informer) => {
    const { namespace } = informer.request;
    const listed = [...objects].flatMap(([key, object]) => (inScope(key, namespace) ? [object] : []));
    informer.sync(String(version), ...listed);
  };
  const change = (key: ObjectKey, isDeleted: boolean) => {
    const object = objectOf(key, { resourceVersion: String(++version) });
    if (isDeleted && !objects.delete(key)) return;
    if (!isDeleted) objects.set(key, object);
    for (const informer of informers.all)
      if (inScope(key, informer.request.namespace)) isDeleted ? informer.delete(object) : informer.observe(object);
  };
  return { objects, informers, change };
}

function createWatch() {
  const server = createServer();
  const changes: ResourceChange[] = [];
  const watch = createPrimarySource({ definition });
  const { view } = watch;
  view.onChange((change) => void changes.push(change));
  const told = () => changes.splice(0).map(({ kind, key }) => `${kind} ${key}`);
  const start = (namespaces: Namespaces) =>
    watch.start({ ...createSourceContext().context, informers: server.informers, namespaces });
  const switchTo = async (namespaces: Namespaces) => (await watch.prepare(namespaces)).commit();
  return { ...server, watch, view, changes, told, start, switchTo };
}

suite("namespaces of a view", (test) => {
  test("emit a change kept for a write when they change between a list and all namespaces", async () => {
    for (const [from, to] of [
      [["a"], undefined],
      [undefined, ["a"]],
    ] as const) {
      const { start, change, view, told, switchTo } = createWatch();
      change("a/1", false);
      await start(from);
      told();
      const endWrite = view.beginWrite("a/1");
      change("a/1", false);
      assert.equal(told(), [], "it may be the echo");
      // Nobody would tell whose it was once the write ends.
      await switchTo(to);
      endWrite();
      assert.equal(told(), ["updated a/1"]);
      change("a/1", false);
      assert.equal(told(), ["updated a/1"], "and is not held any more");
    }
  });

  test("limit the view to the requested ones", async () => {
    const { start, change, informers, watch, view, told } = createWatch();
    change("a/1", false);
    change("b/1", false);
    change("c/1", false);
    await start(["a", "b"]);
    assert.equal(
      [told(), [...view.keys()]],
      [
        ["added a/1", "added b/1"],
        ["a/1", "b/1"],
      ],
    );
    assert.equal(informers.namespacesOf("ConfigMap"), ["a", "b"]);
    await watch.stop();
    assert.equal([informers.all.length, [...view.keys()]], [0, []]);
  });

  test("emit additions of an added one, nothing for a removed one, and keep the watch of the others", async () => {
    const { start, change, informers, watch, view, told, switchTo } = createWatch();
    for (const key of ["a/1", "b/1", "c/1"]) change(key, false);
    await start(["a", "b"]);
    const ofB = informers.of("ConfigMap", "b");
    told();
    await switchTo(["b", "c"]);
    assert.equal([told(), [...view.keys()]], [["added c/1"], ["b/1", "c/1"]]);
    assert.is(informers.of("ConfigMap", "b"), ofB);
    change("a/1", false);
    change("b/1", true);
    assert.equal(told(), ["deleted b/1"]);
    await watch.stop();
  });

  test("emit only unknown objects when they change from a list to all and back", async () => {
    const { start, change, informers, watch, view, told, switchTo } = createWatch();
    for (const key of ["a/1", "b/1", "c/1"]) change(key, false);
    await start(["a", "b"]);
    told();
    await switchTo(undefined);
    assert.equal([told(), keysOf(view.list().map(({ object }) => object))], [["added c/1"], ["a/1", "b/1", "c/1"]]);
    assert.equal(informers.namespacesOf("ConfigMap"), [undefined]);
    await switchTo(["c"]);
    assert.equal([told(), [...view.keys()], informers.namespacesOf("ConfigMap")], [[], ["c/1"], ["c"]]);
    await watch.stop();
  });

  test("emit updates and deletions that happened between two watches", async () => {
    const { start, change, watch, objects, changes, switchTo, told } = createWatch();
    for (const key of ["a/1", "a/2", "a/3"]) change(key, false);
    await start(["a"]);
    told();
    // The old watch lags: only the list of the new one has this.
    objects.set("a/1", objectOf("a/1", { resourceVersion: "900" }));
    objects.delete("a/2");
    await switchTo(undefined);
    assert.equal(
      changes.map(({ kind, key, old }) => [kind, key, old?.metadata.resourceVersion]),
      [
        ["updated", "a/1", "101"],
        ["deleted", "a/2", "102"],
      ],
    );
    await watch.stop();
  });

  test("stay unchanged until all have synced, on a rollback, and if one cannot be watched", async () => {
    const { start, change, informers, watch, view, told } = createWatch();
    change("a/1", false);
    change("b/1", false);
    await start(["a"]);
    told();
    const prepared = await watch.prepare(["b"]);
    assert.equal([told(), [...view.keys()]], [[], ["a/1"]]);
    await prepared.rollback();
    assert.equal([[...view.keys()], informers.namespacesOf("ConfigMap")], [["a/1"], ["a"]]);
    informers.onCreate = (informer) => informer.fail("no rights");
    const error = await watch.prepare(["b"]).catch((reason: Error) => reason.message);
    assert.equal([error, [...view.keys()], informers.namespacesOf("ConfigMap")], ["no rights", ["a/1"], ["a"]]);
    await watch.stop();
  });

  test("are ignored for a cluster-scoped kind (N1)", async () => {
    const informers = createServer().informers;
    const cluster = { ...definition, scope: "Cluster" as const };
    const watch = createPrimarySource({ definition: cluster });
    await watch.start({ ...createSourceContext().context, informers, namespaces: ["a"] });
    assert.equal(informers.namespacesOf("ConfigMap"), [undefined]);
    await watch.stop();
  });

  test("report the failing one in the health, while the others work", async () => {
    const { start, informers, watch, change, view } = createWatch();
    change("a/1", false);
    const sync = informers.onCreate;
    informers.onCreate = (informer) =>
      informer.request.namespace === "b" ? informer.fail("no rights in b") : sync(informer);
    const started = start(["a", "b"]);
    const namespaces = { a: { status: "synced" }, b: { status: "failing", reason: "no rights in b" } };
    const health = { status: "unhealthy", reason: "no rights in b", namespaces };
    assert.equal([watch.health, [...view.keys()]], [health, ["a/1"]]);
    sync(informers.of("ConfigMap", "b"));
    await started;
    assert.is(watch.health.status, "healthy");
    await watch.stop();
  });

  test("lose no event and emit none twice after any sequence of changes", async () => {
    const names = ["a", "b", "c"];
    const key = fc.tuple(fc.constantFrom(...names), fc.constantFrom("1", "2")).map((parts) => parts.join("/"));
    const step = fc.oneof(
      { weight: 3, arbitrary: fc.record({ key, isDeleted: fc.boolean() }) },
      { weight: 1, arbitrary: fc.record({ namespaces: fc.option(fc.subarray(names), { nil: undefined }) }) },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
        const { start, watch, objects, change, changes, switchTo, view } = createWatch();
        let namespaces: Namespaces = ["a"];
        await start(namespaces);
        const known = new Map<ObjectKey, string>();
        for (const each of steps) {
          if ("key" in each) change(each.key, each.isDeleted);
          else {
            const dropped = [...known.keys()].filter((other) => !isIn(other, each.namespaces));
            await switchTo((namespaces = each.namespaces));
            for (const other of dropped) known.delete(other);
          }
          for (const { kind, key: changed, object } of changes.splice(0)) {
            const version = object.metadata.resourceVersion ?? "";
            assert.ok(isIn(changed, namespaces), `${changed} is not watched`);
            assert.is(known.has(changed), kind !== "added", `${kind} ${changed}`);
            assert.ok(
              Number(version) > Number(known.get(changed) ?? 0) || kind === "deleted",
              `${changed} is told twice`,
            );
            if (kind === "deleted") known.delete(changed);
            else known.set(changed, version);
          }
          const there = [...objects.values()].filter(({ metadata }) => isIn(`${metadata.namespace}/`, namespaces));
          assert.equal([...known.keys()].sort(), keysOf(there));
          assert.equal([...view.keys()].sort(), keysOf(there));
        }
        await watch.stop();
      }),
    );
  });
});

suite("removed primaries", (test) => {
  test("are emitted as deleted to event sources and forgotten by the controller if their namespace is removed", async () => {
    const told: string[] = [];
    const aware = recordingSource("aware", [], {
      onPrimaryChange: ({ kind, key, isFinalStateUnknown }) => void told.push(`${kind} ${key} ${isFinalStateUnknown}`),
    });
    const { sources, informers, start, sync } = createSources({
      namespaces: ["home", "a"],
      sources: [aware],
      onPrimaryChange: ({ kind, key }) => void told.push(`controller ${kind} ${key}`),
      forget: (key) => void told.push(`forget ${key}`),
    });
    await start();
    informers.of("Page", "home").observe(objectOf("home/one", { resourceVersion: "11" }));
    informers.of("Page", "a").observe(objectOf("a/kept", { resourceVersion: "11" }));
    told.splice(0);
    const following = sources.setNamespaces(["a"]);
    await sync();
    await following;
    assert.equal(told, ["deleted home/one true", "forget home/one"]);
    await sources.stop();
  });

  test("are reported to event sources again when a reconcile that was running at their deletion ends", async () => {
    const told: string[] = [];
    const aware = recordingSource("aware", [], {
      onPrimaryChange: ({ kind, object }) => void told.push(`${kind} ${object.metadata.uid}`),
      release: (key) => void told.push(`release ${key}`),
    });
    const { sources, informers, start } = createSources({
      sources: [aware],
      forget: (key) => void told.push(`forget ${key}`),
    });
    const first = objectOf("home/one", { uid: "u1", resourceVersion: "11" });
    await start();
    informers.of("Page").observe(first);
    told.splice(0);
    sources.release(first);
    assert.equal(told.splice(0), ["release home/one"]);
    informers.of("Page").observe(objectOf("home/one", { uid: "u2", resourceVersion: "12" }));
    assert.equal(told.splice(0), ["deleted u1", "forget home/one", "added u2"]);
    sources.release(first);
    assert.equal(told.splice(0), ["release home/one", "deleted u1", "forget home/one", "added u2"]);
    informers.of("Page").delete(objectOf("home/one", { uid: "u2", resourceVersion: "13" }));
    told.splice(0);
    sources.release(objectOf("home/one", { uid: "u2" }));
    assert.equal(told, ["release home/one", "deleted u2", "forget home/one"]);
    await sources.stop();
  });
});
