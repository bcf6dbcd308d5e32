import type { Connection } from "../api/api-request.js";
import { eventsUntil, type WatchEvent } from "../api/watch-client.js";
import { assert, type DeclareTest } from "../suite.js";
import { TEST_OPTIONS } from "./cluster-steps.js";
import {
  type AnyObject,
  conditionsOf,
  countIn,
  openClusterSpace,
  podTemplate,
  type ClusterSpace,
} from "./space-of-cluster.js";

const REVISION = "deployment.kubernetes.io/revision";
const HISTORY = "deployment.kubernetes.io/revision-history";

/** Declares invariants of the objects that workload controllers create. */
export function declareWorkloadObjectLaws(test: DeclareTest["thorough"], connect: () => Promise<Connection>): void {
  const law = (title: string, body: (space: ClusterSpace) => Promise<void>) =>
    test(title, async () => body(await openClusterSpace(await connect())), TEST_OPTIONS);
  const selector = { matchLabels: { app: "web" } };
  const isReady = (replicas: number) => (object: AnyObject) =>
    countIn(object, "observedGeneration") === object.metadata.generation &&
    countIn(object, "readyReplicas") === replicas;

  law(
    "creates ReplicaSet and Pods of a Deployment with the labels and owner references of its template",
    async (space) => {
      await space.create("deployments", {
        metadata: { name: "web", annotations: { note: "a" } },
        spec: { replicas: 2, selector, template: podTemplate("web") },
      });
      const deployment = await space.until("deployments", "web", isReady(2));
      const [set] = await space.list("replicasets");
      const hash = set?.metadata.labels?.["pod-template-hash"] ?? "";
      assert.ok(hash !== "");
      assert.is(set?.metadata.name, `web-${hash}`);
      assert.equal(set?.metadata.annotations, {
        note: "a",
        [REVISION]: "1",
        "deployment.kubernetes.io/desired-replicas": "2",
        "deployment.kubernetes.io/max-replicas": "3",
      });
      assert.equal(ownersOf(set), [`apps/v1 Deployment web ${deployment.metadata.uid} true true`]);
      assert.equal((set?.spec as Spec).selector, { matchLabels: { app: "web", "pod-template-hash": hash } });
      const pods = await space.list("pods");
      for (const pod of pods) {
        assert.equal(pod.metadata.labels, { app: "web", "pod-template-hash": hash });
        assert.is(pod.metadata.generateName, `web-${hash}-`);
        assert.equal(ownersOf(pod), [`apps/v1 ReplicaSet web-${hash} ${set?.metadata.uid} true true`]);
      }
      assert.is(pods.length, 2);
    },
  );

  law("replaces all Pods in a rollout, and reuses the old ReplicaSet in a rollback", async (space) => {
    await space.create("deployments", {
      metadata: { name: "web" },
      spec: { replicas: 4, selector, template: podTemplate("web") },
    });
    await space.until("deployments", "web", isReady(4));
    const [first] = await space.list("replicasets");
    const template = (image: string) => ({ spec: { template: podTemplate("web", { image }) } });
    await space.patch("deployments", "web", template("nginx:2"));
    const isRolledOut = (revision: string) => (object: AnyObject) =>
      isReady(4)(object) &&
      object.metadata.annotations?.[REVISION] === revision &&
      conditionsOf(object).includes("Progressing True NewReplicaSetAvailable") &&
      countIn(object, "replicas") === 4 &&
      countIn(object, "updatedReplicas") === 4;
    await space.until("deployments", "web", isRolledOut("2"));
    const sizes = (sets: AnyObject[]) => sets.map(({ spec }) => (spec as Spec).replicas).sort();
    assert.equal(sizes(await space.list("replicasets")), [0, 4]);
    await space.patch("deployments", "web", template("nginx:1"));
    await space.until("deployments", "web", isRolledOut("3"));
    const again = await space.get("replicasets", first?.metadata.name ?? "");
    assert.is(again?.metadata.annotations?.[REVISION], "3");
    assert.is(again?.metadata.annotations?.[HISTORY], "1");
    assert.is((await space.list("replicasets")).length, 2);
  });

  law("stops a rollout of unready Pods within maxSurge and maxUnavailable", async (space) => {
    const rollingUpdate = { maxSurge: 1, maxUnavailable: 1 };
    await space.create("deployments", {
      metadata: { name: "web" },
      spec: { replicas: 4, selector, strategy: { rollingUpdate }, template: podTemplate("web") },
    });
    await space.until("deployments", "web", isReady(4));
    const annotations = { "simulate/outcome": "unready" };
    await space.patch("deployments", "web", { spec: { template: podTemplate("web", { annotations }) } });
    const held = await space.until(
      "deployments",
      "web",
      (object) => countIn(object, "updatedReplicas") === 2 && countIn(object, "replicas") === 5,
    );
    assert.is(countIn(held, "readyReplicas"), 3);
    assert.is(countIn(held, "unavailableReplicas"), 2);
    assert.equal(conditionsOf(held), ["Available True MinimumReplicasAvailable", "Progressing True ReplicaSetUpdated"]);
  });

  law(
    "creates the new ReplicaSet of a Deployment of type Recreate only after all old Pods have ended",
    async (space) => {
      await space.create("deployments", {
        metadata: { name: "web" },
        spec: { replicas: 2, selector, strategy: { type: "Recreate" }, template: podTemplate("web") },
      });
      await space.until("deployments", "web", isReady(2));
      const before = (await space.list("pods")).map(({ metadata }) => metadata.name);
      using pods = await space.watch("pods");
      using sets = await space.watch("replicasets");
      await space.patch("deployments", "web", { spec: { template: podTemplate("web", { image: "nginx:2" }) } });
      await space.until(
        "deployments",
        "web",
        (object) => isReady(2)(object) && countIn(object, "updatedReplicas") === 2,
      );
      const ended = new Set<string>();
      const areOver = ({ type, object: { metadata, status } }: WatchEvent) => {
        const hasEnded = type === "DELETED" || /^(Succeeded|Failed)$/.test(String(status?.["phase"]));
        if (hasEnded && before.includes(metadata.name)) ended.add(metadata.name);
        return ended.size === before.length;
      };
      const versionAt = (events: WatchEvent[]) => Number(events.at(-1)?.object.metadata.resourceVersion);
      const over = versionAt(await eventsUntil(pods, areOver));
      const created = versionAt(await eventsUntil(sets, ({ object }) => JSON.stringify(object).includes("nginx:2")));
      assert.is(before.length, 2);
      assert.ok(over < created, `the ReplicaSet was created at ${created}, the last Pod ended at ${over}`);
      const after = (await space.list("pods")).map(({ metadata }) => metadata.name);
      assert.is(after.length, 2);
      assert.not.ok(after.some((name) => before.includes(name)));
    },
  );

  law("reports a paused Deployment and does not roll it out until it is resumed", async (space) => {
    await space.create("deployments", {
      metadata: { name: "web" },
      spec: { replicas: 1, selector, template: podTemplate("web") },
    });
    await space.until("deployments", "web", isReady(1));
    await space.patch("deployments", "web", {
      spec: { paused: true, replicas: 2, template: podTemplate("web", { image: "nginx:2" }) },
    });
    const paused = await space.until("deployments", "web", isReady(2));
    assert.ok(conditionsOf(paused).includes("Progressing Unknown DeploymentPaused"));
    assert.is((await space.list("replicasets")).length, 1);
    await space.patch("deployments", "web", { spec: { paused: false } });
    await space.until("deployments", "web", (object) => countIn(object, "updatedReplicas") === 2 && isReady(2)(object));
  });

  law("creates numbered Pods of a StatefulSet, and updates them down to the partition", async (space) => {
    const updateStrategy = { rollingUpdate: { partition: 1 } };
    await space.create("statefulsets", {
      metadata: { name: "db" },
      spec: {
        replicas: 2,
        serviceName: "db",
        selector: { matchLabels: { app: "db" } },
        updateStrategy,
        template: podTemplate("db"),
      },
    });
    const ready = await space.until("statefulsets", "db", isReady(2));
    const { currentRevision = "" } = ready.status as { currentRevision?: string };
    const first = await space.get("pods", "db-0");
    assert.equal(first?.metadata.labels, {
      app: "db",
      "apps.kubernetes.io/pod-index": "0",
      "controller-revision-hash": currentRevision,
      "statefulset.kubernetes.io/pod-name": "db-0",
    });
    assert.equal([(first?.spec as Spec).hostname, (first?.spec as Spec).subdomain], ["db-0", "db"]);
    await space.patch("statefulsets", "db", { spec: { template: podTemplate("db", { image: "nginx:2" }) } });
    const updated = await space.until(
      "statefulsets",
      "db",
      (object) =>
        isReady(2)(object) && countIn(object, "updatedReplicas") === 1 && countIn(object, "currentReplicas") === 1,
    );
    assert.is((await space.get("pods", "db-0"))?.metadata.uid, first?.metadata.uid);
    const { updateRevision = "" } = updated.status as { updateRevision?: string };
    assert.is((await space.get("pods", "db-1"))?.metadata.labels?.["controller-revision-hash"], updateRevision);
    await space.patch("statefulsets", "db", { spec: { updateStrategy: { rollingUpdate: { partition: 0 } } } });
    const done = await space.until(
      "statefulsets",
      "db",
      (object) => object.status?.["currentRevision"] === updateRevision,
    );
    assert.is(countIn(done, "currentReplicas"), 2);
    assert.equal((await space.list("controllerrevisions")).map(({ revision }) => revision).sort(), [1, 2]);
  });

  law("creates the Pod of a DaemonSet, and replaces it for a new template", async (space) => {
    const daemon = { metadata: { name: "agent" }, spec: { selector, template: podTemplate("web") } };
    await space.create("daemonsets", daemon);
    const isUp = (object: AnyObject) =>
      countIn(object, "numberAvailable") === 1 &&
      countIn(object, "updatedNumberScheduled") === 1 &&
      countIn(object, "observedGeneration") === object.metadata.generation;
    await space.until("daemonsets", "agent", isUp);
    const [before] = await space.list("pods");
    await space.patch("daemonsets", "agent", { spec: { template: podTemplate("web", { image: "nginx:2" }) } });
    await space.until("daemonsets", "agent", isUp);
    const [after] = await space.list("pods");
    assert.is((after?.spec as Spec).containers?.[0]?.image, "nginx:2");
    assert.is(after?.metadata.labels?.["pod-template-generation"], "2");
    assert.not.equal(after?.metadata.uid, before?.metadata.uid);
    const tolerated = (after?.spec as Spec).tolerations?.map(({ key, effect }) => `${key} ${effect}`);
    assert.equal(tolerated, [
      "node.kubernetes.io/not-ready NoExecute",
      "node.kubernetes.io/unreachable NoExecute",
      "node.kubernetes.io/disk-pressure NoSchedule",
      "node.kubernetes.io/memory-pressure NoSchedule",
      "node.kubernetes.io/pid-pressure NoSchedule",
      "node.kubernetes.io/unschedulable NoSchedule",
    ]);
  });

  law("completes each index of an indexed Job once, and fails a Job after its backoffLimit", async (space) => {
    const job = (outcome: string, spec: object) => ({
      metadata: { name: outcome },
      spec: {
        ...spec,
        template: podTemplate(outcome, {
          annotations: { "simulate/outcome": outcome },
          spec: { restartPolicy: "Never", containers: [{ name: "c", image: "c" }] },
        }),
      },
    });
    await space.create("jobs", job("succeed", { completions: 3, parallelism: 2, completionMode: "Indexed" }));
    await space.create("jobs", job("fail", { backoffLimit: 0 }));
    const good = await space.until("jobs", "succeed", ({ status }) => status?.["completionTime"] !== undefined);
    assert.is(good.status?.["completedIndexes"], "0-2");
    assert.is(countIn(good, "succeeded"), 3);
    assert.equal(conditionsOf(good), [
      "SuccessCriteriaMet True CompletionsReached",
      "Complete True CompletionsReached",
    ]);
    const bad = await space.until("jobs", "fail", (object) => conditionsOf(object).length === 2);
    assert.equal(conditionsOf(bad), ["FailureTarget True BackoffLimitExceeded", "Failed True BackoffLimitExceeded"]);
    assert.is(countIn(bad, "failed"), 1);
    assert.is(bad.status?.["completionTime"], undefined);
    const indexes = (await space.list("pods", "app=succeed")).map(
      ({ metadata }) => metadata.annotations?.["batch.kubernetes.io/job-completion-index"],
    );
    assert.equal(indexes.sort(), ["0", "1", "2"]);
  });

  law("deletes the finished and running Pods of a Job that is deleted with Background propagation", async (space) => {
    const annotations = { "simulate/outcome": "run" };
    const template = podTemplate("job", { annotations, spec: { restartPolicy: "Never" } });
    await space.create("jobs", { metadata: { name: "job" }, spec: { completions: 2, parallelism: 2, template } });
    await space.until("jobs", "job", (object) => countIn(object, "ready") === 2);
    const [finished] = await space.list("pods", "app=job");
    await space.finish(finished?.metadata.name ?? "", "Succeeded");
    await space.until("jobs", "job", (object) => countIn(object, "succeeded") === 1 && countIn(object, "ready") === 1);
    assert.is((await space.list("pods", "app=job")).length, 2);
    await space.remove("jobs", "job", "?propagationPolicy=Background");
    await space.untilList("pods", "app=job", (pods) => pods.length === 0);
  });
}

interface Spec {
  replicas?: number;
  selector?: object;
  hostname?: string;
  subdomain?: string;
  containers?: { image: string }[];
  tolerations?: { key?: string; effect?: string }[];
}

function ownersOf(object: AnyObject | undefined): string[] {
  return (object?.metadata.ownerReferences ?? []).map((owner) =>
    [owner.apiVersion, owner.kind, owner.name, owner.uid, owner.controller, owner.blockOwnerDeletion].join(" "),
  );
}
