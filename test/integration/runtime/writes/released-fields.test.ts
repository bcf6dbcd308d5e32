import type { ResourceDefinition } from "#runtime/base/kubernetes-object.js";
import { startTestApiServer } from "../../../support/api/api-server.js";
import { builtinDefinition } from "../../../support/kinds/kind-definitions.js";
import { failureOf } from "../../../support/runtime/failures.js";
import { assert, shared, suite } from "../../../support/suite.js";
import { startWriting } from "./one-object.js";

const Deployment = builtinDefinition("apps/v1", "Deployment");
const server = shared(() => startTestApiServer());
const start = async (definition: ResourceDefinition) => startWriting(await server(), definition);

const labels = { app: "x" };
const link = { labels: { "gen-operator.dev/controller": "us" } };
const deploymentOf = (spec: object = {}) => ({
  metadata: link,
  spec: {
    selector: { matchLabels: labels },
    template: { metadata: { labels }, spec: { containers: [{ name: "main", image: "image" }] } },
    ...spec,
  },
});
const released = ["spec.replicas"];

suite("released fields", (test) => {
  for (const way of ["apply", "put"] as const) {
    test(`keep their value, and are not owned by the controller: ${way}`, async () => {
      await using writing = await start(Deployment);
      const replicasOf = async () => ((await writing.specOf()) as { replicas: number }).replicas;
      await writing[way](deploymentOf({ replicas: 5 }));
      await writing[way](deploymentOf(), { released });
      assert.is(await replicasOf(), 5);
      assert.is((await writing[way](deploymentOf(), { released })).kind, "unchanged");
      await writing.others({ mergePatch: { spec: { replicas: 7 } } }, "autoscaler");
      assert.is((await writing[way](deploymentOf(), { released })).kind, "unchanged");
      await writing[way](deploymentOf({ revisionHistoryLimit: 3 }), { released });
      assert.is(await replicasOf(), 7);
      writing.restart();
      assert.is((await writing[way](deploymentOf({ revisionHistoryLimit: 3 }), { released })).kind, "unchanged");
    });

    test(`are rejected in a desired object: ${way}`, async () => {
      await using writing = await start(Deployment);
      const failure = await failureOf(() => writing[way](deploymentOf({ replicas: 0 }), { released }));
      assert.match(
        failure,
        `Deployment "${writing.key}" cannot be written: spec.replicas is released to another controller`,
      );
      assert.equal(writing.requests, []);
    });
  }

  test("keep their value if desired() reads the live object", async () => {
    await using writing = await start(Deployment);
    await writing.apply(deploymentOf({ replicas: 5 }));
    const change = deploymentOf({ revisionHistoryLimit: 3 });
    assert.is((await writing.apply(change, { released, readsLive: true })).kind, "updated");
    const { replicas, revisionHistoryLimit } = (await writing.specOf()) as { [name: string]: number };
    assert.equal([replicas, revisionHistoryLimit], [5, 3]);
  });

  test("are released by one patch of managedFields, without a new generation", async () => {
    await using writing = await start(Deployment);
    await writing.apply(deploymentOf({ replicas: 5 }));
    const { generation } = (await writing.live()).metadata;
    await writing.apply(deploymentOf(), { released });
    assert.equal(writing.requests, ["GET 200", "PATCH 200"]);
    assert.is((await writing.live()).metadata.generation, generation);
  });

  test("keep their value after a switch of serverSideApply and after managedFields were cleared", async () => {
    await using writing = await start(Deployment);
    const replicasOf = async () => ((await writing.specOf()) as { replicas: number }).replicas;
    await writing.put(deploymentOf({ replicas: 5, paused: true }));
    await writing.apply(deploymentOf({ paused: true }), { released });
    assert.is(await replicasOf(), 5);
    await writing.others({ jsonPatch: [{ op: "replace", path: "/metadata/managedFields", value: [{}] }] });
    await writing.apply(deploymentOf(), { released: [...released, "spec.paused"] });
    assert.equal(await writing.specOf(), { ...((await writing.specOf()) as object), replicas: 5, paused: true });
  });
});
