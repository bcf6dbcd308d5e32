// Caches that keep few objects whole, after JOSDK's integration tests of Caffeine.
import { keyOf } from "#runtime/base/kubernetes-object.js";
import { defineWorkflow } from "#runtime/api/define-workflow.js";
import { informerSource } from "#runtime/sources/informer-source.js";
import { byAnnotation } from "#runtime/sources/mappers.js";
import { updateStatus } from "#runtime/reconcile/reconciler.js";
import { assert, suite } from "../../../support/suite.js";
import { ClusterSample, ConfigMap, Sample, sampleController } from "../sample-kind.js";
import { spacesOf } from "../space.js";

const openSpace = spacesOf();

suite("maxCachedObjects: 1", (test) => {
  for (const kind of [Sample, ClusterSample]) {
    const { scope } = kind.definition;
    test(`reconciles three primaries ${scope === "Cluster" ? "that are cluster-scoped" : "in a namespace"} with their secondaries`, async () => {
      await using space = await openSpace();
      const mapper = byAnnotation(kind, { name: "sample", ...(scope === "Cluster" ? {} : { namespace: "in" }) });
      const controller = sampleController(
        {
          reconcile: async ({ primary, context }) => {
            const { name } = primary.metadata;
            const seen = context.secondary(ConfigMap)?.data?.["value"];
            const { value = "" } = primary.spec;
            if (seen !== value) {
              const annotations = { sample: name, in: space.namespace };
              const metadata = { name, namespace: space.namespace, annotations };
              const config = { metadata, data: { value } };
              await context.client.apply(ConfigMap, config, { fieldManager: "sample" });
            }
            return updateStatus({ value: seen ?? "none" });
          },
          cleanup: async ({ primary, context }) => {
            await context.client.delete(ConfigMap, { name: primary.metadata.name, namespace: space.namespace });
          },
        },
        {
          workflow: defineWorkflow(kind),
          eventSources: () => [
            informerSource({
              name: "configs",
              resource: ConfigMap,
              mapper,
              namespaces: [space.namespace],
              maxCachedObjects: 1,
            }),
          ],
        },
      );
      await using running = await space.start([controller]);
      const names = ["a", "b", "c"].map((name) => `${name}-${space.namespace}`);
      for (const name of names) await space.create(kind, { metadata: { name }, spec: { value: "first" } });
      for (const name of names) await space.until(kind, name, ({ status }) => status?.value === "first");
      for (const name of names) await space.patch(kind, name, { spec: { value: "second" } });
      for (const name of names) await space.until(kind, name, ({ status }) => status?.value === "second");
      for (const name of names) await space.delete(kind, name);
      for (const name of names) await space.untilGone(kind, name);
      const reads = running.requests.filter((each) => /^GET .*\/configmaps\/.* 200$/.test(each));
      assert.ok(reads.length >= 2, "all but one of the ConfigMaps are evicted, and read again");
      const left = (await space.list(ConfigMap)).map(({ metadata }) => keyOf(metadata));
      assert.equal(
        left.filter((key) => names.some((name) => key.endsWith(`/${name}`))),
        [],
      );
    });
  }
});
