// What another operator wrote goes when its field manager is named, and only then.
import type { KubernetesObject, ResourceDefinition } from "#runtime/base/kubernetes-object.js";
import { startTestApiServer } from "../../../support/api/api-server.js";
import { builtinDefinition } from "../../../support/kinds/kind-definitions.js";
import { assert, shared, suite } from "../../../support/suite.js";
import {
  ConfigMap as DataMap,
  configMapOf,
  createPage,
  createPageOperator,
  startPageServer,
  type PageOperatorOptions,
} from "../page-operator.js";
import { startWriting } from "./one-object.js";

const ConfigMap = builtinDefinition("v1", "ConfigMap");
const Deployment = builtinDefinition("apps/v1", "Deployment");
const server = shared(() => startTestApiServer());
const start = async (definition: ResourceDefinition, formerFieldManagers: readonly string[] = []) =>
  startWriting(await server(), definition, { formerFieldManagers });

const FORMER = "old-operator";
const formerFieldManagers = [FORMER];
const link = { labels: { "gen-operator.dev/controller": "us" } };
const desired = { metadata: link, data: { text: "new" } };
const old = {
  metadata: {
    labels: { "old.example.com/app": "x" },
    annotations: { "old.example.com/hash": "1" },
    finalizers: ["old.example.com/protect"],
  },
  data: { text: "old", more: "old" },
};
const stateOf = ({ metadata, ...content }: KubernetesObject & { readonly data?: object }) => ({
  labels: Object.keys(metadata.labels ?? {}).sort(),
  annotations: Object.keys(metadata.annotations ?? {}).filter((name) => !name.startsWith("gen-operator.dev/")),
  finalizers: metadata.finalizers ?? [],
  data: content.data,
});
const LEFT = {
  labels: ["gen-operator.dev/controller", "old.example.com/app"],
  annotations: ["old.example.com/hash"],
  finalizers: ["old.example.com/protect"],
  data: { more: "old", text: "new" },
};
const TAKEN = {
  labels: ["gen-operator.dev/controller"],
  annotations: [],
  finalizers: [],
  data: { text: "new" },
};

/** Creates the object as another operator does: by apply, or by POST. */
async function createOld(
  { client, metadata, others }: Awaited<ReturnType<typeof start>>,
  way: "apply" | "post",
): Promise<void> {
  if (way === "apply") return others({ apply: old }, FORMER);
  const object = { ...old, metadata: { ...old.metadata, ...metadata } };
  await client.create({ definition: ConfigMap }, object, { fieldManager: FORMER });
}

