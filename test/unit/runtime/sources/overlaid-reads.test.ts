// What a source reads while answers to own writes are ahead of its watch: the cases of JOSDK's InformerEventSourceTest on list, byIndex and keys,
// and on objects that are known from an answer only ("ghosts").
import type { KubernetesObject, ObjectMeta } from "#runtime/base/kubernetes-object.js";
import { viewOf } from "#runtime/cache/resource-view.js";
import { untypedResource } from "#runtime/api/define-resource.js";
import { informerSource, type InformerSourceOptions } from "#runtime/sources/informer-source.js";
import { assert, suite } from "../../../support/suite.js";
import { objectOf } from "./simulated-informers.js";
import { createSourceContext } from "./source-context.js";

const ConfigMap = untypedResource({ apiVersion: "v1", kind: "ConfigMap", plural: "configmaps", scope: "Namespaced" });

const tiersOf = ({ metadata }: KubernetesObject) => [metadata.labels?.["tier"] ?? "none"];

/** An object of a version and, if given, a tier. */
function config(name: string, version: number, tier?: string, metadata: Partial<ObjectMeta> = {}): KubernetesObject {
  const labels = tier === undefined ? {} : { labels: { tier } };
  return objectOf(`home/${name}`, { resourceVersion: `${version}`, ...labels, ...metadata });
}

const wordOf = ({ metadata }: KubernetesObject) => `${metadata.name}@${metadata.resourceVersion}`;

/** A source whose watch is at version 10 and knows `objects`. */
async function startSource(
  objects: readonly KubernetesObject[] = [],
  filters: InformerSourceOptions<KubernetesObject>["filters"] = {},
) {
  const support = createSourceContext();
  const mapper = ({ metadata }: KubernetesObject) => [`home/of-${metadata.name}`];
  const source = informerSource<KubernetesObject>({
    ...{ name: "configs", resource: ConfigMap, mapper, indexes: { tier: tiersOf }, filters },
  });
  const started = source.start(support.context);
  const informer = support.informers.all[0]!;
  informer.sync("10", ...objects);
  await started;
  support.notified();
  return {
    ...{ ...support, source, informer },
    /** Takes the answer to an own write. */
    answer: (object: KubernetesObject) => viewOf(source)!.put({ object }),
    list: (tier?: string) =>
      source.list(tier === undefined ? {} : { where: (object) => tiersOf(object).includes(tier) }).map(wordOf),
    byTier: (tier: string) => source.byIndex("tier", tier).map(wordOf),
  };
}

suite("informerSource with pending write responses", (test) => {
  test("lists the response instead of an older watched state (list replaces by temp)", async () => {
    const { answer, list } = await startSource([config("a", 5), config("b", 6)]);
    answer(config("a", 11));
    assert.equal(list(), ["a@11", "b@6"]);
  });

  test("does not list an object whose response no longer matches the predicate (list drops)", async () => {
    const { answer, list } = await startSource([config("a", 5, "front")]);
    answer(config("a", 11, "back"));
    assert.equal([list("front"), list("back")], [[], ["a@11"]]);
  });

  test("lists the watched state if it is newer than the response (list keeps)", async () => {
    const { answer, list, informer } = await startSource([config("a", 5)]);
    informer.observe(config("a", 12));
    answer(config("a", 11));
    assert.equal(list(), ["a@12"]);
  });

  test("lists an object known only from a response if it matches (list adds temp-only)", async () => {
    const { answer, list } = await startSource([config("a", 5, "front")]);
    answer(config("b", 11, "front"));
    answer(config("c", 12, "back"));
    assert.equal(
      [list("front"), list()],
      [
        ["a@5", "b@11"],
        ["a@5", "b@11", "c@12"],
      ],
    );
  });

  test("returns the response from an index (byIndex replaces)", async () => {
    const { answer, byTier } = await startSource([config("a", 5, "front")]);
    answer(config("a", 11, "front"));
    answer(config("b", 12, "front"));
    assert.equal(byTier("front"), ["a@11", "b@12"]);
  });

  test("does not return an object for an index value that its response lacks (byIndex skips)", async () => {
    const { answer, byTier, informer } = await startSource([config("a", 5, "front")]);
    answer(config("a", 11, "back"));
    assert.equal([byTier("front"), byTier("back")], [[], ["a@11"]]);
    informer.observe(config("a", 12, "front"));
    assert.equal([byTier("front"), byTier("back")], [["a@12"], []]);
  });

  test("returns each key of the watch and the responses once (keys)", async () => {
    const { answer, source } = await startSource([config("a", 5), config("b", 6)]);
    answer(config("a", 11));
    answer(config("c", 12));
    assert.equal([...viewOf(source)!.keys()].sort(), ["home/a", "home/b", "home/c"]);
  });

  test("emits the deletion of an object known only from a response if a relist lacks it (ghost delete propagated)", async () => {
    const { answer, informer, list, notifications } = await startSource();
    answer(config("a", 11));
    informer.sync("20");
    assert.equal(list(), []);
    assert.equal(notifications, [
      { primaries: ["home/of-a"], cause: { type: "ConfigMap", object: "home/a", isInitial: true } },
    ]);
  });

  test("keeps an object known from a response if a relist has it (ghost kept)", async () => {
    const { answer, informer, list } = await startSource([config("a", 5)]);
    answer(config("a", 11));
    informer.sync("20", config("a", 15));
    assert.equal(list(), ["a@15"]);
  });

  test("calls onDelete with an unknown final state for an object known only from a response (ghost onDelete)", async () => {
    for (const passes of [true, false]) {
      const asked: unknown[] = [];
      const onDelete = (object: KubernetesObject, isFinalStateUnknown: boolean) => {
        asked.push([wordOf(object), isFinalStateUnknown]);
        return passes;
      };
      const { answer, informer, notified, list } = await startSource([], { onDelete });
      answer(config("a", 11));
      informer.sync("20");
      assert.equal([asked, notified(), list()], [[["a@11", true]], passes ? ["home/of-a"] : [], []]);
    }
  });

  test("drops the window of an ended write if a relist lacks the object (ghost orphan window)", async () => {
    const { source, informer } = await startSource();
    viewOf(source)!.beginWrite("home/a")({ entry: { object: config("a", 11) }, isOwn: true });
    assert.is(viewOf(source)!.ownWrites, 1);
    informer.sync("20");
    assert.is(viewOf(source)!.ownWrites, 0);
  });

  test("keeps the window of an in-flight write if a relist lacks the object (ghost active window)", async () => {
    const { source, informer, answer, notified } = await startSource();
    answer(config("a", 11));
    const endWrite = viewOf(source)!.beginWrite("home/a");
    informer.sync("20");
    assert.is(viewOf(source)!.ownWrites, 1);
    notified();
    endWrite({ entry: { object: config("a", 21, undefined, { uid: "new" }) }, isOwn: true });
    informer.observe(config("a", 21, undefined, { uid: "new" }));
    assert.equal([notified(), viewOf(source)!.ownWrites], [[], 0]);
  });
});
