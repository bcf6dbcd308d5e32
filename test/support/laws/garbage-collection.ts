import { setTimeout as sleep } from "node:timers/promises";
import { apiRequest, apiRequestOrThrow, type Connection } from "../api/api-request.js";
import { waitFor } from "#apiserver/wait-for.js";
import { assert, type DeclareTest } from "../suite.js";
import {
  PATIENCE,
  RESTRAINT_MS,
  TEST_OPTIONS,
  createConfigMap,
  createNamespace,
  find,
  isGone,
  ownerReference,
  ownersOf,
  pathOf,
  release,
  remove,
} from "./cluster-steps.js";

const WIDGET_CRD = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "widgets.simulation.example.com" },
  spec: {
    group: "simulation.example.com",
    scope: "Namespaced",
    names: { kind: "Widget", plural: "widgets", singular: "widget", listKind: "WidgetList" },
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
      },
    ],
  },
};

export function declareGarbageCollectionLaws(test: DeclareTest, connect: () => Promise<Connection>): void {
  test(
    "background deletion: deletes dependents after their owner, transitively",
    async () => {
      const cluster = await connect();
      const namespace = await createNamespace(cluster);
      const owner = await createConfigMap(cluster, namespace, "owner");
      const child = await createConfigMap(cluster, namespace, "child", { owners: [owner] });
      await createConfigMap(cluster, namespace, "grandchild", { owners: [child] });
      await createConfigMap(cluster, namespace, "stranger");
      await remove(cluster, owner, "Background");
      await isGone(cluster, namespace, "child");
      await isGone(cluster, namespace, "grandchild");
      assert.ok(await find(cluster, namespace, "stranger"));
    },
    TEST_OPTIONS,
  );

  test(
    "keeps an object while one of its owners exists, and removes references to deleted owners",
    async () => {
      const cluster = await connect();
      const namespace = await createNamespace(cluster);
      const first = await createConfigMap(cluster, namespace, "first");
      const second = await createConfigMap(cluster, namespace, "second");
      await createConfigMap(cluster, namespace, "child", { owners: [first, second] });
      await remove(cluster, first, "Background");
      await waitFor(
        "the reference to the owner that is gone is removed",
        async () => (await ownersOf(cluster, namespace, "child")).join() === "second",
        PATIENCE,
      );
      await remove(cluster, second, "Background");
      await isGone(cluster, namespace, "child");
    },
    TEST_OPTIONS,
  );

  test(
    "deletes an object whose owner reference has a uid that does not exist",
    async () => {
      const cluster = await connect();
      const namespace = await createNamespace(cluster);
      const owner = await createConfigMap(cluster, namespace, "owner");
      const impostor = { ...ownerReference(owner), uid: "6ba7b810-9dad-11d1-80b4-00c04fd430c8" };
      await apiRequestOrThrow(cluster, `POST /api/v1/namespaces/${namespace}/configmaps`, {
        body: { metadata: { name: "child", ownerReferences: [impostor] } },
      });
      await isGone(cluster, namespace, "child");
      assert.ok(await find(cluster, namespace, "owner"));
    },
    TEST_OPTIONS,
  );

  test(
    "deletes an object whose owner is in another namespace",
    async () => {
      const cluster = await connect();
      const namespace = await createNamespace(cluster);
      const owner = await createConfigMap(cluster, await createNamespace(cluster), "owner");
      await createConfigMap(cluster, namespace, "child", { owners: [owner] });
      await isGone(cluster, namespace, "child");
    },
    TEST_OPTIONS,
  );

  test(
    "keeps a namespaced dependent while its cluster-scoped owner exists",
    async () => {
      const cluster = await connect();
      const namespace = await createNamespace(cluster);
      const owner = await apiRequestOrThrow(cluster, "POST /apis/rbac.authorization.k8s.io/v1/clusterroles", {
        body: { metadata: { name: `owner-${namespace}` }, rules: [] },
      });
      await createConfigMap(cluster, namespace, "child", { owners: [owner] });
      await sleep(RESTRAINT_MS);
      assert.ok(await find(cluster, namespace, "child"));
      await apiRequestOrThrow(cluster, `DELETE /apis/rbac.authorization.k8s.io/v1/clusterroles/${owner.metadata.name}`);
      await isGone(cluster, namespace, "child");
    },
    TEST_OPTIONS,
  );

  test(
    "foreground deletion: keeps the owner until blocking dependents are deleted",
    async () => {
      const cluster = await connect();
      const namespace = await createNamespace(cluster);
      const owner = await createConfigMap(cluster, namespace, "owner");
      const child = await createConfigMap(cluster, namespace, "child", { owners: [owner], blocks: true });
      await createConfigMap(cluster, namespace, "grandchild", {
        owners: [child],
        blocks: true,
        finalizers: ["example.com/hold"],
      });
      await remove(cluster, owner, "Foreground");
      await waitFor(
        "the deletion has reached the grandchild",
        async () => (await find(cluster, namespace, "grandchild"))?.metadata.deletionTimestamp,
        PATIENCE,
      );
      await sleep(RESTRAINT_MS);
      assert.equal((await find(cluster, namespace, "owner"))?.metadata.finalizers, ["foregroundDeletion"]);
      assert.equal((await find(cluster, namespace, "child"))?.metadata.finalizers, ["foregroundDeletion"]);
      await release(cluster, namespace, "grandchild");
      await isGone(cluster, namespace, "owner");
      assert.not.ok(await find(cluster, namespace, "child"));
      assert.not.ok(await find(cluster, namespace, "grandchild"));
    },
    TEST_OPTIONS,
  );

  test(
    "foreground deletion: does not wait for dependents without blockOwnerDeletion",
    async () => {
      const cluster = await connect();
      const namespace = await createNamespace(cluster);
      const owner = await createConfigMap(cluster, namespace, "owner");
      await createConfigMap(cluster, namespace, "child", { owners: [owner], finalizers: ["example.com/hold"] });
      await remove(cluster, owner, "Foreground");
      await isGone(cluster, namespace, "owner");
      await waitFor(
        "the dependent is being deleted",
        async () => (await find(cluster, namespace, "child"))?.metadata.deletionTimestamp,
        PATIENCE,
      );
      await release(cluster, namespace, "child");
      await isGone(cluster, namespace, "child");
    },
    TEST_OPTIONS,
  );

  test(
    "foreground deletion: deletes owners that own each other",
    async () => {
      const cluster = await connect();
      const namespace = await createNamespace(cluster);
      const first = await createConfigMap(cluster, namespace, "first");
      const second = await createConfigMap(cluster, namespace, "second", { owners: [first], blocks: true });
      await apiRequestOrThrow(cluster, `PATCH ${pathOf(namespace, "first")}`, {
        contentType: "application/merge-patch+json",
        body: { metadata: { ownerReferences: [ownerReference(second, true)] } },
      });
      await remove(cluster, first, "Foreground");
      await isGone(cluster, namespace, "first");
      await isGone(cluster, namespace, "second");
    },
    TEST_OPTIONS,
  );

  test(
    "orphan: keeps dependents and removes their owner references",
    async () => {
      const cluster = await connect();
      const namespace = await createNamespace(cluster);
      const owner = await createConfigMap(cluster, namespace, "owner");
      await createConfigMap(cluster, namespace, "one", { owners: [owner], blocks: true });
      await createConfigMap(cluster, namespace, "two", { owners: [owner] });
      // The real garbage collector may observe a dependent only after its owner was deleted, and then deletes it, too.
      await sleep(RESTRAINT_MS);
      await remove(cluster, owner, "Orphan");
      await isGone(cluster, namespace, "owner");
      await sleep(RESTRAINT_MS);
      assert.equal(await ownersOf(cluster, namespace, "one"), []);
      assert.equal(await ownersOf(cluster, namespace, "two"), []);
    },
    TEST_OPTIONS,
  );

  test(
    "garbage-collects custom resources of a new CRD",
    async () => {
      const cluster = await connect();
      const namespace = await createNamespace(cluster);
      await apiRequest(cluster, "POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions", { body: WIDGET_CRD });
      const widgets = `/apis/simulation.example.com/v1/namespaces/${namespace}/widgets`;
      await waitFor("widgets are served", async () => (await apiRequest(cluster, `GET ${widgets}`)).status === 200);
      const owner = await createConfigMap(cluster, namespace, "owner");
      const widget = await apiRequestOrThrow(cluster, `POST ${widgets}`, {
        body: {
          apiVersion: "simulation.example.com/v1",
          kind: "Widget",
          metadata: { name: "w", ownerReferences: [ownerReference(owner)] },
        },
      });
      await createConfigMap(cluster, namespace, "child", { owners: [widget] });
      await sleep(RESTRAINT_MS);
      assert.ok(await find(cluster, namespace, "child"));
      await remove(cluster, owner, "Background");
      await waitFor(
        "the widget is gone",
        async () => (await apiRequest(cluster, `GET ${widgets}/w`)).status === 404,
        PATIENCE,
      );
      await isGone(cluster, namespace, "child");
    },
    TEST_OPTIONS,
  );

  test(
    "records OwnerRefInvalidNamespace for a dependent whose owner is in another namespace",
    async () => {
      const cluster = await connect();
      const [namespace, other] = [await createNamespace(cluster), await createNamespace(cluster)];
      const owner = await createConfigMap(cluster, other, "owner");
      const secret = await apiRequestOrThrow(cluster, `POST /api/v1/namespaces/${namespace}/secrets`, {
        body: { metadata: { name: "child", ownerReferences: [ownerReference(owner)] } },
      });
      await createConfigMap(cluster, namespace, "child", { owners: [owner] });
      await isGone(cluster, namespace, "child");
      const told = await waitFor(
        "both are told of",
        async () => {
          const events = await apiRequestOrThrow(cluster, `GET /api/v1/namespaces/${namespace}/events`);
          const items = (events.items ?? []) as unknown as Told[];
          return items.length === 2 && items;
        },
        PATIENCE,
      );
      const identity = `v1/ConfigMap, namespace: ${namespace}, name: owner, uid: ${owner.metadata.uid}`;
      const message = `ownerRef [${identity}] does not exist in namespace "${namespace}"`;
      const texts = told.map(({ type, reason, message, source, involvedObject }) =>
        [involvedObject.kind, type, reason, source.component, message].join(" "),
      );
      const rest = `Warning OwnerRefInvalidNamespace garbage-collector-controller ${message}`;
      assert.equal(texts.sort(), [`ConfigMap ${rest}`, `Secret ${rest}`]);
      assert.ok(told.some(({ involvedObject }) => involvedObject.uid === secret.metadata.uid));
    },
    TEST_OPTIONS,
  );
}

interface Told {
  type: string;
  reason: string;
  message: string;
  source: { component?: string };
  involvedObject: { kind: string; uid: string };
}
