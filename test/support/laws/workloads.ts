import { setTimeout as sleep } from "node:timers/promises";
import { apiRequest, apiRequestOrThrow, type Connection } from "../api/api-request.js";
import { waitFor } from "#apiserver/wait-for.js";
import { assert, type DeclareTest } from "../suite.js";
import { type Condition, RESTRAINT_MS } from "./cluster-steps.js";

/** Declares invariants of workloads that become ready, which a real cluster does only if it has nodes. */
export function declareWorkloadLaws(test: DeclareTest["thorough"], connect: () => Promise<Connection>): void {
  const podTemplate = (restartPolicy = "Always") => ({
    metadata: { labels: { app: "web" } },
    spec: { restartPolicy, containers: [{ name: "web", image: "nginx" }] },
  });
  const selector = { matchLabels: { app: "web" } };

  test("reports a Deployment as available, with conditions and revision as kube-controller-manager does", async () => {
    const cluster = await connect();
    const path = await createWorkload(cluster, "apps/v1 deployments", {
      replicas: 2,
      selector,
      template: podTemplate(),
    });
    const { status, annotations, managers } = await settled(cluster, path, { readyReplicas: 2 });
    assert.equal(withoutTimes(status), {
      observedGeneration: 1,
      replicas: 2,
      updatedReplicas: 2,
      readyReplicas: 2,
      availableReplicas: 2,
      terminatingReplicas: 0,
      conditions: [
        "Available True MinimumReplicasAvailable Deployment has minimum availability.",
        "Progressing True NewReplicaSetAvailable ReplicaSet has successfully progressed.",
      ],
    });
    assert.is(annotations["deployment.kubernetes.io/revision"], "1");
    assert.ok(managers.includes("kube-controller-manager status"));
  });

  test("increments the revision of a Deployment for a new template, not for a new scale", async () => {
    const cluster = await connect();
    const path = await createWorkload(cluster, "apps/v1 deployments", {
      replicas: 1,
      selector,
      template: podTemplate(),
    });
    await settled(cluster, path, { readyReplicas: 1 });
    await patch(cluster, path, { spec: { replicas: 3 } });
    const scaled = await settled(cluster, path, { observedGeneration: 2, readyReplicas: 3 });
    assert.is(scaled.annotations["deployment.kubernetes.io/revision"], "1");
    await patch(cluster, path, { spec: { template: { metadata: { annotations: { changed: "yes" } } } } });
    const renewed = await settled(cluster, path, { observedGeneration: 3, readyReplicas: 3 });
    assert.is(renewed.annotations["deployment.kubernetes.io/revision"], "2");
  });

  test("omits zero counts from the status of a Deployment with 0 replicas", async () => {
    const cluster = await connect();
    const path = await createWorkload(cluster, "apps/v1 deployments", {
      replicas: 0,
      selector,
      template: podTemplate(),
    });
    const { status } = await settled(cluster, path, { observedGeneration: 1 });
    assert.equal(withoutTimes(status), {
      observedGeneration: 1,
      terminatingReplicas: 0,
      conditions: [
        "Available True MinimumReplicasAvailable Deployment has minimum availability.",
        "Progressing True NewReplicaSetAvailable ReplicaSet has successfully progressed.",
      ],
    });
  });

  test("reports StatefulSets, ReplicaSets and DaemonSets as ready", async () => {
    const cluster = await connect();
    const spec = { selector, template: podTemplate() };
    const statefulSet = await createWorkload(cluster, "apps/v1 statefulsets", {
      ...spec,
      serviceName: "s",
      replicas: 2,
    });
    const replicaSet = await createWorkload(cluster, "apps/v1 replicasets", { ...spec, replicas: 2 });
    const daemonSet = await createWorkload(cluster, "apps/v1 daemonsets", spec);
    await settled(cluster, statefulSet, { observedGeneration: 1, readyReplicas: 2, availableReplicas: 2 });
    await settled(cluster, replicaSet, { observedGeneration: 1, readyReplicas: 2, availableReplicas: 2 });
    await settled(cluster, daemonSet, { observedGeneration: 1, desiredNumberScheduled: 1, numberReady: 1 });
  });

  test("completes a Job once, and does not start a suspended Job", async () => {
    const cluster = await connect();
    const path = await createWorkload(cluster, "batch/v1 jobs", { completions: 2, template: podTemplate("Never") });
    const suspended = await createWorkload(cluster, "batch/v1 jobs", { suspend: true, template: podTemplate("Never") });
    const { status, resourceVersion } = await settled(cluster, path, { succeeded: 2 });
    assert.equal(withoutTimes(status), {
      conditions: [
        "SuccessCriteriaMet True CompletionsReached Reached expected number of succeeded pods",
        "Complete True CompletionsReached Reached expected number of succeeded pods",
      ],
      succeeded: 2,
      terminating: 0,
      ready: 0,
      uncountedTerminatedPods: {},
    });
    await sleep(RESTRAINT_MS);
    assert.is((await settled(cluster, path, {})).resourceVersion, resourceVersion);
    assert.is((await settled(cluster, suspended, {})).status["startTime"], undefined);
  });

  test("runs a Pod until it is ready, and removes it when it is deleted", async () => {
    const cluster = await connect();
    const path = await createWorkload(cluster, "v1 pods", podTemplate().spec);
    const { status } = await settled(cluster, path, { phase: "Running" });
    const conditions = status["conditions"] as Condition[];
    assert.equal(
      conditions.filter(({ status }) => status === "True").map(({ type }) => type),
      ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"],
    );
    assert.is((status["containerStatuses"] as { ready: boolean }[])[0]?.ready, true);
    await apiRequestOrThrow(cluster, `DELETE ${path}`);
    await waitFor("the pod is gone", async () => (await apiRequest(cluster, `GET ${path}`)).status === 404);
  });

  test("does not write a ready workload again", async () => {
    const cluster = await connect();
    const path = await createWorkload(cluster, "apps/v1 deployments", {
      replicas: 1,
      selector,
      template: podTemplate(),
    });
    const before = await settled(cluster, path, { readyReplicas: 1 });
    await sleep(RESTRAINT_MS);
    assert.is((await settled(cluster, path, {})).resourceVersion, before.resourceVersion);
  });
}

