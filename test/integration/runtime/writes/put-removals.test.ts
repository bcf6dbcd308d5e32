// What a PUT stated before, and what is no longer desired.
import type { ResourceDefinition } from "#runtime/base/kubernetes-object.js";
import { startTestApiServer } from "../../../support/api/api-server.js";
import { builtinDefinition } from "../../../support/kinds/kind-definitions.js";
import { errorOf } from "../../../support/runtime/failures.js";
import { assert, shared, suite } from "../../../support/suite.js";
import { startWriting } from "./one-object.js";

const LAST_STATED = "gen-operator.dev/last-stated";
const Deployment = builtinDefinition("apps/v1", "Deployment");
const ConfigMap = builtinDefinition("v1", "ConfigMap");
const Secret = builtinDefinition("v1", "Secret");
const ServiceAccount = builtinDefinition("v1", "ServiceAccount");
const PersistentVolumeClaim = builtinDefinition("v1", "PersistentVolumeClaim");
const Job = builtinDefinition("batch/v1", "Job");

const server = shared(() => startTestApiServer());
const start = async (definition: ResourceDefinition) => startWriting(await server(), definition);

const labels = { app: "x" };
const deploymentOf = (spec: object, container: object = {}) => ({
  spec: {
    selector: { matchLabels: labels },
    template: { metadata: { labels }, spec: { ...spec, containers: [{ name: "main", image: "image", ...container }] } },
  },
});
const owner = { apiVersion: "v1", kind: "ConfigMap", name: "owner", uid: "5e8d2a0a-0000-4000-8000-000000000001" };

interface Removal {
  readonly title: string;
  readonly definition: ResourceDefinition;
  readonly before: object;
  readonly after: object;
  readonly gone: string;
}

const removals: readonly Removal[] = [
  {
    title: "hostNetwork",
    definition: Deployment,
    before: deploymentOf({ hostNetwork: true }),
    after: deploymentOf({}),
    gone: "hostNetwork",
  },
  {
    title: "privileged",
    definition: Deployment,
    before: deploymentOf({}, { securityContext: { privileged: true } }),
    after: deploymentOf({}),
    gone: "privileged",
  },
  {
    title: "serviceAccountName and serviceAccount",
    definition: Deployment,
    before: deploymentOf({ serviceAccountName: "admin" }),
    after: deploymentOf({}),
    gone: "serviceAccount",
  },
  {
    title: "an argument",
    definition: Deployment,
    before: deploymentOf({}, { args: ["--a", "--insecure"] }),
    after: deploymentOf({}, { args: ["--a"] }),
    gone: "--insecure",
  },
  {
    title: "a key of data",
    definition: ConfigMap,
    before: { data: { a: "1", b: "2" } },
    after: { data: { a: "1" } },
    gone: '"b"',
  },
  { title: "all data", definition: ConfigMap, before: { data: { b: "2" } }, after: {}, gone: '"b"' },
  {
    title: "a key of stringData",
    definition: Secret,
    before: { stringData: { a: "1", b: "2" } },
    after: { stringData: { a: "1" } },
    gone: '"b"',
  },
  {
    title: "a field set to null",
    definition: ConfigMap,
    before: { immutable: false, data: { a: "1" } },
    after: { immutable: null, data: { a: "1" } },
    gone: '"immutable"',
  },
  {
    title: "a label",
    definition: ConfigMap,
    before: { metadata: { labels: { a: "1", b: "2" } }, data: {} },
    after: { metadata: { labels: { a: "1" } }, data: {} },
    gone: '"b"',
  },
  {
    title: "all annotations",
    definition: ConfigMap,
    before: { metadata: { annotations: { "b.example.com/c": "2" } } },
    after: {},
    gone: "b.example.com",
  },
  {
    title: "a finalizer",
    definition: ConfigMap,
    before: { metadata: { finalizers: ["example.com/b"] } },
    after: { metadata: { finalizers: [] } },
    gone: "example.com/b",
  },
  {
    title: "an owner reference",
    definition: ConfigMap,
    before: { metadata: { ownerReferences: [owner] } },
    after: {},
    gone: owner.uid,
  },
];

