// JOSDK's InformerEventSourceTest and PrimaryToSecondaryIndexTest; the titles in brackets are its own. What concerns the cache of answers
// and the windows of own writes alone is tested beside those.
import type { KubernetesObject, ObjectKey } from "#runtime/base/kubernetes-object.js";
import { viewOf } from "#runtime/cache/resource-view.js";
import { createConnection } from "#runtime/client/connection.js";
import { untypedResource } from "#runtime/api/define-resource.js";
import { informerSource, type InformerSourceOptions } from "#runtime/sources/informer-source.js";
import { byLabel } from "#runtime/sources/mappers.js";
import fc from "../../../support/fast-check.js";
import { assert, suite } from "../../../support/suite.js";
import { keysOf, objectOf, ownedBy } from "./simulated-informers.js";
import { createSourceContext, page, primaryOf } from "./source-context.js";

const ConfigMap = untypedResource({ apiVersion: "v1", kind: "ConfigMap", plural: "configmaps", scope: "Namespaced" });

type Options = Partial<InformerSourceOptions<KubernetesObject, KubernetesObject>>;

/** Starts a source of ConfigMaps, which knows `objects` by a list of version 10. */
async function startSource(options: Options = {}, objects: readonly KubernetesObject[] = []) {
  const support = createSourceContext("home/one", "home/two");
  const source = informerSource<KubernetesObject>({ name: "configs", resource: ConfigMap, ...options });
  const started = source.start(support.context);
  const informer = support.informers.all[0]!;
  informer.sync("10", ...objects);
  await started;
  const secondaries = (key: ObjectKey) => keysOf(source.secondariesOf(primaryOf(key)));
  let version = 10;
  /** An object in its next version. */
  const next = (key: ObjectKey, metadata: object = {}) =>
    objectOf(key, { resourceVersion: String(++version), ...metadata });
  return { ...support, source, informer, secondaries, next };
}

