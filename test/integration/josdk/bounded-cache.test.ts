// Caches that keep one object, after JOSDK's CaffeineBoundedCacheNamespacedIT and CaffeineBoundedCacheClusterScopeIT.
import type { ResourceClass } from "#runtime/base/resource-definition.js";
import { waitFor } from "#runtime/base/wait-for.js";
import { defineWorkflow } from "#runtime/codegen/define-workflow.js";
import { informerSource } from "#runtime/events/informer-source.js";
import { assert, suite } from "../../support/suite.js";
import { ClusterSample, ConfigMap, Sample, sampleController, type DataObject } from "./sample-kind.js";
import { spacesOf, type Draft, type Space } from "./space.js";

const openSpace = spacesOf();
const NAMES = ["one", "two", "three"];

/** A controller that writes the value of each primary into a ConfigMap, of which its source keeps one. */
function boundedController(Kind: ResourceClass<Sample>, { client, namespace }: Space) {
  const source = informerSource<DataObject>({
    name: "configs",
    resource: ConfigMap,
    namespaces: [namespace],
    maxCachedObjects: 1,
  });
  /** What a reconcile found of a primary's ConfigMap. */
  const found = new Map<string, string | undefined>();
  const controller = sampleController(
    {
      async reconcile({ primary, context }) {
        const { name, uid = "" } = primary.metadata;
        const config = context.secondary(ConfigMap);
        const value = primary.spec.value ?? "";
        found.set(name, config?.data?.["value"]);
        const { apiVersion, kind } = primary;
        const metadata = { name, namespace, ownerReferences: [{ apiVersion, kind, name, uid }] };
        // Another reconcile takes the room while this one waits.
        await new Promise((resolve) => setImmediate(resolve));
        assert.equal(context.secondary(ConfigMap), config);
        if (config?.data?.["value"] !== value)
          await client.apply(ConfigMap, { metadata, data: { value } } as Draft<DataObject>, {
            fieldManager: "bounded",
          });
      },
    },
    { name: "bounded", workflow: defineWorkflow(Kind), eventSources: () => [source] },
  );
  return { source, found, controller };
}

async function playScenario(space: Space, Kind: ResourceClass<Sample>): Promise<void> {
  const { source, found, controller } = boundedController(Kind, space);
  await using running = await space.start([controller]);
  const untilAllFound = (value: string) =>
    waitFor(`all are found with "${value}"`, () => NAMES.every((name) => found.get(name) === value));
  await Promise.all(NAMES.map((name) => space.create(Kind, { metadata: { name }, spec: { value: "first" } })));
  await untilAllFound("first");
  await Promise.all(NAMES.map((name) => space.patch(Kind, name, { spec: { value: "second" } })));
  await untilAllFound("second");
  for (const name of NAMES) await space.until(ConfigMap, name, ({ data }) => data?.["value"] === "second");
  await running.quiet();
  assert.is(source.list().length, 1);
  assert.equal([...source.view.keys()].length, 3);
  assert.ok(running.requests.some((request) => /^GET .*\/configmaps\/\w+ 200$/.test(request)));
  assert.equal(
    running.events.flatMap(({ error }) => error ?? []),
    [],
  );
  await Promise.all(NAMES.map((name) => space.delete(Kind, name)));
  await Promise.all(NAMES.map((name) => space.delete(ConfigMap, name)));
  await waitFor("nothing is known any more", () => [...source.view.keys()].length === 0);
}

suite("bounded caches", (test) => {
  test("three primaries create, update and delete their ConfigMaps through a cache of one [3]", async () => {
    await using space = await openSpace();
    await playScenario(space, Sample);
  });

  test("so do three primaries without a namespace [2]", async () => {
    await using space = await openSpace();
    await playScenario(space, ClusterSample);
  });
});