let workloads = 0;

/** Creates a workload in the namespace default, and returns its path. */
async function createWorkload(cluster: Connection, versionAndPlural: string, spec: object): Promise<string> {
  const [apiVersion = "", plural = ""] = versionAndPlural.split(" ");
  const path = `/${apiVersion.includes("/") ? "apis" : "api"}/${apiVersion}/namespaces/default/${plural}`;
  const name = `workload-${++workloads}`;
  await apiRequestOrThrow(cluster, `POST ${path}`, { body: { metadata: { name }, spec } });
  return `${path}/${name}`;
}

async function patch(cluster: Connection, path: string, body: object): Promise<void> {
  await apiRequestOrThrow(cluster, `PATCH ${path}`, { body, contentType: "application/merge-patch+json" });
}

interface Settled {
  status: Record<string, unknown>;
  annotations: Record<string, string>;
  resourceVersion: string;
  managers: string[];
}

/** Waits until the status has these values. */
function settled(cluster: Connection, path: string, values: Record<string, unknown>): Promise<Settled> {
  return waitFor(`${path} has ${JSON.stringify(values)}`, async () => {
    const { metadata, status = {} } = await apiRequestOrThrow(cluster, `GET ${path}`);
    if (Object.entries(values).some(([field, value]) => status[field] !== value)) return undefined;
    const managers = (metadata.managedFields ?? []).map(({ manager, subresource }) => `${manager} ${subresource}`);
    return { status, managers, annotations: metadata.annotations ?? {}, resourceVersion: metadata.resourceVersion };
  });
}

/** Returns the status without values that differ between runs; conditions are formatted as strings. */
function withoutTimes({ conditions, ...status }: Record<string, unknown>): Record<string, unknown> {
  const texts = (conditions as Condition[]).map(({ type, status, reason, message }) =>
    [type, status, reason, message.replace(/ "[^"]*"/, "")].join(" "),
  );
  const fields = Object.entries(status).filter(([field]) => !field.endsWith("Time"));
  return { ...Object.fromEntries(fields), conditions: texts };
}
