// What an object concerns changes without the object: with the primaries that its mapper looks at, and with what primaries name.
import { keyOf, type KubernetesObject, type ObjectKey } from "#runtime/base/kubernetes-object.js";
import { untypedResource } from "#runtime/api/define-resource.js";
import type { MapperContext } from "#runtime/sources/mappers.js";
import { informerSource, type InformerSourceOptions } from "#runtime/sources/informer-source.js";
import fc from "../../../support/fast-check.js";
import { assert, suite } from "../../../support/suite.js";
import { keysOf, objectOf } from "./simulated-informers.js";
import { changeOf, createSourceContext, primaryOf } from "./source-context.js";

const ConfigMap = untypedResource({ apiVersion: "v1", kind: "ConfigMap", plural: "configmaps", scope: "Namespaced" });

type Mapping = Pick<InformerSourceOptions<KubernetesObject, KubernetesObject>, "mapper" | "primaryToSecondary">;
type Look = (object: KubernetesObject, primaries: MapperContext["primaries"]) => Iterable<ObjectKey>;

/** Starts a source of ConfigMaps, which knows `objects`; `change` and `remove` bring a primary as its watch does. */
async function startSource(mapping: Mapping, objects: readonly KubernetesObject[] = []) {
  const support = createSourceContext();
  const { primaries } = support.context;
  primaries.addIndex("config", nameOf);
  const source = informerSource<KubernetesObject>({ name: "configs", resource: ConfigMap, ...mapping });
  const started = source.start(support.context);
  const informer = support.informers.all[0]!;
  informer.sync("10", ...objects);
  await started;
  const change = (primary: KubernetesObject, madeFor?: ObjectKey) => {
    const key = keyOf(primary.metadata);
    const old = primaries.get(key)?.object;
    support.addPrimary(primary);
    const { object } = primaries.get(key)!;
    const kind = old === undefined ? "added" : "updated";
    source.onPrimaryChange?.({ ...changeOf(kind, object), madeFor, ...(old === undefined ? {} : { old }) });
  };
  const remove = (key: ObjectKey) => {
    support.deletePrimary(key);
    source.onPrimaryChange?.(changeOf("deleted", primaryOf(key)));
  };
  const secondaries = (key: ObjectKey) => keysOf(source.secondariesOf(primaries.get(key)?.object ?? primaryOf(key)));
  let version = 10;
  /** An object in its next version. */
  const next = (key: ObjectKey, metadata: object = {}) =>
    objectOf(key, { resourceVersion: String(++version), ...metadata });
  return { ...support, source, informer, change, remove, secondaries, next };
}

/** Starts a source whose mapper looks at primaries, and notes for which objects it is asked. */
async function startLooking(look: Look, objects: readonly KubernetesObject[] = []) {
  const asked: ObjectKey[] = [];
  const mapper: Mapping["mapper"] = (object, { primaries }) => {
    asked.push(keyOf(object.metadata));
    return look(object, primaries);
  };
  return { ...(await startSource({ mapper }, objects)), asked };
}

/** The primaries that name an object in their annotation. */
const nameOf = ({ metadata }: KubernetesObject) =>
  metadata.annotations === undefined ? [] : [metadata.annotations["config"]!];
const naming = (key: ObjectKey, config: string, metadata: object = {}) => {
  const primary = primaryOf(key);
  return { ...primary, metadata: { ...primary.metadata, annotations: { config }, ...metadata } };
};