suite("informerSource", (test) => {
  test("marks events of the first list as initial, and later ones not", async () => {
    const { informer, notifications, next, source } = await startSource({}, [objectOf("home/a", ownedBy("one"))]);
    assert.equal(notifications.splice(0), [
      { primaries: ["home/one"], cause: { type: "ConfigMap", object: "home/a", isInitial: true } },
    ]);
    informer.observe(next("home/a", ownedBy("one")));
    informer.delete(next("home/a", ownedBy("one")));
    const cause = { type: "ConfigMap", object: "home/a", isInitial: false };
    assert.equal(notifications, [
      { primaries: ["home/one"], cause },
      { primaries: ["home/one"], cause },
    ]);
    await source.stop();
  });

  test("rejects options of an invalid type and unknown indexes", async () => {
    for (const [namespaces, message] of [
      [["home", "A/b"], '"A/b" is not a valid namespace name (namespaces of event source "configs")'],
      [[" "], "is not a valid namespace name"],
      [[], 'event source "configs" has an empty list of namespaces; name at least one, or leave the list out'],
    ] as const)
      assert.throws(() => informerSource({ name: "configs", resource: ConfigMap, namespaces }), message);
    for (const [options, message] of [
      [
        { resource: undefined },
        'event source "configs" has no resource; give it a generated class, or what untypedResource returns',
      ],
      [{ resource: ConfigMap.definition }, 'event source "configs" has no resource; '],
      [{ mapper: "byLabel" }, 'event source "configs" has "byLabel" for mapper; it needs a function'],
      [{ primaryToSecondary: [] }, "for primaryToSecondary; it needs a function"],
      [
        { cache: "some" },
        'event source "configs" has "some" for cache; it needs "full", "metadata" or an object with paths',
      ],
    ] as [object, string][])
      assert.throws(() => informerSource({ name: "configs", resource: ConfigMap, ...options }), message);
    const { source } = await startSource({ indexes: { byText: () => ["a"] } }, [objectOf("home/a")]);
    assert.equal(keysOf(source.byIndex("byText", "a")), ["home/a"]);
    assert.throws(() => source.byIndex("byTxt", "a"), 'there is no index "byTxt" of configmaps; add it to indexes');
    await source.stop();
  });

  test("stores an object without a primary and enqueues nothing", async () => {
    const { source, notified } = await startSource({}, [objectOf("home/a")]);
    assert.equal([notified(), source.get("home/a")?.metadata.name], [[], "a"]);
    await source.stop();
  });

  test("filters events, not its cache (F1, F3) (genericFilterForEvents, filtersOnAddEvents, filtersOnUpdateEvents, filtersOnDeleteEvents)", async () => {
    const isTold = (object: KubernetesObject) => object.metadata.labels?.["told"] === "yes";
    const told = { labels: { told: "yes" } };
    for (const filters of [{ generic: isTold }, { onAdd: isTold, onUpdate: isTold, onDelete: isTold }]) {
      const { source, informer, notified, next, secondaries } = await startSource({ filters });
      informer.observe(next("home/a", ownedBy("one")));
      assert.equal([notified(), secondaries("home/one")], [[], ["home/a"]]);
      informer.observe(next("home/a", ownedBy("two")));
      assert.equal([notified(), secondaries("home/one"), secondaries("home/two")], [[], [], ["home/a"]]);
      informer.delete(next("home/a", ownedBy("two")));
      assert.equal([notified(), secondaries("home/two")], [[], []]);
      informer.observe(next("home/b", { ...ownedBy("one"), ...told }));
      informer.observe(next("home/b", { ...ownedBy("one"), ...told }));
      informer.delete(next("home/b", { ...ownedBy("one"), ...told }));
      assert.equal(notified(), ["home/one", "home/one", "home/one"]);
      await source.stop();
    }
  });

  test("passes the new and old state to onUpdate, and to onDelete whether the final state is known", async () => {
    const seen: unknown[] = [];
    const filters = {
      onUpdate: (object: KubernetesObject, old: KubernetesObject) => {
        seen.push([object.metadata.resourceVersion, old.metadata.resourceVersion]);
        return true;
      },
      onDelete: (_: KubernetesObject, isFinalStateUnknown: boolean) => {
        seen.push(isFinalStateUnknown);
        return true;
      },
    };
    const { source, informer, next } = await startSource({ filters }, [objectOf("home/b", ownedBy("one"))]);
    informer.observe(next("home/a", ownedBy("one")));
    informer.observe(next("home/a", ownedBy("one")));
    informer.delete(next("home/a", ownedBy("one")));
    informer.sync("20");
    assert.equal(seen, [["12", "11"], false, true], "b went while nobody watched");
    await source.stop();
  });

  test("filters own writes but emits foreign updates (own event deferred, foreign update during own update)", async () => {
    const { source, informer, notified, next, secondaries } = await startSource();
    const view = viewOf(source)!;
    const own = next("home/a", ownedBy("one"));
    view.beginWrite("home/a")({ entry: { object: own }, isOwn: true });
    assert.equal(secondaries("home/one"), ["home/a"]);
    informer.observe(own);
    assert.equal(notified(), []);
    const endWrite = view.beginWrite("home/a");
    const foreign = next("home/a", ownedBy("one"));
    const second = next("home/a", ownedBy("one"));
    informer.observe(foreign);
    assert.equal(notified(), []);
    endWrite({ entry: { object: second }, isOwn: true });
    informer.observe(second);
    assert.equal(notified(), ["home/one"]);
    await source.stop();
  });

  test("calls onUpdate once for coalesced events, with the state before the first and after the last", async () => {
    const asked: (string | undefined)[][] = [];
    const versionOf = ({ metadata }: KubernetesObject) => metadata.resourceVersion;
    const onUpdate = (after: KubernetesObject, before: KubernetesObject) => {
      asked.push([versionOf(before), versionOf(after)]);
      return false;
    };
    const { source, informer, notified, next } = await startSource({ filters: { onUpdate } }, [
      objectOf("home/a", ownedBy("one")),
    ]);
    const before = versionOf(viewOf(source)!.get("home/a")!.object);
    notified();
    const endWrite = viewOf(source)!.beginWrite("home/a");
    const [foreign, own] = [next("home/a", ownedBy("one")), next("home/a", ownedBy("one"))];
    informer.observe(foreign);
    informer.observe(own);
    assert.equal(asked, [], "nothing is told while the write is under way");
    endWrite({ entry: { object: own }, isOwn: true });
    assert.equal(asked, [[before, versionOf(own)]]);
    assert.equal(notified(), [], "what the filter rejects is told nobody");
    await source.stop();
  });

  test("emits events of a failed write when it ends and later ones immediately", async () => {
    const { source, informer, notified, next } = await startSource();
    const endWrite = viewOf(source)!.beginWrite("home/a");
    informer.observe(next("home/a", ownedBy("one")));
    endWrite();
    assert.equal(notified(), ["home/one"]);
    informer.observe(next("home/a", ownedBy("one")));
    assert.equal(notified(), ["home/one"]);
    await source.stop();
  });

  test("supports a custom index with the name of an internal one", async () => {
    const indexes = { owner: ({ metadata }: KubernetesObject) => Object.values(metadata.labels ?? {}) };
    const object = objectOf("home/a", { labels: { x: "1" }, ...ownedBy("one") });
    const { source, secondaries } = await startSource({ indexes }, [object]);
    assert.equal([secondaries("home/one"), keysOf(source.byIndex("owner", "1"))], [["home/a"], ["home/a"]]);
    await source.stop();
  });

  test("includes own writes in indexes and lists (M8) (byIndexIncludesTempCache, listReplacesByTemp)", async () => {
    const indexes = { owner: ({ metadata }: KubernetesObject) => Object.values(metadata.labels ?? {}) };
    const { source, next } = await startSource({ indexes }, [objectOf("home/a", { labels: { x: "1" } })]);
    assert.equal(keysOf(source.byIndex("owner", "1")), ["home/a"]);
    const own = next("home/b", { labels: { x: "1" } });
    viewOf(source)!.put({ object: own });
    viewOf(source)!.put({ object: next("home/a", { labels: { x: "2" } }) });
    assert.equal(keysOf(source.byIndex("owner", "1")), ["home/b"]);
    assert.equal(keysOf(source.byIndex("owner", "2")), ["home/a"]);
    assert.equal(keysOf(source.list({ where: ({ metadata }) => metadata.labels?.["x"] === "1" })), ["home/b"]);
    assert.equal(keysOf(source.list({ namespace: "away" })), []);
    await source.stop();
  });

  test("drops its state on stop and can be restarted", async () => {
    const { source, informers, context, secondaries, notified } = await startSource({}, [
      objectOf("home/a", ownedBy("one")),
    ]);
    assert.is(source.health.status, "healthy");
    await source.stop();
    assert.equal([source.health.status, secondaries("home/one"), informers.all], ["unknown", [], []]);
    notified();
    const started = source.start(context);
    informers.all[0]!.sync("30", objectOf("home/a", ownedBy("two")));
    await started;
    assert.equal([notified(), secondaries("home/one"), secondaries("home/two")], [["home/two"], [], ["home/a"]]);
    await source.stop();
  });

  test("reports the health of its watch with the reason", async () => {
    const { source, informer } = await startSource();
    informer.fail("not allowed");
    assert.equal(source.health, { status: "unhealthy", reason: "not allowed" });
    await source.stop();
  });

  test("passes selectors, cache and connection to the watch", async () => {
    const connection = createConnection({ url: "http://127.0.0.1:1" });
    const mapper = byLabel({ definition: page }, { name: "page" });
    const options = {
      labelSelector: "a=b",
      fieldSelector: "type=Opaque",
      shardSelector: "shardRange(object.metadata.uid, '0x0', '0x8')",
      cache: "metadata" as const,
      connection,
      mapper,
    };
    const { source, informer } = await startSource(options);
    const { labelSelector, fieldSelector, shardSelector, isMetadataOnly } = informer.request;
    assert.equal([labelSelector, fieldSelector, isMetadataOnly], ["a=b", "type=Opaque", true]);
    assert.is(shardSelector, options.shardSelector);
    assert.is(informer.request.connection, connection);
    await source.stop();
  });

  test("requires a mapper for another cluster, where owner references do not apply (E15)", () => {
    const connection = { url: "http://127.0.0.1:1" };
    assert.throws(
      () => informerSource({ name: "remote", resource: ConfigMap, connection }),
      /event source "remote" watches configmaps in another cluster, where owner references do not apply; give it a mapper/,
    );
  });
});

