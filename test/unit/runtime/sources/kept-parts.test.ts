// Informer sources that keep only a part of their objects, or only some of them whole, and the watches that they share.
import type { KubernetesObject, ObjectKey } from "#runtime/base/kubernetes-object.js";
import { viewOf } from "#runtime/cache/resource-view.js";
import { ResourceCache } from "#runtime/cache/resource-cache.js";
import { untypedResource } from "#runtime/api/define-resource.js";
import { InformerPool } from "#runtime/watch/shared-informers.js";
import { informerSource, type InformerSourceOptions } from "#runtime/sources/informer-source.js";
import type { KindSource } from "#runtime/sources/kind-source.js";
import { assert, suite } from "../../../support/suite.js";
import { objectOf } from "./simulated-informers.js";
import { createSourceContext, primaryOf } from "./source-context.js";

const ConfigMap = untypedResource({ apiVersion: "v1", kind: "ConfigMap", plural: "configmaps", scope: "Namespaced" });
const { definition } = ConfigMap;

type Config = KubernetesObject & { readonly data?: { readonly page: string } };
type Options = Partial<InformerSourceOptions<Config>>;

const config = (name: string, version: number, page: string): Config => ({
  ...objectOf(`home/${name}`, { resourceVersion: `${version}` }),
  data: { page },
});

/** A source whose mapper reads the data, over a cache that keeps one object whole. */
async function startBounded(options: Options = {}) {
  const support = createSourceContext("home/one", "home/two");
  const server = new Map<ObjectKey, Config>();
  const fetched: ObjectKey[] = [];
  const fetch = async (key: ObjectKey) => {
    fetched.push(key);
    const object = server.get(key);
    return object && { object };
  };
  support.informers.onCreate = (informer) =>
    Object.assign(informer, { cache: new ResourceCache({ bound: { maxObjects: 1, fetch } }) });
  const source = informerSource<Config>({
    ...{ name: "configs", resource: ConfigMap, maxCachedObjects: 1 },
    mapper: ({ data }) => [`home/${data!.page}`],
    ...options,
  });
  const started = source.start(support.context);
  const informer = support.informers.all[0]!;
  const objects = [config("a", 1, "one"), config("b", 2, "two")];
  for (const object of objects) server.set(`home/${object.metadata.name}`, object);
  informer.sync("10", ...objects);
  await started;
  support.notified();
  const found = (page: string) => source.secondariesOf(primaryOf(`home/${page}`)).map(({ metadata }) => metadata.name);
  return { ...support, source, informer, fetched, found };
}

suite("partial caches of informer sources", (test) => {
  test("fetch an evicted object before the reconcile that needs it, and evict it again afterwards", async () => {
    const { source, fetched, found } = await startBounded();
    assert.equal([found("one"), found("two")], [[], ["b"]]);
    await source.load?.(primaryOf("home/one"), new AbortController().signal);
    await source.load?.(primaryOf("home/two"), new AbortController().signal);
    assert.equal([found("one"), found("two"), fetched], [["a"], ["b"], ["home/a"]]);
    source.release?.("home/one");
    source.release?.("home/two");
    assert.equal([...found("one"), ...found("two")].length, 1);
    await source.stop();
  });

  test("enqueue the previous primaries of an evicted object, although the mapper cannot read it", async () => {
    const primaryToSecondary = ({ metadata }: KubernetesObject) => [`home/${metadata.name === "one" ? "a" : "b"}`];
    for (const options of [{}, { primaryToSecondary }] as Options[]) {
      const { source, informer, notified } = await startBounded(options);
      informer.observe(config("a", 11, "two"));
      assert.equal(notified().sort(), ["home/one", "home/two"]);
      informer.sync("20", config("a", 11, "two"));
      assert.equal(notified(), ["home/two"]);
      assert.is(source.health.status, "healthy");
      await source.stop();
    }
  });

  test("skip onUpdate if the old state was evicted, but apply the generic filter", async () => {
    const onUpdate = (object: Config, old: Config) => object.data!.page !== old.data!.page;
    for (const generic of [() => true, () => false]) {
      const { source, informer, notified } = await startBounded({ filters: { onUpdate, generic } });
      informer.observe(config("a", 11, "one"));
      assert.equal([notified(), source.health.status], [generic() ? ["home/one"] : [], "healthy"]);
      await source.stop();
    }
  });

  test("index evicted objects of namespaces that are added later", async () => {
    const { context, informers, source } = await startBounded();
    const pageOf = (object: KubernetesObject) => [(object as Config).data!.page];
    viewOf(source)!.addIndex("page", pageOf);
    await source.stop();
    const started = source.start({ ...context, namespaces: ["x"] });
    informers.of("ConfigMap", "x").sync("10");
    await started;
    const preparing = (source as unknown as KindSource).prepare(["home"]);
    informers.of("ConfigMap", "home").sync("10", config("a", 1, "one"), config("b", 2, "two"));
    await (await preparing).commit();
    assert.equal([...viewOf(source)!.keysByIndex("page", "one")], ["home/a"]);
    assert.equal([source.get("home/a"), source.get("home/b")?.data?.page], [undefined, "two"]);
    await source.stop();
  });

  test("are shared by sources with the same paths in any order, but never if they are bounded", () => {
    const { context } = createSourceContext();
    const pool = new InformerPool({ client: context.client, fieldManagers: [], logger: context.logger });
    const count = (...requests: readonly object[]) => {
      const before = pool.activity().length;
      for (const request of requests) pool.acquire({ definition, ...request });
      return pool.activity().length - before;
    };
    assert.is(count({}, {}), 1);
    assert.is(count({ projection: ["data.a", "data.b"] }, { projection: ["data.b", "data.a"] }), 1);
    assert.is(count({ projection: ["data.a"] }, { isMetadataOnly: true }), 2);
    assert.is(count({ maxCachedObjects: 5 }, { maxCachedObjects: 5 }), 2);
  });

  test("are validated when the source is created", () => {
    const create = (options: Options) => () =>
      informerSource<Config>({ name: "configs", resource: ConfigMap, ...options });
    assert.throws(
      create({ cache: { paths: ["a..b"] } }),
      /the cache of event source "configs" is wrong: "a\.\.b" is not a valid field path/,
    );
    for (const maxCachedObjects of [0, -1, 1.5, Number.NaN])
      assert.throws(
        create({ maxCachedObjects }),
        /event source "configs" has .* for maxCachedObjects; it needs (1 or more|a whole number)$/,
      );
    assert.throws(create({ maxCachedObjects: 1, comparesVersions: false }), /"configs" cannot have maxCachedObjects/);
  });
});
