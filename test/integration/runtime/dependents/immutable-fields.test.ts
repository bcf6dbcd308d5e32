// Fields that cannot change: what is reported of them, and objects that are deleted to create them again (`onImmutable: recreate`).
import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import { waitFor } from "#apiserver/wait-for.js";
import type { KubernetesDependent } from "#runtime/workflow/workflow-definition.js";
import { builtinDefinition, classOf } from "../../../support/kinds/kind-definitions.js";
import { failuresOf } from "../../../support/runtime/recorded-operator.js";
import { assert, suite } from "../../../support/suite.js";
import { COLLECTING, configOf, dependentController, writesOf } from "./sample-dependents.js";
import { ConfigMap, Sample, Secret } from "../sample-kind.js";
import { spacesOf, type Space, type TestOperator } from "../space.js";

type Any = KubernetesObject & { readonly spec?: any; readonly status?: any };
const kindOf = (apiVersion: string, kind: string) => classOf<Any>(builtinDefinition(apiVersion, kind));
const Job = kindOf("batch/v1", "Job");
const StatefulSet = kindOf("apps/v1", "StatefulSet");
const Deployment = kindOf("apps/v1", "Deployment");
const Service = kindOf("v1", "Service");
const Pod = kindOf("v1", "Pod");
const PersistentVolumeClaim = kindOf("v1", "PersistentVolumeClaim");

const openSpace = spacesOf({ simulate: true });
const sample = (value = "first") => ({ metadata: { name: "one" }, spec: { value } });
const SECRET = "hunter2-of-the-env";
const VALUES = /hunter2|"Containers"|"containers"|PodTemplateSpec|\[\{/;

const podOf = (value = "", spec: object = {}) => ({
  metadata: { labels: { app: "one" } },
  spec: {
    containers: [{ name: "main", image: `registry.example.com/app:${value}`, env: [{ name: "TOKEN", value: SECRET }] }],
    ...spec,
  },
});
const claimsOf = (storage: string) => [
  { metadata: { name: "data" }, spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage } } } },
];

type SpecOf = (value: string) => object;
const dependentOf = (resource: Pick<typeof Job, "definition">, contentOf: SpecOf, rest: object = {}) =>
  configOf("a", {
    resource: resource.definition,
    desired: ({ primary }) => ({ metadata: { name: "one-a" }, ...contentOf((primary as Sample).spec.value ?? "") }),
    ...rest,
  });

const jobs: SpecOf = (value) => ({ spec: { template: podOf(value, { restartPolicy: "Never" }) } });
const sets: SpecOf = (value) => ({
  spec: {
    ...{ replicas: 1, serviceName: "one", selector: { matchLabels: { app: "one" } }, template: podOf() },
    volumeClaimTemplates: claimsOf(value === "first" ? "1Gi" : "2Gi"),
  },
});

async function untilFailure(running: TestOperator): Promise<string> {
  return waitFor("the reconcile fails", () => failuresOf(running.events).find((each) => each.includes("immutable")));
}

async function begin(space: Space, dependent: KubernetesDependent, options: object = {}) {
  const running = await space.start([
    dependentController([dependent], {
      retry: { initialIntervalMs: 50 } as never,
      ...options,
    } as never),
  ]);
  await space.create(Sample, sample());
  return running;
}

const change = (space: Space, value = "second") => space.patch(Sample, "one", { spec: { value } });

/** What the API server refuses, and the paths that its error has to name. */
const REFUSED: { readonly [what: string]: readonly [typeof Job, SpecOf, string] } = {
  "the Pod template of a Job": [Job, jobs, "spec.template.spec.containers[0].image"],
  "a volumeClaimTemplate": [StatefulSet, sets, "spec.volumeClaimTemplates[0].spec.resources.requests.storage"],
  "the selector of a Deployment": [
    Deployment,
    (app) => ({
      spec: { selector: { matchLabels: { app } }, template: { ...podOf(), metadata: { labels: { app } } } },
    }),
    "spec.selector.matchLabels.app",
  ],
  "the clusterIP of a Service": [
    Service,
    (value) => ({ spec: { ports: [{ port: 80 }], ...(value === "first" ? {} : { clusterIP: "None" }) } }),
    "spec.clusterIPs[0]",
  ],
  "a field of a Pod": [Pod, (value) => ({ spec: { ...podOf().spec, hostname: value } }), "spec.hostname"],
  "a field of an unbound PersistentVolumeClaim": [
    PersistentVolumeClaim,
    (value) => ({ spec: { ...claimsOf("1Gi")[0]!.spec, storageClassName: value } }),
    "spec.storageClassName",
  ],
};