suite("primary-to-secondary index", (test) => {
  test("reflects each added and removed secondary immediately", async () => {
    const { source, informer, next, secondaries } = await startSource();
    assert.equal(secondaries("home/one"), []);
    informer.observe(next("home/a", ownedBy("one")));
    informer.observe(next("home/b", ownedBy("one", "two")));
    assert.equal([secondaries("home/one"), secondaries("home/two")], [["home/a", "home/b"], ["home/b"]]);
    informer.observe(next("home/b", ownedBy("one", "two")));
    assert.equal([secondaries("home/one"), secondaries("home/two")], [["home/a", "home/b"], ["home/b"]], "unchanged");
    informer.delete(next("home/a", ownedBy("one")));
    assert.equal(secondaries("home/one"), ["home/b"]);
    await source.stop();
  });

  test("removes a secondary from a primary it no longer references and enqueues both (M7) (narrowed reference, move)", async () => {
    const { source, informer, next, secondaries, notified } = await startSource();
    informer.observe(next("home/a", ownedBy("one", "two")));
    informer.observe(next("home/b", ownedBy("one")));
    notified();
    informer.observe(next("home/a", ownedBy("two")));
    assert.equal(notified().sort(), ["home/one", "home/two"]);
    assert.equal([secondaries("home/one"), secondaries("home/two")], [["home/b"], ["home/a"]]);
    informer.observe(next("home/a", ownedBy("three")));
    assert.equal(notified().sort(), ["home/three", "home/two"]);
    assert.equal([secondaries("home/two"), secondaries("home/three")], [[], ["home/a"]]);
    await source.stop();
  });

  test("equals the owners of the current objects after any sequence of changes", async () => {
    const names = ["one", "two", "three"];
    const step = fc.record({
      key: fc.constantFrom("home/a", "home/b"),
      owners: fc.option(fc.subarray(names)),
      isOwn: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
        const { source, informer, next, secondaries } = await startSource();
        const there = new Map<ObjectKey, readonly string[]>();
        for (const { key, owners, isOwn } of steps) {
          const object = next(key, ownedBy(...(owners ?? [])));
          if (owners === null) {
            if (!there.delete(key)) continue;
            informer.delete(object);
          } else {
            there.set(key, owners);
            if (isOwn) viewOf(source)!.put({ object });
            informer.observe(object);
          }
        }
        for (const name of names) {
          const expected = [...there].filter(([, owners]) => owners.includes(name)).map(([key]) => key);
          assert.equal(secondaries(`home/${name}`), expected.sort());
        }
        await source.stop();
      }),
    );
  });
});

