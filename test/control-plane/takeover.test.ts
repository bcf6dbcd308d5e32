// An operator takes the objects of another one over, on a real control plane whose controllers make pods of them: docs/takeover.md, step by step.
import { randomBytes } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { waitFor } from "#apiserver/wait-for.js";
import { ApiError } from "#runtime/base/errors.js";
import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import { ApiClient } from "#runtime/client/api-client.js";
import { createConnection } from "#runtime/client/connection.js";
import type { ControllerDefinition } from "#runtime/reconcile/controller-definition.js";
import type { KubernetesDependent } from "#runtime/workflow/workflow-definition.js";
import { Page, pageCrd } from "../integration/runtime/page.js";
import { apiRequestOrThrow, type Connection } from "../support/api/api-request.js";
import { runCommand } from "../support/command-line.js";
import { builtinDefinition, classOf } from "../support/kinds/kind-definitions.js";
import { startControlPlane, type ControlPlane } from "../support/machine/control-plane.js";
import { repositoryRoot } from "../support/repository.js";
import { createRecordedOperator } from "../support/runtime/recorded-operator.js";
import { assert, shared, suite } from "../support/suite.js";
import { createTemporaryFolder } from "../support/temporary-folder.js";
import { runBinary } from "./deploy/deploy-folder.js";

interface Workload extends KubernetesObject {
  readonly spec: {
    readonly replicas?: number;
    readonly selector: { readonly matchLabels: { readonly [name: string]: string } };
    readonly template: { readonly metadata: object; readonly spec: object };
    readonly serviceName?: string;
  };
  readonly status?: { readonly observedGeneration?: number };
}
interface Secret extends KubernetesObject {
  readonly data: { readonly password: string };
}
const Deployment = classOf<Workload>(builtinDefinition("apps/v1", "Deployment"));
const StatefulSet = classOf<Workload>(builtinDefinition("apps/v1", "StatefulSet"));
const ReplicaSet = classOf<Workload>(builtinDefinition("apps/v1", "ReplicaSet"));
const Pod = classOf(builtinDefinition("v1", "Pod"));
const Secret = classOf<Secret>(builtinDefinition("v1", "Secret"));
const ConfigMap = classOf<KubernetesObject>(builtinDefinition("v1", "ConfigMap"));
const Namespace = classOf(builtinDefinition("v1", "Namespace"));

const CONTROLLERS = [
  ...["garbage-collector-controller", "namespace-controller", "deployment-controller"],
  ...["replicaset-controller", "statefulset-controller"],
];
const OLD = "web-operator";
const OLD_FINALIZER = "old.example.com/cleanup";
const NEW_FINALIZER = "pages.example.com/finalizer";
const TIMEOUT_MS = 180_000;
const PATIENCE = { timeoutMs: 30_000 };

const plane = shared(() => startControlPlane({ controllerNames: CONTROLLERS }).then(installPages));

async function installPages(server: ControlPlane): Promise<ControlPlane> {
  const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  await apiRequestOrThrow(server, `POST ${path}`, { body: pageCrd });
  await waitFor("pages are served", async () => {
    const client = clientOf(server);
    return client
      .list(Page)
      .then(() => true)
      .catch(() => false)
      .finally(() => client.close());
  });
  return server;
}

const clientOf = ({ url, token, ca }: Connection) => new ApiClient(createConnection({ url, token, ca }));

const selector = { app: "web", "old.example.com/instance": "shop" };
const templateOf = (annotations: object = {}) => ({
  metadata: { labels: selector, annotations },
  spec: { containers: [{ name: "web", image: "example.com/web:1" }] },
});
const OLD_HASH = { "old.example.com/config-hash": "4711" };