suite("immutable field error", (test) => {
  for (const serverSideApply of [true, false])
    for (const [what, [kind, content, path]] of Object.entries(REFUSED))
      test(`names ${what} without values, ${serverSideApply ? "with apply" : "with PUT"}`, async () => {
        await using space = await openSpace();
        await using running = await begin(space, dependentOf(kind, content, { serverSideApply }));
        await space.until(kind, "one-a", () => true);
        await running.quiet();
        await change(space);
        const failure = await untilFailure(running);
        const [, named = ""] = /immutable fields that would change: ([^;]*)/.exec(failure) ?? [];
        assert.ok(named.split(", ").includes(path), failure);
        assert.not(VALUES.test(failure), failure);
        const isClaim = kind === PersistentVolumeClaim;
        assert.is(failure.includes("onImmutable: recreate"), !isClaim, failure);
        for (const text of running.logs) assert.not(VALUES.test(text), text);
      });

  test("names the type of a Secret without values", async () => {
    await using space = await openSpace();
    const secret = dependentOf(Secret, (type) => ({ type: `example.com/${type}`, data: { token: "aHVudGVyMg==" } }));
    await using running = await begin(space, secret);
    await space.until(Secret, "one-a", () => true);
    await change(space);
    const failure = await untilFailure(running);
    assert.match(failure, "immutable fields that would change: type");
    assert.not.match(failure, "aHVudGVyMg");
  });
});

const recreate = { onImmutable: "recreate" } as const;