suite("PUT", (test) => {
  for (const { title, definition, before, after, gone } of removals)
    test(`removes what is no longer desired, also after a restart: ${title}`, async () => {
      await using writing = await start(definition);
      await writing.put(before);
      const text = async () => {
        const { metadata, ...content } = await writing.live();
        const { annotations, ...rest } = metadata;
        const { [LAST_STATED]: _, ...others } = annotations ?? {};
        return JSON.stringify({ content, rest, others });
      };
      assert.ok((await text()).includes(gone), await text());
      assert.is((await writing.put(before)).kind, "unchanged");
      // What was learnt, and what a cache holds, is no part of it.
      writing.restart();
      assert.is((await writing.put(after)).kind, "updated");
      assert.not.ok((await text()).includes(gone), await text());
      assert.is((await writing.put(after)).kind, "unchanged");
      writing.restart();
      assert.is((await writing.put(after)).kind, "unchanged");
      assert.is(writing.requests.filter((each) => !each.startsWith("GET")).length, 0);
    });

  test("sends one request, also if it removes content", async () => {
    await using writing = await start(ConfigMap);
    await writing.put({ data: { a: "1", b: "2" } });
    assert.equal(writing.requests, ["POST 201"]);
    await writing.put({ data: { a: "1" } });
    assert.equal(writing.requests, ["PUT 200"]);
  });

  test("keeps metadata of other field managers, even with a forged last-stated annotation", async () => {
    await using writing = await start(ConfigMap);
    await writing.put({ data: { a: "1" } });
    const theirs = { labels: { theirs: "x" }, annotations: { theirs: "x" }, finalizers: ["example.com/theirs"] };
    await writing.others({ mergePatch: { metadata: theirs } });
    const forged = { labels: ["theirs"], annotations: ["theirs"], finalizers: ["example.com/theirs"] };
    const annotations = { [LAST_STATED]: JSON.stringify({ digest: "x", ...forged }) };
    await writing.others({ mergePatch: { metadata: { annotations } } });
    assert.is((await writing.put({ data: { a: "1" } })).kind, "updated");
    const { metadata } = await writing.live();
    assert.equal(metadata.labels, theirs.labels);
    assert.is(metadata.annotations?.["theirs"], "x");
    assert.equal(metadata.finalizers, theirs.finalizers);
    await writing.others({ mergePatch: { metadata: { finalizers: null } } });
  });

  for (const text of ["", "[]", "null", '{"labels":[1,{"a":2}],"owners":"x"}'])
    test(`updates an object with the invalid annotation ${JSON.stringify(text)} once`, async () => {
      await using writing = await start(ConfigMap);
      await writing.put({ metadata: { labels: { a: "1" } }, data: { a: "1" } });
      await writing.others({ mergePatch: { metadata: { annotations: { [LAST_STATED]: text } } } });
      assert.is((await writing.put({ metadata: { labels: { a: "1" } }, data: { a: "1" } })).kind, "updated");
      assert.is((await writing.put({ metadata: { labels: { a: "1" } }, data: { a: "1" } })).kind, "unchanged");
    });

  test("restores changed content although the annotation matches", async () => {
    await using writing = await start(ConfigMap);
    await writing.put({ data: { a: "1" } });
    await writing.others({ mergePatch: { data: { a: "theirs" } } });
    assert.is((await writing.put({ data: { a: "1" } })).kind, "updated");
    assert.equal((await writing.live())["data"], { a: "1" });
  });

  test("updates an object of an earlier version once, despite defaults of the API server", async () => {
    await using writing = await start(Deployment);
    await writing.client.create(
      { definition: Deployment } as never,
      {
        metadata: writing.metadata,
        ...deploymentOf({}),
      } as never,
      { fieldManager: "us" },
    );
    assert.is((await writing.put(deploymentOf({}))).kind, "updated");
    assert.is((await writing.put(deploymentOf({}))).kind, "unchanged");
  });

  test("stores no values in the annotation", async () => {
    const digests = await Promise.all(
      ["1", "2"].map(async (value) => {
        await using writing = await start(Secret);
        await writing.put({ stringData: { password: value } });
        return (await writing.live()).metadata.annotations?.[LAST_STATED];
      }),
    );
    assert.is(digests[0], digests[1]);
  });

  test("keeps foreign content if only metadata was ever desired", async () => {
    await using writing = await start(ServiceAccount);
    await writing.put({ metadata: { labels: { a: "1", b: "2" } } });
    await writing.others({ mergePatch: { imagePullSecrets: [{ name: "theirs" }] } });
    await writing.put({ metadata: { labels: { a: "1" } } });
    const live = await writing.live();
    assert.equal(live["imagePullSecrets"], [{ name: "theirs" }]);
    assert.equal(live.metadata.labels, { a: "1" });
  });
});

