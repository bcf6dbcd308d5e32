// Index functions of the user that throw.
import type { KubernetesObject, ObjectKey } from "#runtime/base/kubernetes-object.js";
import { untypedResource } from "#runtime/api/define-resource.js";
import { OwnViews } from "#runtime/cache/resource-view.js";
import { ControllerSources } from "#runtime/sources/controller-sources.js";
import { informerSource } from "#runtime/sources/informer-source.js";
import { createPrimarySource } from "#runtime/sources/kind-source.js";
import { assert, suite } from "../../../support/suite.js";
import { keysOf, objectOf } from "./simulated-informers.js";
import { createSourceContext, page, primaryOf } from "./source-context.js";

const ConfigMap = untypedResource({ apiVersion: "v1", kind: "ConfigMap", plural: "configmaps", scope: "Namespaced" });

const REASON = 'the index "tier" for home/b failed: no tier';

/** Throws for an object without the label. */
function tierOf({ metadata }: KubernetesObject): readonly string[] {
  const tier = metadata.labels?.["tier"];
  if (tier === undefined) throw new Error("no tier");
  return [tier];
}

const labelled = (tier: string) => ({ labels: { tier } });
const versioned = (key: ObjectKey, resourceVersion: string, metadata: object = {}) =>
  objectOf(key, { resourceVersion, ...metadata });

async function startSource() {
  const support = createSourceContext();
  const mapper = () => ["home/one"];
  const indexes = { tier: tierOf, name: ({ metadata }: KubernetesObject) => [metadata.name] };
  const source = informerSource<KubernetesObject>({ name: "configs", resource: ConfigMap, mapper, indexes });
  const started = source.start(support.context);
  const informer = support.informers.all[0]!;
  informer.sync("10", objectOf("home/a", labelled("front")), objectOf("home/b"));
  await started;
  return { ...support, source, informer, tiered: (tier: string) => keysOf(source.byIndex("tier", tier)) };
}

suite("failing index function", (test) => {
  test("keeps and emits the object, and finds it by other indexes only", async () => {
    const { source, notified, tiered } = await startSource();
    assert.equal([keysOf(source.list()), tiered("front")], [["home/a", "home/b"], ["home/a"]]);
    assert.equal(keysOf(source.byIndex("name", "b")), ["home/b"]);
    assert.equal(notified(), ["home/one", "home/one"]);
    await source.stop();
  });

  test("makes the source unhealthy until it works for the object, with one log line each", async () => {
    const { source, informer, lines, tiered } = await startSource();
    assert.equal(source.health, { status: "unhealthy", reason: REASON });
    informer.observe(versioned("home/a", "11", labelled("back")));
    informer.observe(versioned("home/b", "12"));
    assert.equal(source.health, { status: "unhealthy", reason: REASON });
    informer.observe(versioned("home/b", "13", labelled("back")));
    assert.equal([source.health, tiered("back")], [{ status: "healthy" }, ["home/a", "home/b"]]);
    assert.equal(lines, [`warn: event source "configs": ${REASON}`, 'info: event source "configs" works again']);
    await source.stop();
  });

  test("makes the source healthy when its object is deleted", async () => {
    const { source, informer } = await startSource();
    informer.delete(versioned("home/b", "11"));
    assert.equal(source.health, { status: "healthy" });
    await source.stop();
  });

  test("removes the object from the index", async () => {
    const { source, informer, tiered } = await startSource();
    informer.observe(versioned("home/a", "11"));
    assert.equal([tiered("front"), source.health.status], [[], "unhealthy"]);
    informer.observe(versioned("home/a", "12", labelled("front")));
    assert.equal(tiered("front"), ["home/a"]);
    await source.stop();
  });

  test("of primaries makes their watch unhealthy until it works", async () => {
    const { context, informers, lines } = createSourceContext();
    const sources = new ControllerSources({
      ...{ controller: "pages", dependents: [], fieldManager: "pages", client: context.client },
      ...{ logger: context.logger, clock: context.clock, informers, views: new OwnViews() },
      primary: createPrimarySource({ definition: page, indexes: { tier: tierOf } }),
    });
    const started = sources.start({ onPrimaryChange: () => {}, forget: () => {}, onSecondaryChange: () => {} });
    informers.all[0]!.sync("10", primaryOf("home/b"));
    await started;
    assert.equal(sources.health(), { primary: { status: "unhealthy", reason: REASON } });
    assert.equal(lines, [`warn: event source "primary": ${REASON}`]);
    assert.ok(sources.primaries.has("home/b"));
    informers.all[0]!.observe({
      ...primaryOf("home/b"),
      metadata: { ...primaryOf("home/b").metadata, resourceVersion: "11", ...labelled("front") },
    });
    assert.equal(sources.health(), { primary: { status: "healthy" } });
    await sources.stop();
  });
});