/** What the operator of before made for a primary: as controller-runtime does, by POST. */
const oldObjects = (owner: KubernetesObject, namespace: string) => {
  const { apiVersion, kind, metadata } = owner;
  const reference = { apiVersion, kind, name: metadata.name, uid: metadata.uid!, controller: true };
  const old = {
    namespace,
    labels: { "old.example.com/instance": "shop" },
    annotations: { "old.example.com/revision": "7" },
    ownerReferences: [reference],
  };
  const spec = { replicas: 3, selector: { matchLabels: selector }, template: templateOf(OLD_HASH) };
  return {
    secret: {
      metadata: { ...old, name: "shop-login", finalizers: ["old.example.com/protect"] },
      data: { password: randomBytes(12).toString("base64") },
    },
    deployment: { metadata: { ...old, name: "shop" }, spec },
    statefulSet: { metadata: { ...old, name: "shop-db" }, spec: { ...spec, replicas: 1, serviceName: "shop-db" } },
  };
};

/** The object as a client updates it that read it before: a controller of the cluster has an annotation on a Deployment, which stays. */
const merged = <R extends KubernetesObject>(
  live: R,
  { metadata, ...content }: { metadata: { annotations: object } },
): R => ({
  ...live,
  ...content,
  metadata: {
    ...live.metadata,
    ...metadata,
    annotations: { ...live.metadata.annotations, ...metadata.annotations },
  },
});

interface Arguments {
  readonly primary: Page;
  readonly secondary: { readonly login?: Secret; readonly web?: Workload; readonly database?: Workload };
}

/** How far the code of the new operator is. */
interface Settings extends Partial<ControllerDefinition> {
  readonly existing?: KubernetesDependent["existing"];
  /** Whether `desired` states the template as the other operator made it. */
  readonly keepsTemplate?: boolean;
}

/** The new operator: its `desired` keeps what must not change of the live object. */
function controllerOf({ existing = "refuse", keepsTemplate = true, ...settings }: Settings = {}): ControllerDefinition {
  const workload = (live: Workload | undefined) => ({
    selector: live?.spec.selector ?? { matchLabels: selector },
    template: templateOf(keepsTemplate ? OLD_HASH : {}),
  });
  const options = { existing, dependsOn: [] };
  return {
    name: "shop",
    retry: { initialIntervalMs: 100, maxIntervalMs: 500, maxRetries: -1 },
    ...settings,
    workflow: {
      primary: Page.definition,
      dependents: [
        {
          ...{ name: "login", resource: Secret.definition, ...options },
          desired: ({ primary: { metadata }, secondary }: Arguments) => ({
            metadata: { name: `${metadata.name}-login` },
            data: { password: secondary.login?.data.password ?? randomBytes(12).toString("base64") },
          }),
        },
        {
          ...{ name: "web", resource: Deployment.definition, ...options },
          released: ["spec.replicas"],
          desired: ({ primary: { metadata }, secondary }: Arguments) => ({
            metadata: { name: metadata.name },
            spec: workload(secondary.web),
          }),
        },
        {
          ...{ name: "database", resource: StatefulSet.definition, ...options },
          desired: ({ primary: { metadata }, secondary }: Arguments) => ({
            metadata: { name: `${metadata.name}-db` },
            spec: { ...workload(secondary.database), serviceName: `${metadata.name}-db`, replicas: 1 },
          }),
        },
      ],
    },
  };
}

