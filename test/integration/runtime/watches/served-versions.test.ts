// A kind that is served in two versions, after JOSDK's integration tests.
import { waitFor } from "#apiserver/wait-for.js";
import { ApiClient } from "#runtime/client/api-client.js";
import { createConnection } from "#runtime/client/connection.js";
import { defineController } from "#runtime/api/define-controller.js";
import { defineWorkflow } from "#runtime/api/define-workflow.js";
import { informerSource } from "#runtime/sources/informer-source.js";
import { createOperator } from "#runtime/api/operator.js";
import { updateStatus } from "#runtime/reconcile/reconciler.js";
import { startTestApiServer } from "../../../support/api/api-server.js";
import { classOf, customDefinition } from "../../../support/kinds/kind-definitions.js";
import { assert, shared, suite } from "../../../support/suite.js";
import { ConfigMap, sampleCrd, type Sample } from "../sample-kind.js";

const [version] = sampleCrd.spec.versions;
const names = { kind: "Edition", plural: "editions", singular: "edition", listKind: "EditionList" };
const crd = {
  ...sampleCrd,
  metadata: { name: "editions.josdk.example.com" },
  spec: {
    ...sampleCrd.spec,
    names,
    versions: [
      { ...version, name: "v2" },
      { ...version, name: "v1", storage: false },
    ],
  },
} as const;

const V2 = classOf<Sample>(customDefinition(crd));
const V1 = classOf<Sample>(customDefinition({ ...crd, spec: { ...crd.spec, versions: [crd.spec.versions[1]] } }));

const openServer = shared(() => startTestApiServer({ crds: [crd] }));

async function open() {
  const { url, token, ca } = await openServer();
  const connection = { url, token, ca };
  const client = new ApiClient(createConnection(connection));
  const logger = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
  return { connection, client, logger, [Symbol.asyncDispose]: () => client.close() };
}

suite("kind with two versions", (test) => {
  test("passes primaries to each controller in the version it watches", async () => {
    await using parts = await open();
    const controllers = [V1, V2].map((kind) => {
      const { version: name } = kind.definition;
      return defineController({
        name,
        workflow: defineWorkflow(kind),
        labelSelector: `version=${name}`,
        reconciler: { reconcile: ({ primary }: { primary: Sample }) => updateStatus({ value: primary.apiVersion }) },
      });
    });
    await using operator = createOperator({ ...parts, controllers });
    await operator.start();
    // Each is written in the version that the other controller does not watch.
    for (const [kind, name] of [
      [V2, "v1"],
      [V1, "v2"],
    ] as const) {
      const metadata = { name: `of-${name}`, namespace: "default", labels: { version: name } };
      await parts.client.create(kind, { metadata, spec: {} });
    }
    for (const name of ["v1", "v2"]) {
      const ref = { name: `of-${name}`, namespace: "default" };
      await waitFor("its status is there", async () => (await parts.client.get(V2, ref))?.status?.value !== undefined);
      assert.is((await parts.client.get(V2, ref))?.status?.value, `josdk.example.com/${name}`);
    }
  });

  test("maps an owner reference of either version to the primary", async () => {
    await using parts = await open();
    const seen: string[][] = [];
    const controller = defineController({
      name: "owners",
      workflow: defineWorkflow(V2),
      labelSelector: "test=owners",
      eventSources: () => [informerSource({ name: "configs", resource: ConfigMap })],
      reconciler: {
        reconcile: ({ context }) => void seen.push(context.secondaries(ConfigMap).map(({ metadata }) => metadata.name)),
      },
    });
    await using operator = createOperator({ ...parts, controllers: [controller] });
    await operator.start();
    const metadata = { name: "owner", namespace: "default", labels: { test: "owners" } };
    const { uid = "" } = (await parts.client.create(V2, { metadata, spec: {} })).metadata;
    await waitFor("it is reconciled", () => seen.length === 1);
    for (const apiVersion of ["josdk.example.com/v1", "josdk.example.com/v2"]) {
      const name = `owned-${apiVersion.slice(-2)}`;
      const ownerReferences = [{ apiVersion, kind: "Edition", name: "owner", uid }];
      await parts.client.create(ConfigMap, { metadata: { name, namespace: "default", ownerReferences } });
      await waitFor("it is seen", () => seen.at(-1)?.includes(name));
    }
    assert.equal(seen, [[], ["owned-v1"], ["owned-v1", "owned-v2"]]);
  });
});