suite("mappers that read primaries", (test) => {
  const byGet: Look = ({ metadata }, primaries) => {
    const key = `home/${metadata.labels?.["page"]}`;
    return primaries.get(key) === undefined ? [] : [key];
  };
  const byConfig: Look = ({ metadata }, primaries) => primaries.keysByIndex("config", keyOf(metadata));
  const ofPage = (key: ObjectKey, page: string) => objectOf(key, { labels: { page } });

  test("map an existing object to its primary once that is added", async () => {
    const { source, change, secondaries, notified, informer, next } = await startLooking(byGet, [
      ofPage("home/a", "one"),
    ]);
    assert.equal(secondaries("home/one"), []);
    change(primaryOf("home/one"));
    assert.equal([secondaries("home/one"), notified()], [["home/a"], []]);
    informer.observe(next("home/a", { labels: { page: "two" } }));
    assert.equal([secondaries("home/one"), notified()], [[], ["home/one"]]);
    await source.stop();
  });

  test("enqueue a primary added after its object if a relist lacks that object", async () => {
    const { source, change, notified, informer } = await startLooking(byGet, [ofPage("home/a", "one")]);
    change(primaryOf("home/one"));
    informer.sync("20");
    assert.equal(notified(), ["home/one"]);
    await source.stop();
  });

  test("are called again for objects indexed by a primary that is added, changed or deleted", async () => {
    const { source, change, remove, secondaries } = await startLooking(byConfig, [
      objectOf("home/a"),
      objectOf("home/b"),
    ]);
    change(naming("home/one", "home/a"));
    assert.equal(secondaries("home/one"), ["home/a"]);
    change(naming("home/one", "home/b"));
    assert.equal(secondaries("home/one"), ["home/b"]);
    change(naming("home/two", "home/b"));
    remove("home/one");
    assert.equal([secondaries("home/one"), secondaries("home/two")], [[], ["home/b"]]);
    await source.stop();
  });

  test("enqueue primaries that gain or lose an object by a change of another primary", async () => {
    // What one page names belongs to another.
    const toParent: Look = (object, primaries) =>
      [...byConfig(object, primaries)].map(
        (key) => `home/${primaries.get(key)?.metadata.labels?.["parent"]}` as ObjectKey,
      );
    const { source, change, notified, notifications, settle } = await startLooking(toParent, [objectOf("home/a")]);
    change(naming("home/child", "home/a", { labels: { parent: "one" } }));
    await settle();
    assert.equal(notifications.splice(0), [{ primaries: ["home/one"], cause: { object: "home/a" } }]);
    change(naming("home/child", "home/a", { labels: { parent: "two" } }));
    await settle();
    assert.equal(notified().sort(), ["home/one", "home/two"]);
    await source.stop();
  });

  test("enqueue a primary that gains an object by its own change only if its generation is unchanged", async () => {
    const { source, change, notified, settle } = await startLooking(byConfig, [objectOf("home/a"), objectOf("home/b")]);
    change(naming("home/one", "home/none", { generation: 1 }));
    change(naming("home/one", "home/a", { generation: 2 }));
    await settle();
    assert.equal(notified(), []);
    change(naming("home/one", "home/b", { generation: 2 }));
    await settle();
    assert.equal(notified(), ["home/one", "home/one"], "for the one that it lost and the one that it gained");
    await source.stop();
  });

  test("reflect an own write to a primary in its next reconcile", async () => {
    const { source, change, addPrimary, secondaries } = await startLooking(byConfig, [
      objectOf("home/a"),
      objectOf("home/b"),
    ]);
    change(naming("home/one", "home/a"));
    assert.equal(secondaries("home/one"), ["home/a"]);
    addPrimary(naming("home/one", "home/b"));
    assert.equal(secondaries("home/one"), ["home/b"]);
    await source.stop();
  });

  test("enqueue primaries that gain or lose an object by an own write to a primary", async () => {
    // What one page names belongs to that one and to another.
    const toBoth: Look = (object, primaries) => [...byConfig(object, primaries)].flatMap((key) => [key, "home/other"]);
    const { source, change, secondaries, notified, settle } = await startLooking(toBoth, [objectOf("home/a")]);
    change(naming("home/one", "home/none"));
    change(primaryOf("home/other"));
    await settle();
    assert.equal(notified(), []);
    change(naming("home/one", "home/a", { generation: 1 }), "home/one");
    await settle();
    assert.equal([secondaries("home/other"), notified()], [["home/a"], ["home/one", "home/other"]]);
    await source.stop();
  });

  test("are called at most every 5 s for own writes if they read all primaries, and never after stop", async () => {
    const ofAll: Look = (_, primaries) => primaries.list().flatMap(nameOf) as ObjectKey[];
    const { source, change, asked, notified, advance } = await startLooking(ofAll, [objectOf("home/a")]);
    change(primaryOf("home/one"));
    await advance(0);
    asked.splice(0);
    for (const name of ["home/x", "home/y"]) change(naming("home/one", name, { generation: 1 }), "home/one");
    await advance(4_999);
    assert.equal(asked, []);
    await advance(1);
    assert.equal([asked, notified()], [["home/a"], ["home/y"]]);
    change(naming("home/one", "home/z", { generation: 1 }), "home/one");
    await source.stop();
    await advance(5_000);
    assert.is(asked.length, 1, "nor after the stop");
  });

  test("are not called again for unrelated objects", async () => {
    const objects = [objectOf("home/a"), objectOf("home/b"), objectOf("home/c")];
    const { source, change, asked, settle } = await startLooking(byConfig, objects);
    assert.equal(asked.splice(0), ["home/a", "home/b", "home/c"]);
    change(naming("home/one", "home/b"));
    await settle();
    assert.equal(asked.splice(0), ["home/b"]);
    const all = await startLooking(({ metadata }) => [`home/${metadata.name}`], objects);
    all.asked.splice(0);
    all.change(primaryOf("home/a"));
    await settle();
    assert.equal([all.secondaries("home/a"), all.asked], [["home/a"], []], "nor is what looks at none");
    await source.stop();
    await all.source.stop();
  });

  test("are called once per object if 100 primaries are added at once", async () => {
    const { source, change, asked, settle } = await startLooking(
      (_, primaries) => primaries.keys(),
      [objectOf("home/a")],
    );
    asked.splice(0);
    for (let count = 0; count < 100; count++) change(primaryOf(`home/${count}`));
    await settle();
    assert.equal(asked, ["home/a"]);
    await source.stop();
  });

  test("map each object to the primaries they find after any sequence of changes", async () => {
    const keys = ["home/a", "home/b"] as const;
    const pages = ["home/one", "home/two", "home/three"] as const;
    const step = fc.oneof(
      fc.record({
        kind: fc.constant("primary" as const),
        page: fc.constantFrom(...pages),
        key: fc.option(fc.constantFrom(...keys)),
      }),
      fc.record({ kind: fc.constant("object" as const), key: fc.constantFrom(...keys), isThere: fc.boolean() }),
    );
    const looks: readonly Look[] = [
      byConfig,
      ({ metadata }, primaries) =>
        primaries.list().flatMap((page) => (nameOf(page)[0] === keyOf(metadata) ? [keyOf(page.metadata)] : [])),
      ({ metadata }, primaries) => primaries.byIndex("config", keyOf(metadata)).map((page) => keyOf(page.metadata)),
      ({ metadata }, primaries) =>
        pages.filter((page) => nameOf(primaries.get(page) ?? primaryOf(page))[0] === keyOf(metadata)),
    ];
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...looks), fc.array(step, { maxLength: 12 }), async (look, steps) => {
        const { source, informer, next, change, remove, secondaries, settle, context } = await startLooking(look);
        for (const each of steps) {
          if (each.kind === "object") {
            if (each.isThere) informer.observe(next(each.key));
            else if (source.get(each.key) !== undefined) informer.delete(next(each.key));
          } else if (each.key !== null) change(naming(each.page, each.key));
          else if (context.primaries.has(each.page)) remove(each.page);
          if (steps.length % 2 === 0) await settle();
        }
        for (const page of pages) {
          const named = nameOf(context.primaries.get(page)?.object ?? primaryOf(page));
          assert.equal(
            secondaries(page),
            named.filter((key) => source.get(key as ObjectKey) !== undefined) as ObjectKey[],
          );
        }
        await source.stop();
      }),
    );
  });
});

suite("primaryToSecondary that reads another source", (test) => {
  test("enqueues a primary for events of the objects of its last reconcile", async () => {
    const targets = new Map<ObjectKey, ObjectKey>();
    const primaryToSecondary = ({ metadata }: KubernetesObject) => targets.get(keyOf(metadata)) ?? [];
    const { source, informer, next, notified, change, remove } = await startSource({
      primaryToSecondary: (primary) => [primaryToSecondary(primary)].flat() as ObjectKey[],
    });
    change(primaryOf("home/one"));
    const reconcile = async (key: ObjectKey) => source.load?.(primaryOf(key), new AbortController().signal);
    informer.observe(next("home/a"));
    assert.equal(notified(), [], "nobody names it yet");
    targets.set("home/one", "home/a");
    await reconcile("home/one");
    informer.observe(next("home/a"));
    assert.equal(notified(), ["home/one"]);
    targets.set("home/one", "home/b");
    await reconcile("home/one");
    informer.observe(next("home/a"));
    informer.observe(next("home/b"));
    assert.equal(notified(), ["home/one"], "the first object is named no longer");
    remove("home/one");
    informer.observe(next("home/b"));
    assert.equal(notified(), []);
    await source.stop();
  });
});