/** A namespace with the objects of the operator of before. */
async function openScene(namespace: string, { owner = "page" }: { owner?: "page" | "other" } = {}) {
  const server = await plane();
  const client = clientOf(server);
  const at = { name: "shop", namespace };
  await client.create(Namespace, { metadata: { name: namespace } });
  const metadata = { ...at, finalizers: [OLD_FINALIZER] };
  const createPage = () => client.create(Page, { metadata, spec: { text: "shop" } });
  const primary = owner === "page" ? await createPage() : await client.create(ConfigMap, { metadata: at });
  const objects = oldObjects({ ...primary, ...typeOf(primary) }, namespace);
  const by = { fieldManager: OLD };
  await client.create(Secret, objects.secret, by);
  await client.create(Deployment, objects.deployment as never, by);
  await client.create(StatefulSet, objects.statefulSet as never, by);
  const workloads = async () => ({
    pods: (await client.list(Pod, { namespace })).map(({ metadata: { name, uid } }) => `${name} ${uid}`).sort(),
    replicaSets: (await client.list(ReplicaSet, { namespace })).map((each) => each.metadata.name),
  });
  await waitFor("all pods are there", async () => (await workloads()).pods.length === 4, PATIENCE);
  const ref = (name: string) => ({ name, namespace });
  const get = async () => ({
    secret: (await client.get(Secret, ref("shop-login")))!,
    deployment: (await client.get(Deployment, ref("shop")))!,
    statefulSet: (await client.get(StatefulSet, ref("shop-db")))!,
  });
  /** Writes the objects as the other operator does, which updates what it read. */
  const writeAsOther = async ({ secret, deployment, statefulSet }: Awaited<ReturnType<typeof get>>) => {
    await client.update(Secret, merged(secret, objects.secret), by);
    await client.update(Deployment, merged(deployment, objects.deployment), by);
    await client.update(StatefulSet, merged(statefulSet, objects.statefulSet), by);
  };
  const scene = {
    ...{ client, namespace, server, objects, createPage, get, writeAsOther },
    /** What must never change. */
    async kept() {
      const { secret, deployment, statefulSet } = await scene.get();
      const uids = [secret, deployment, statefulSet].map(({ metadata }) => metadata.uid);
      return { ...(await workloads()), uids, password: secret.data.password, replicas: deployment.spec.replicas };
    },
    /** Waits until the controllers of the cluster have seen what was written last. */
    async settled() {
      const isSeen = async () => {
        const { deployment, statefulSet } = await scene.get();
        return [deployment, statefulSet].every(
          ({ metadata, status }) => status?.observedGeneration === metadata.generation,
        );
      };
      await waitFor("the controllers have seen the last generation", isSeen, PATIENCE);
    },
    /** Starts the other operator: it writes again and again, but for primaries with the label of the new one. */
    startOther() {
      let isStopped = false;
      const run = async () => {
        for (; !isStopped; await sleep(50)) {
          const live = await get();
          const page = await client.get(Page, ref("shop"));
          if (page?.metadata.labels?.["example.com/operator"] === "new") other.skipped++;
          else {
            // What the new operator took over between the two reads is a conflict.
            await writeAsOther(live).catch((error: unknown) => {
              if (!(error instanceof ApiError && error.code === 409)) throw error;
            });
            other.written++;
          }
        }
      };
      const other = {
        ...{ written: 0, skipped: 0 },
        async [Symbol.asyncDispose]() {
          isStopped = true;
          await running;
        },
      };
      const running = run();
      return other;
    },
    async patchAll(patch: object) {
      await client.mergePatch(Secret, ref("shop-login"), patch);
      await client.mergePatch(Deployment, ref("shop"), patch);
      await client.mergePatch(StatefulSet, ref("shop-db"), patch);
    },
    async start(settings: Settings) {
      const { url, token, ca } = server;
      const controller = controllerOf({ namespaces: [namespace], ...settings });
      const recorded = createRecordedOperator({ controllers: [controller], connection: { url, token, ca } });
      await recorded.operator.start();
      await recorded.quiet();
      return recorded;
    },
    /** Waits until each object has the label of a controller. */
    async untilTaken(name = "shop") {
      await waitFor(
        `all objects belong to ${name}`,
        async () =>
          Object.values(await scene.get()).every(
            ({ metadata }) => metadata.labels?.["gen-operator.dev/controller"] === name,
          ),
        PATIENCE,
      );
    },
    [Symbol.asyncDispose]: () => client.close(),
  };
  return scene;
}

const typeOf = (object: KubernetesObject) =>
  object.apiVersion === undefined ? { apiVersion: "v1", kind: "ConfigMap" } : {};

const isReleased: Settings["existing"] = ({ live }) =>
  (live as KubernetesObject | undefined)?.metadata.annotations?.["example.com/adopt"] === "true";