suite("formerFieldManagers", (test) => {
  for (const way of ["apply", "post"] as const) {
    test(`removes fields of the former manager that are not desired, in the first write: ${way}`, async () => {
      await using writing = await start(ConfigMap, formerFieldManagers);
      await createOld(writing, way);
      await writing.apply(desired);
      assert.equal(stateOf(await writing.live()), TAKEN);
      assert.equal(
        (await writing.managers())?.map(({ manager }) => manager),
        ["us"],
      );
      assert.is((await writing.apply(desired)).kind, "unchanged");
    });

    test(`is required to remove fields of another manager: ${way}`, async () => {
      await using writing = await start(ConfigMap);
      await createOld(writing, way);
      await writing.apply(desired);
      assert.equal(stateOf(await writing.live()), LEFT);
      assert.is((await writing.apply(desired)).kind, "unchanged");
      writing.restart({ formerFieldManagers });
      await writing.apply(desired);
      assert.equal(stateOf(await writing.live()), TAKEN);
      assert.is((await writing.apply(desired)).kind, "unchanged");
      assert.equal(writing.requests, []);
    });
  }

  test("removes metadata of the former manager by PUT, without another write", async () => {
    await using writing = await start(ConfigMap, formerFieldManagers);
    await createOld(writing, "post");
    await writing.put(desired);
    assert.equal(stateOf(await writing.live()), TAKEN);
    assert.is((await writing.put(desired)).kind, "unchanged");
    assert.equal(writing.requests, []);
  });

  test("keeps fields that another manager also owns", async () => {
    await using writing = await start(ConfigMap, formerFieldManagers);
    await createOld(writing, "apply");
    await writing.others({ apply: { data: { more: "old" } } }, "helm");
    await writing.apply(desired);
    assert.equal(stateOf(await writing.live()), { ...TAKEN, data: { more: "old", text: "new" } });
  });

  test("removes fields that the former manager adds later", async () => {
    await using writing = await start(ConfigMap, formerFieldManagers);
    await createOld(writing, "apply");
    await writing.apply(desired);
    await writing.others({ mergePatch: { data: { later: "old" } } }, FORMER);
    await writing.apply(desired);
    assert.equal(stateOf(await writing.live()), TAKEN);
  });

  test("keeps released fields and fields written through a subresource", async () => {
    await using writing = await start(Deployment, formerFieldManagers);
    const labels = { app: "x" };
    const spec = {
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ name: "main", image: "image" }] } },
    };
    await writing.others({ apply: { spec: { ...spec, replicas: 5, paused: true } } }, FORMER);
    await writing.client.mergePatch(
      { definition: Deployment },
      { ...writing.metadata, subresource: "status", fieldManager: FORMER },
      { status: { conditions: [{ type: "Old", status: "True" }] } },
    );
    await writing.apply({ metadata: link, spec }, { released: ["spec.replicas"] });
    const { spec: after, status } = (await writing.live()) as unknown as {
      spec: { replicas: number; paused?: boolean };
      status: { conditions: readonly { type: string }[] };
    };
    assert.equal([after.replicas, after.paused], [5, undefined]);
    assert.equal(status.conditions[0]?.type, "Old");
    assert.is((await writing.apply({ metadata: link, spec }, { released: ["spec.replicas"] })).kind, "unchanged");
  });
});

suite("formerFieldManagers of an operator", (test) => {
  const ways: { readonly [way: string]: Parameters<typeof configMapOf>[1] } = {
    "a garbage-collected dependent": {},
    "a dependent linked by annotations": { deletion: "ordered" },
    "bulk items": {
      bulk: {},
      desired: ({ primary }) => ({ a: { metadata: { name: "one-text" }, data: { text: primary.spec.text } } }),
    },
    "a dependent with a fieldManager": { fieldManager: "remote" },
  };
  for (const [way, options] of Object.entries(ways))
    test(`removes fields of a former manager from ${way} after a restart, without another write`, async () => {
      await using server = await startPageServer();
      const start = async (settings: PageOperatorOptions = {}) => {
        const page = createPageOperator(server, {
          ...{ dependents: [configMapOf("text", { existing: "adopt", ...options })], ...settings },
        });
        await page.operator.start();
        await page.quiet();
        return page;
      };
      {
        await using page = await start();
        const object = { metadata: { name: "one-text", namespace: "default", ...old.metadata }, data: old.data };
        await page.operator.client.create(DataMap, object, { fieldManager: FORMER });
        await createPage(page, "one", { labels: {} });
        await page.quiet();
        const left = await page.operator.client.get(DataMap, { name: "one-text", namespace: "default" });
        assert.equal([left?.data?.["more"], left?.metadata.finalizers], ["old", old.metadata.finalizers]);
      }
      await using page = await start({ formerFieldManagers });
      const taken = await page.operator.client.get(DataMap, { name: "one-text", namespace: "default" });
      assert.equal([taken?.data?.["more"], taken?.metadata.finalizers], [undefined, undefined]);
      assert.not("old.example.com/app" in (taken?.metadata.labels ?? {}));
      await using again = await start({ formerFieldManagers });
      assert.equal(
        again.requests.filter((line) => !line.startsWith("GET")),
        [],
      );
    });
});