suite("onImmutable: recreate", (test) => {
  for (const serverSideApply of [true, false])
    test(
      `deletes a Job and its Pods once to run it with another template, ${serverSideApply ? "with apply" : "with PUT"}`,
      async () => {
        await using space = await openSpace();
        await using running = await begin(space, dependentOf(Job, jobs, { ...recreate, serverSideApply }));
        const before = await space.until(Job, "one-a", ({ status }) => status?.succeeded === 1);
        await running.quiet();
        const sent = writesOf(running).length;
        await change(space);
        const isNew = ({ metadata, spec }: Any) =>
          metadata.uid !== before.metadata.uid && spec.template.spec.containers[0].image.endsWith("second");
        await waitFor(
          "the Job is another one",
          async () => {
            const now = await space.get(Job, "one-a");
            return now !== undefined && isNew(now);
          },
          COLLECTING,
        );
        await running.quiet();
        const pods = (await space.list(Pod)).map(({ metadata }) => metadata.ownerReferences?.[0]?.uid);
        assert.not(pods.includes(before.metadata.uid));
        const writes = writesOf(running)
          .slice(sent)
          .filter((each) => each.includes("jobs"));
        assert.equal(writes.filter((each) => each.startsWith("DELETE")).length, 1, writes.join());
        assert.equal(writes.length, 4, writes.join());
      },
      COLLECTING,
    );

  test(
    "keeps the Pods of a StatefulSet, which the new StatefulSet adopts",
    async () => {
      await using space = await openSpace();
      await using running = await begin(space, dependentOf(StatefulSet, sets, recreate));
      const before = await space.until(StatefulSet, "one-a", () => true);
      const pod = await space.until(Pod, "one-a-0", () => true);
      await running.quiet();
      await change(space);
      await waitFor(
        "the StatefulSet is another one",
        async () => {
          const now = await space.get(StatefulSet, "one-a");
          return now !== undefined && now.metadata.uid !== before.metadata.uid;
        },
        COLLECTING,
      );
      const now = await space.get(StatefulSet, "one-a");
      const after = await space.until(Pod, "one-a-0", ({ metadata }) =>
        metadata.ownerReferences?.some(({ uid }) => uid === now?.metadata.uid),
      );
      assert.is(after.metadata.uid, pod.metadata.uid);
      await running.quiet();
    },
    COLLECTING,
  );

  test("rejects a new selector of a StatefulSet, because its Pods would not be adopted", async () => {
    await using space = await openSpace();
    const content: SpecOf = (app) => ({
      spec: {
        ...{ serviceName: "one", selector: { matchLabels: { app } } },
        template: { ...podOf(), metadata: { labels: { app } } },
      },
    });
    await using running = await begin(space, dependentOf(StatefulSet, content, recreate));
    const before = await space.until(StatefulSet, "one-a", () => true);
    await change(space);
    assert.match(await untilFailure(running), "it is not deleted, because a StatefulSet with another selector");
    assert.is((await space.get(StatefulSet, "one-a"))?.metadata.uid, before.metadata.uid);
  });

  const immutable: SpecOf = (value) => ({ immutable: true, data: { value } });

  test(
    "replaces only the items of a bulk dependent that differ",
    async () => {
      await using space = await openSpace();
      const item = (name: string, value: string) => ({ metadata: { name }, ...immutable(value) });
      const bulk = configOf("a", {
        ...{ bulk: {}, ...recreate },
        desired: ({ primary }) => ({
          a: item("one-a", (primary as Sample).spec.value ?? ""),
          b: item("one-b", "same"),
        }),
      });
      await using running = await begin(space, bulk);
      const before = await space.until(ConfigMap, "one-b", () => true);
      await running.quiet();
      await change(space);
      await waitFor(
        "item a has the value",
        async () => (await space.get(ConfigMap, "one-a"))?.data?.["value"] === "second",
        COLLECTING,
      );
      assert.is((await space.get(ConfigMap, "one-b"))?.metadata.uid, before.metadata.uid);
      await running.quiet();
    },
    COLLECTING,
  );

  test(
    "creates the object after a restart between deletion and creation",
    async () => {
      await using space = await openSpace();
      const dependent = dependentOf(ConfigMap, immutable, recreate);
      const first = await begin(space, dependent);
      await space.until(ConfigMap, "one-a", () => true);
      await first.quiet();
      await space.patch(ConfigMap, "one-a", { metadata: { finalizers: ["example.com/wait"] } });
      await change(space);
      await space.until(ConfigMap, "one-a", ({ metadata }) => metadata.deletionTimestamp !== undefined);
      await first.operator.stop();
      await space.patch(ConfigMap, "one-a", { metadata: { finalizers: null } });
      await using _running = await space.start([dependentController([dependent])]);
      await waitFor(
        "it is created",
        async () => (await space.get(ConfigMap, "one-a"))?.data?.["value"] === "second",
        COLLECTING,
      );
    },
    COLLECTING,
  );

  test(
    "releases an object with heldForCleanup, and holds the new one",
    async () => {
      await using space = await openSpace();
      await using running = await begin(
        space,
        dependentOf(ConfigMap, immutable, { ...recreate, heldForCleanup: true }),
      );
      await space.until(ConfigMap, "one-a", ({ metadata }) => metadata.finalizers?.length === 1);
      await change(space);
      await waitFor(
        "it is held again",
        async () => {
          const now = await space.get(ConfigMap, "one-a");
          return now?.data?.["value"] === "second" && now.metadata.finalizers?.length === 1;
        },
        COLLECTING,
      );
      await running.quiet();
    },
    COLLECTING,
  );

  /** What keeps an object from being deleted: how it is stated, and what is done before the change. */
  const KEPT: { readonly [what: string]: readonly [KubernetesDependent, string] } = {
    "that desired() reads": [
      configOf("a", {
        ...recreate,
        desired: ({ primary, secondary }) => {
          const { a } = secondary as { a?: { data?: { kept?: string } } };
          const kept = a?.data?.kept ?? "generated";
          return {
            metadata: { name: "one-a" },
            immutable: true,
            data: { kept, value: (primary as Sample).spec.value },
          };
        },
      }),
      "reads what would be lost with it",
    ],
    "that the API server would reject on creation": [
      configOf("a", {
        ...recreate,
        desired: ({ primary }) => {
          const value = (primary as Sample).spec.value ?? "";
          const labels = value === "first" ? {} : { bad: "not a label!" };
          return { metadata: { name: "one-a", labels }, immutable: true, data: { value } };
        },
      }),
      "could not be created again",
    ],
  };
  for (const [what, [dependent, why]] of Object.entries(KEPT))
    test(`keeps an object ${what}, and gives the reason`, async () => {
      await using space = await openSpace();
      await using running = await begin(space, dependent);
      const before = await space.until(ConfigMap, "one-a", () => true);
      await running.quiet();
      await change(space);
      assert.match(await untilFailure(running), why);
      assert.is((await space.get(ConfigMap, "one-a"))?.metadata.uid, before.metadata.uid);
    });

  test("keeps an object of another client that it could adopt", async () => {
    await using space = await openSpace();
    const foreign = { metadata: { name: "one-a" }, immutable: true, data: { value: "of somebody else" } };
    const { metadata } = await space.create(ConfigMap, foreign as never);
    await using running = await begin(space, dependentOf(ConfigMap, immutable, { ...recreate, existing: "adopt" }));
    assert.match(await untilFailure(running), "does not belong to this primary yet");
    assert.is((await space.get(ConfigMap, "one-a"))?.metadata.uid, metadata.uid);
  });
});