/** The project of the operator, as far as `doctor --takeover` reads it. */
async function createProject(server: ControlPlane) {
  const folder = await createTemporaryFolder();
  await mkdir(join(folder.path, "crds"));
  await writeFile(join(folder.path, "crds/pages.example.com.yaml"), JSON.stringify(pageCrd));
  const dependent = (resource: string, more = "") => `{ resource: ${resource}, existing: adopt${more} }`;
  return {
    async doctor(controller: string): Promise<string> {
      const spec = `apiVersion: gen-operator.dev/v1alpha1
kind: Workflow
metadata: { name: shop }
spec:
  primary: example.com/v1/Page
  controller: { ${controller} }
  dependents:
    login: ${dependent("v1/Secret")}
    web: ${dependent("apps/v1/Deployment", ", released: [spec.replicas]")}
    database: ${dependent("apps/v1/StatefulSet")}
`;
      await writeFile(join(folder.path, "workflow.yaml"), spec);
      const { stdout } = await runCommand(folder.path, "doctor", "--takeover", "--kubeconfig", server.kubeconfig);
      return stdout.split("\n").slice(1, -2).join("\n") + "\n";
    },
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
}

const readGuide = () => readFile(join(repositoryRoot, "runtime/docs/takeover.md"), "utf8");

/** The patch of a command of the guide: of `kubectl patch page shop`, as `-p` has it. */
async function patchOfGuide(): Promise<string> {
  const [, patch = ""] = /kubectl patch page shop --type=json -p '([^']*)'/.exec(await readGuide()) ?? [];
  return patch;
}

