// What an operator notices of a cluster's own controllers. The same laws hold for kube-controller-manager and for our simulation
// of it, on a real API server and on the embedded one.
import { setTimeout as sleep } from "node:timers/promises";
import { apiRequest, apiRequestOrThrow, type Connection, type ApiObject } from "./api-request.js";
import { eventually } from "./eventually.js";
import { assert, type DeclareTest } from "./suite.js";

/** How long a law may take to come true; a real namespace takes seconds to go. */
const PATIENCE = { timeoutMs: 40_000 };
const TEST_OPTIONS = { timeoutMs: 60_000 };
/** How long we watch that something does not happen. */
const RESTRAINT_MS = 700;

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

/** Declares the laws of garbage collection. */
export function declareGarbageCollectionLaws(test: DeclareTest, connect: () => Promise<Connection>): void {
  test(
    "background: dependents go after their owner, and theirs after them",
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
    "an object stays while one of its owners exists, without its reference to the other",
    async () => {
      const cluster = await connect();
      const namespace = await createNamespace(cluster);
      const first = await createConfigMap(cluster, namespace, "first");
      const second = await createConfigMap(cluster, namespace, "second");
      await createConfigMap(cluster, namespace, "child", { owners: [first, second] });
      await remove(cluster, first, "Background");
      await eventually(
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
    "an object whose owner has never existed, or is another one of that name, goes",
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
    "an owner in another namespace counts as absent",
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
    "a cluster-scoped owner keeps a namespaced dependent",
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
    "foreground: the owner stays until the dependents that block it are gone",
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
      await eventually(
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
    "foreground: a dependent that does not block is not waited for",
    async () => {
      const cluster = await connect();
      const namespace = await createNamespace(cluster);
      const owner = await createConfigMap(cluster, namespace, "owner");
      await createConfigMap(cluster, namespace, "child", { owners: [owner], finalizers: ["example.com/hold"] });
      await remove(cluster, owner, "Foreground");
      await isGone(cluster, namespace, "owner");
      await eventually(
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
    "foreground: owners that own each other do not wait for ever",
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
    "orphan: dependents stay and no longer name the owner",
    async () => {
      const cluster = await connect();
      const namespace = await createNamespace(cluster);
      const owner = await createConfigMap(cluster, namespace, "owner");
      await createConfigMap(cluster, namespace, "one", { owners: [owner], blocks: true });
      await createConfigMap(cluster, namespace, "two", { owners: [owner] });
      // A real collector may learn of a dependent after its owner's end; then it is deleted there, too.
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
    "custom resources of a new definition are collected",
    async () => {
      const cluster = await connect();
      const namespace = await createNamespace(cluster);
      await apiRequest(cluster, "POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions", { body: WIDGET_CRD });
      const widgets = `/apis/simulation.example.com/v1/namespaces/${namespace}/widgets`;
      await eventually("widgets are served", async () => (await apiRequest(cluster, `GET ${widgets}`)).status === 200);
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
      await eventually(
        "the widget is gone",
        async () => (await apiRequest(cluster, `GET ${widgets}/w`)).status === 404,
        PATIENCE,
      );
      await isGone(cluster, namespace, "child");
    },
    TEST_OPTIONS,
  );
}

/** Declares the laws of the deletion of namespaces. */
export function declareNamespaceLaws(test: DeclareTest, connect: () => Promise<Connection>): void {
  test(
    "a namespace that is deleted takes all that is in it with it",
    async () => {
      const cluster = await connect();
      const namespace = await createNamespace(cluster);
      await createConfigMap(cluster, namespace, "a");
      await apiRequestOrThrow(cluster, `POST /api/v1/namespaces/${namespace}/secrets`, {
        body: { metadata: { name: "s" } },
      });
      await apiRequestOrThrow(cluster, `DELETE /api/v1/namespaces/${namespace}`);
      await namespaceIsGone(cluster, namespace);
      const { items } = await apiRequestOrThrow(cluster, `GET /api/v1/namespaces/${namespace}/secrets`);
      assert.equal(items, []);
    },
    TEST_OPTIONS,
  );

  test(
    "an object with a finalizer holds its namespace, and the conditions say so",
    async () => {
      const cluster = await connect();
      const namespace = await createNamespace(cluster);
      await createConfigMap(cluster, namespace, "held", { finalizers: ["example.com/hold"] });
      await apiRequestOrThrow(cluster, `DELETE /api/v1/namespaces/${namespace}`);
      const conditions = await eventually(
        "the conditions are written",
        async () =>
          (await apiRequestOrThrow(cluster, `GET /api/v1/namespaces/${namespace}`)).status?.["conditions"] as
            Condition[] | undefined,
        PATIENCE,
      );
      assert.equal(
        conditions.map(({ type, status, reason }) => [type, status, reason].join(" ")),
        [
          "NamespaceDeletionDiscoveryFailure False ResourcesDiscovered",
          "NamespaceDeletionGroupVersionParsingFailure False ParsedGroupVersions",
          "NamespaceDeletionContentFailure False ContentDeleted",
          "NamespaceContentRemaining True SomeResourcesRemain",
          "NamespaceFinalizersRemaining True SomeFinalizersRemain",
        ],
      );
      assert.is(conditions[3]?.message, "Some resources are remaining: configmaps. has 1 resource instances");
      assert.is(
        conditions[4]?.message,
        "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances",
      );
      await release(cluster, namespace, "held");
      await namespaceIsGone(cluster, namespace);
    },
    TEST_OPTIONS,
  );
}

interface Condition {
  type: string;
  status: string;
  reason: string;
  message: string;
}

let namespaces = 0;

async function createNamespace(cluster: Connection): Promise<string> {
  const name = `simulation-${++namespaces}`;
  await apiRequestOrThrow(cluster, "POST /api/v1/namespaces", { body: { metadata: { name } } });
  return name;
}

interface ConfigMapOptions {
  owners?: ApiObject[];
  blocks?: boolean;
  finalizers?: string[];
}

function createConfigMap(
  cluster: Connection,
  ...[namespace, name, { owners = [], blocks = false, finalizers = [] } = {}]: [string, string, ConfigMapOptions?]
): Promise<ApiObject> {
  const ownerReferences = owners.map((owner) => ownerReference(owner, blocks));
  return apiRequestOrThrow(cluster, `POST /api/v1/namespaces/${namespace}/configmaps`, {
    body: { metadata: { name, ownerReferences, finalizers } },
  });
}

function ownerReference({ apiVersion, kind, metadata }: ApiObject, blockOwnerDeletion = false): object {
  return { apiVersion, kind, name: metadata.name, uid: metadata.uid, blockOwnerDeletion };
}

function pathOf(namespace: string, name: string): string {
  return `/api/v1/namespaces/${namespace}/configmaps/${name}`;
}

async function find(cluster: Connection, namespace: string, name: string): Promise<ApiObject | undefined> {
  const { status, body } = await apiRequest(cluster, `GET ${pathOf(namespace, name)}`);
  return status === 200 ? body : undefined;
}

async function ownersOf(cluster: Connection, namespace: string, name: string): Promise<string[]> {
  const { metadata } = await apiRequestOrThrow(cluster, `GET ${pathOf(namespace, name)}`);
  return (metadata.ownerReferences ?? []).map((owner) => owner.name);
}

async function remove(cluster: Connection, { metadata }: ApiObject, propagationPolicy: string): Promise<void> {
  await apiRequestOrThrow(cluster, `DELETE ${pathOf(metadata.namespace ?? "", metadata.name)}`, {
    body: { apiVersion: "v1", kind: "DeleteOptions", propagationPolicy },
  });
}

/** Takes away the finalizer of the test, and leaves those of the garbage collector. */
async function release(cluster: Connection, namespace: string, name: string): Promise<void> {
  const { metadata } = await apiRequestOrThrow(cluster, `GET ${pathOf(namespace, name)}`);
  const finalizers = metadata.finalizers?.filter((finalizer) => finalizer !== "example.com/hold");
  await apiRequestOrThrow(cluster, `PATCH ${pathOf(namespace, name)}`, {
    contentType: "application/merge-patch+json",
    body: { metadata: { finalizers } },
  });
}

async function isGone(cluster: Connection, namespace: string, name: string): Promise<void> {
  await eventually(`${name} is gone`, async () => (await find(cluster, namespace, name)) === undefined, PATIENCE);
}

async function namespaceIsGone(cluster: Connection, namespace: string): Promise<void> {
  await eventually(
    "the namespace is gone",
    async () => (await apiRequest(cluster, `GET /api/v1/namespaces/${namespace}`)).status === 404,
    PATIENCE,
  );
}