suite("PUT with immutable fields", (test) => {
  const claimOf = (more: object, labels: object = {}) => ({
    metadata: { labels },
    spec: {
      accessModes: ["ReadWriteOnce"],
      storageClassName: "fast",
      resources: { requests: { storage: "1Gi" } },
      ...more,
    },
  });
  const jobOf = (parallelism: number) => ({
    spec: {
      parallelism,
      template: { spec: { restartPolicy: "Never", containers: [{ name: "main", image: "image" }] } },
    },
  });
  const bind = { mergePatch: { spec: { volumeName: "volume" } } };

  test("keeps the volumeName of a claim, and logs it once", async () => {
    await using writing = await start(PersistentVolumeClaim);
    await writing.put(claimOf({}));
    await writing.others(bind, "kube-controller-manager");
    const desired = claimOf({}, { a: "1" });
    assert.is((await writing.put(desired)).kind, "updated");
    assert.equal(writing.requests, ["PUT 422", "PUT 200"]);
    assert.match(
      writing.logs.join("\n"),
      /info kept spec.volumeMode, spec.volumeName of PersistentVolumeClaim "default\/object-\d+", which are not desired and immutable$/,
    );
    const live = await writing.live();
    assert.equal([live["spec"]?.["volumeName"], live.metadata.labels], ["volume", { a: "1" }]);
    assert.is((await writing.put(desired)).kind, "unchanged");
  });

  test("keeps the volumeName of a claim that another operator created", async () => {
    await using writing = await start(PersistentVolumeClaim);
    await writing.others({ apply: claimOf({ volumeName: "volume" }) }, "old-operator");
    await writing.put(claimOf({}, { a: "1" }));
    const live = await writing.live();
    assert.equal([live["spec"]?.["volumeName"], live.metadata.labels], ["volume", { a: "1" }]);
  });

  test("keeps the generated selector and Pod labels of a Job", async () => {
    await using writing = await start(Job);
    await writing.put(jobOf(1));
    const before = await writing.specOf();
    await writing.put(jobOf(2));
    assert.equal(await writing.specOf(), { ...(before as object), parallelism: 2 });
  });

  test("fails with 422 if an immutable field is no longer desired", async () => {
    for (const way of ["put", "apply"] as const) {
      await using writing = await start(PersistentVolumeClaim);
      await writing[way](claimOf({ volumeName: "volume" }));
      const error = await errorOf(writing.put(claimOf({}, { a: "1" })));
      assert.match(String(error), /422 Invalid/);
    }
  });

  test("fails with the name of an immutable field that would change", async () => {
    await using writing = await start(PersistentVolumeClaim);
    await writing.put(claimOf({}));
    await writing.others(bind, "kube-controller-manager");
    const error = await errorOf(writing.put(claimOf({ storageClassName: "slow" })));
    assert.match(String(error), /immutable fields that would change: spec.storageClassName/);
  });
});

suite("switch between apply and PUT", (test) => {
  test("removes applied fields that are no longer desired when switching to PUT", async () => {
    await using writing = await start(ConfigMap);
    await writing.apply({ metadata: { labels: { a: "1", b: "2" } }, data: { a: "1", b: "2" } });
    await writing.put({ metadata: { labels: { a: "1" } }, data: { a: "1" } });
    const { metadata, data } = await writing.live();
    assert.equal([metadata.labels, data], [{ a: "1" }, { a: "1" }]);
  });

  test("removes fields that are no longer desired, and the annotation, when switching to apply", async () => {
    await using writing = await start(ConfigMap);
    await writing.put({ metadata: { labels: { a: "1", b: "2" } }, data: { a: "1", b: "2" } });
    await writing.apply({ metadata: { labels: { a: "1" } }, data: { a: "1" } });
    const { metadata, data } = await writing.live();
    assert.equal([metadata.labels, metadata.annotations, data], [{ a: "1" }, undefined, { a: "1" }]);
  });
});