async function outputsOfGuide(): Promise<readonly string[]> {
  const text = await readGuide();
  return [...text.matchAll(/```\n((?:warning {2}|ok {7})takeover of[^`]*)```/g)].map(([, output = ""]) => output);
}

suite("takeover from another operator", (test) => {
  test(
    "keeps Pods, passwords and replicas, and prunes fields of the old manager only with formerFieldManagers",
    async () => {
      await using scene = await openScene("shop");
      await using project = await createProject(scene.server);
      const kept = await scene.kept();
      const [before, guide] = [await scene.get(), await outputsOfGuide()];
      {
        // Their owner is the primary, so nothing has to be adopted.
        await using operator = await scene.start({ existing: "refuse", keepsTemplate: false });
        await scene.untilTaken();
        await operator.quiet();
        assert.equal(await scene.kept(), kept);
      }
      const adopted = await scene.get();
      // A Deployment gets another generation by annotations, too.
      assert.equal(
        [adopted.deployment.spec, adopted.statefulSet.spec],
        [before.deployment.spec, before.statefulSet.spec],
      );
      for (const { metadata } of Object.values(adopted)) {
        assert.is(metadata.labels?.["old.example.com/instance"], "shop");
        assert.is(metadata.annotations?.["old.example.com/revision"], "7");
      }
      assert.equal(adopted.secret.metadata.finalizers, ["old.example.com/protect"]);
      const outputs = [await project.doctor("namespaces: all"), await project.doctor(`formerFieldManagers: [${OLD}]`)];
      {
        await using operator = await scene.start({});
        await operator.quiet();
        assert.equal(await scene.kept(), kept);
      }
      outputs.push(await project.doctor(`formerFieldManagers: [${OLD}]`));
      const former = { formerFieldManagers: [OLD], formerFinalizers: [OLD_FINALIZER] };
      await using operator = await scene.start(former);
      await waitFor("the old finalizer is gone", async () => {
        const page = await scene.client.get(Page, { name: "shop", namespace: scene.namespace });
        return page?.metadata.finalizers?.includes(OLD_FINALIZER) !== true;
      });
      await operator.quiet();
      assert.equal(await scene.kept(), kept);
      const taken = await scene.get();
      for (const { metadata } of Object.values(taken)) {
        assert.equal(
          [metadata.labels?.["old.example.com/instance"], metadata.annotations?.["old.example.com/revision"]],
          [undefined, undefined],
        );
        const managers = (metadata.managedFields ?? []).map(({ manager }) => manager);
        assert.not(managers.includes(OLD));
      }
      assert.equal(taken.secret.metadata.finalizers ?? [], []);
      outputs.push(await project.doctor(`formerFieldManagers: [${OLD}]`));
      assert.equal(outputs, guide);
    },
    { timeoutMs: TIMEOUT_MS },
  );

  test(
    "waits until an owner of another kind releases the objects, and keeps them after its deletion",
    async () => {
      await using scene = await openScene("other-owner", { owner: "other" });
      const { client, namespace } = scene;
      const kept = await scene.kept();
      // As long as the other owner stands in it, the object goes with that owner.
      const [owner] = scene.objects.secret.metadata.ownerReferences;
      await client.create(ConfigMap, { metadata: { name: "left", namespace, ownerReferences: [owner!] } });
      await scene.createPage();
      await using operator = await scene.start({ existing: isReleased });
      const untilLogged = (text: string) =>
        waitFor(`the log says: ${text}`, () => operator.logs.some((line) => line.includes(text)), PATIENCE);
      await untilLogged('already exists and is owned by ConfigMap "shop"');
      await scene.patchAll({ metadata: { ownerReferences: null } });
      // Each object waits until its owner releases it.
      await untilLogged("already exists and is not owned by this primary");
      await operator.quiet();
      assert.is((await scene.get()).secret.metadata.ownerReferences, undefined);
      await scene.patchAll({ metadata: { annotations: { "example.com/adopt": "true" } } });
      await scene.untilTaken();
      await client.delete(ConfigMap, { name: "shop", namespace });
      await waitFor(
        "what still had the owner is gone",
        async () => (await client.get(ConfigMap, { name: "left", namespace })) === undefined,
        PATIENCE,
      );
      await operator.quiet();
      assert.equal(await scene.kept(), kept);
    },
    { timeoutMs: TIMEOUT_MS },
  );

  test(
    "can be limited by a labelSelector, survives a rename, and can be reverted",
    async () => {
      await using scene = await openScene("way-back");
      const { client, namespace } = scene;
      const [kept, before] = [await scene.kept(), await scene.get()];
      const labelSelector = "example.com/operator=new";
      // A cleanup needs a finalizer of the new operator, beside that of the other one.
      const reconciler = { reconcile: () => {}, cleanup: () => {} };
      const finalizers = async () => (await client.get(Page, { name: "shop", namespace }))?.metadata.finalizers;
      {
        // The other operator runs beside it, and keeps the primaries without the label.
        await using other = scene.startOther();
        await using operator = await scene.start({ labelSelector, reconciler });
        const { written } = other;
        await waitFor("the other operator writes its objects", () => other.written > written + 3);
        assert.equal(await scene.get(), before);
        const label = { metadata: { labels: { "example.com/operator": "new" } } };
        await client.mergePatch(Page, { name: "shop", namespace }, label);
        await scene.untilTaken();
        const { skipped } = other;
        await waitFor("the other operator leaves the primary alone", () => other.skipped > skipped + 3);
        await operator.quiet();
      }
      assert.equal(await scene.kept(), kept);
      {
        await using operator = await scene.start({ name: "store", formerNames: ["shop"], labelSelector, reconciler });
        await scene.untilTaken("store");
        await operator.quiet();
      }
      assert.equal(await scene.kept(), kept);
      assert.equal(await finalizers(), [OLD_FINALIZER, NEW_FINALIZER]);
      const patch = await patchOfGuide();
      const kubectl = (text: string) =>
        runBinary("kubectl", repositoryRoot, [
          ...["--kubeconfig", scene.server.kubeconfig, "-n", namespace],
          ...["patch", "page", "shop", "--type=json", "-p", text],
        ]);
      // With the index of another finalizer it changes nothing.
      assert.is.not(kubectl(patch.replaceAll("/1", "/0")).status, 0);
      assert.equal(await finalizers(), [OLD_FINALIZER, NEW_FINALIZER]);
      const { status, stderr } = kubectl(patch);
      assert.is(status, 0, stderr);
      assert.equal(await finalizers(), [OLD_FINALIZER]);
      // The other operator starts again, without a selector: it writes its objects as before.
      await scene.writeAsOther(await scene.get());
      const back = await scene.get();
      assert.equal(
        Object.values(back).map(({ metadata: { labels } }) => labels),
        Object.values(before).map(({ metadata: { labels } }) => labels),
      );
      await scene.settled();
      assert.equal(await scene.kept(), kept);
    },
    { timeoutMs: TIMEOUT_MS },
  );
});