suite("mappers of an informer source", (test) => {
  test("are called once per state of an object (mapperIsCalledOnce)", async () => {
    const asked: (string | undefined)[] = [];
    const mapper = ({ metadata }: KubernetesObject) => {
      asked.push(metadata.resourceVersion);
      return ["home/one"];
    };
    const { source, informer, next } = await startSource({ mapper }, [objectOf("home/a")]);
    informer.observe(next("home/a"));
    informer.delete(next("home/a"));
    assert.equal(asked, ["1", "11", "12"]);
    await source.stop();
  });

  test("enqueue the known primaries if they throw, and make the source unhealthy until they work", async () => {
    const mapper = ({ metadata }: KubernetesObject) => {
      if (metadata.labels?.["page"] === undefined) throw new Error("no label page");
      return [`home/${metadata.labels["page"]}`];
    };
    const { source, informer, next, notified, lines } = await startSource({ mapper });
    informer.observe(next("home/a", { labels: { page: "one" } }));
    notified();
    informer.observe(next("home/a"));
    assert.equal(notified(), ["home/one"]);
    assert.equal(source.health, { status: "unhealthy", reason: "the mapper failed: no label page" });
    informer.delete(next("home/a"));
    informer.observe(next("home/b", { labels: { page: "two" } }));
    assert.equal([notified(), source.health.status], [["home/two"], "healthy"]);
    assert.equal(lines, [
      'warn: event source "configs": the mapper failed: no label page',
      'info: event source "configs" works again',
    ]);
    await source.stop();
  });

  test("use primaryToSecondary for secondaries and their events (M6, PrimaryToSecondaryIT)", async () => {
    const refersTo = (name: string) => (key: ObjectKey) => {
      const primary = primaryOf(key);
      return { ...primary, metadata: { ...primary.metadata, annotations: { config: name } } };
    };
    const toShared = refersTo("home/shared");
    const primaryToSecondary = ({ metadata }: KubernetesObject) =>
      metadata.annotations === undefined ? [] : [metadata.annotations["config"]!];
    const { source, informer, next, notified, addPrimary } = await startSource({ primaryToSecondary }, [
      objectOf("home/shared"),
    ]);
    assert.equal(keysOf(source.secondariesOf(toShared("home/new"))), ["home/shared"], "no index has to know it");
    addPrimary(toShared("home/one"));
    addPrimary(toShared("home/two"));
    informer.observe(next("home/shared"));
    assert.equal(notified().sort(), ["home/one", "home/two"]);
    addPrimary(refersTo("home/other")("home/two"));
    informer.observe(next("home/shared"));
    informer.observe(next("home/other"));
    assert.equal(notified(), ["home/one", "home/two"]);
    informer.delete(next("home/shared"));
    assert.equal([notified(), source.secondariesOf(toShared("home/one"))], [["home/one"], []]);
    await source.stop();
  });

  test("select the primaries to enqueue, while primaryToSecondary selects the secondaries", async () => {
    const options = { mapper: () => ["home/two"], primaryToSecondary: () => ["home/a", "home/b"] };
    const { source, informer, next, notified, secondaries } = await startSource(options);
    informer.observe(next("home/a"));
    assert.equal([notified(), secondaries("home/one")], [["home/two"], ["home/a"]]);
    await source.stop();
  });

  test("can read the primaries (PrimaryIndexerIT)", async () => {
    const mapper = ({ metadata }: KubernetesObject, { primaries }: { primaries: { keys(): Iterable<ObjectKey> } }) =>
      metadata.name === "all" ? primaries.keys() : [];
    const { source, informer, next, notified } = await startSource({ mapper });
    informer.observe(next("home/all"));
    assert.equal(notified(), ["home/one", "home/two"]);
    await source.stop();
  });
});
