// Invariants of the Events that the controllers of a cluster create, as `kubectl describe` shows them.
import type { Connection } from "../api/api-request.js";
import { assert, type DeclareTest } from "../suite.js";
import { TEST_OPTIONS } from "./cluster-steps.js";
import { type AnyObject, type ClusterSpace, countIn, openClusterSpace, podTemplate } from "./space-of-cluster.js";

/** Declares invariants of Events. */
export function declareEventLaws(test: DeclareTest["thorough"], connect: () => Promise<Connection>): void {
  const law = (title: string, body: (space: ClusterSpace) => Promise<void>) =>
    test(title, async () => body(await openClusterSpace(await connect())), TEST_OPTIONS);
  const selector = (app: string) => ({ matchLabels: { app } });

  law("records Events for scaling on the Deployment, and for Pods on its ReplicaSets", async (space) => {
    const template = (image: string) => podTemplate("web", { image });
    const spec = { replicas: 1, selector: selector("web"), template: template("a:1") };
    await space.create("deployments", { metadata: { name: "web" }, spec });
    await space.until("deployments", "web", (object) => countIn(object, "readyReplicas") === 1);
    const [first] = (await space.list("replicasets")).map(({ metadata }) => metadata.name);
    await space.patch("deployments", "web", { spec: { template: template("a:2") } });
    const sets = await space.untilList("replicasets", "", (all) => all.length === 2);
    const [second] = sets.map(({ metadata }) => metadata.name).filter((name) => name !== first);
    await untilTold(space, "Deployment web", [
      `Normal ScalingReplicaSet deployment-controller: Scaled up replica set ${first} from 0 to 1`,
      `Normal ScalingReplicaSet deployment-controller: Scaled up replica set ${second} from 0 to 1`,
      `Normal ScalingReplicaSet deployment-controller: Scaled down replica set ${first} from 1 to 0`,
    ]);
    await untilTold(space, `ReplicaSet ${first}`, [
      "Normal SuccessfulCreate replicaset-controller: Created pod: SET-POD",
      "Normal SuccessfulDelete replicaset-controller: Deleted pod: SET-POD",
    ]);
  });

  law("records scheduler and kubelet Events on a Pod", async (space) => {
    const { namespace } = space;
    const pod = (name: string, outcome: string) => ({
      metadata: { name, annotations: { "simulate/outcome": outcome } },
      spec: { containers: [{ name: "c", image: "i" }] },
    });
    for (const outcome of ["run", "crash", "no-image"]) await space.create("pods", pod(outcome, outcome));
    await space.until("pods", "run", ({ status }) => status?.["phase"] === "Running");
    await space.remove("pods", "run");
    const scheduled = (name: string) =>
      `Normal Scheduled default-scheduler: Successfully assigned ${namespace}/${name} to simulated`;
    const started = [
      'Normal Pulled kubelet: Container image "i" already present on machine and can be accessed by the pod',
      "Normal Created kubelet: Container created",
      "Normal Started kubelet: Container started",
    ];
    await untilTold(space, "Pod run", [scheduled("run"), ...started, "Normal Killing kubelet: Stopping container c"]);
    await untilTold(space, "Pod crash", [
      ...[scheduled("crash"), ...started],
      `Warning BackOff kubelet: Back-off restarting failed container c in pod crash_${namespace}(UID)`,
    ]);
    await untilTold(space, "Pod no-image", [
      scheduled("no-image"),
      'Normal Pulling kubelet: Pulling image "i"',
      'Warning Failed kubelet: Failed to pull image "i": the simulated Pod has no image',
      "Warning Failed kubelet: Error: ErrImagePull",
      'Normal BackOff kubelet: Back-off pulling image "i"',
      "Warning Failed kubelet: Error: ImagePullBackOff",
    ]);
  });

  law("records StatefulSet Events for claims and Pods, and FailedBinding on the claim", async (space) => {
    const requests = { storage: "1Gi" };
    const claim = { accessModes: ["ReadWriteOnce"], storageClassName: "", resources: { requests } };
    await space.create("statefulsets", {
      metadata: { name: "db" },
      spec: {
        ...{ replicas: 1, serviceName: "db", selector: selector("db"), template: podTemplate("db") },
        volumeClaimTemplates: [{ metadata: { name: "data" }, spec: claim }],
      },
    });
    await untilTold(space, "StatefulSet db", [
      "Normal SuccessfulCreate statefulset-controller: Create Claim data-db-0 Pod db-0 in StatefulSet db success",
      "Normal SuccessfulCreate statefulset-controller: Create Pod db-0 in StatefulSet db successful",
    ]);
    await untilTold(space, "PersistentVolumeClaim data-db-0", [
      "Normal FailedBinding persistentvolume-controller: " +
        "no persistent volumes available for this claim and no storage class is set",
    ]);
    await space.patch("statefulsets", "db", { spec: { replicas: 0 } });
    await untilTold(space, "StatefulSet db", [
      "Normal SuccessfulCreate statefulset-controller: Create Claim data-db-0 Pod db-0 in StatefulSet db success",
      "Normal SuccessfulCreate statefulset-controller: Create Pod db-0 in StatefulSet db successful",
      "Normal SuccessfulDelete statefulset-controller: Delete Pod db-0 in StatefulSet db successful",
    ]);
  });

  law("records Events on Jobs, DaemonSets and PodDisruptionBudgets", async (space) => {
    const job = (name: string, outcome: string, spec: object) => {
      const annotations = { "simulate/outcome": outcome };
      const template = podTemplate(name, { annotations, spec: { restartPolicy: "Never" } });
      return space.create("jobs", { metadata: { name }, spec: { ...spec, template } });
    };
    await job("good", "succeed", {});
    await job("bad", "fail", { backoffLimit: 0 });
    await job("held", "succeed", { suspend: true });
    const created = (name: string) => `Normal SuccessfulCreate job-controller: Created pod: ${name}-POD`;
    const suspended = "Normal Suspended job-controller: Job suspended";
    await untilTold(space, "Job held", [suspended]);
    await space.patch("jobs", "held", { spec: { suspend: false } });
    await untilTold(space, "Job good", [created("good"), "Normal Completed job-controller: Job completed"]);
    await untilTold(space, "Job bad", [
      created("bad"),
      "Warning BackoffLimitExceeded job-controller: Job has reached the specified backoff limit",
    ]);
    await untilTold(space, "Job held", [
      ...[suspended, created("held")],
      ...["Normal Resumed job-controller: Job resumed", "Normal Completed job-controller: Job completed"],
    ]);
    const template = podTemplate("agent");
    await space.create("daemonsets", { metadata: { name: "agent" }, spec: { selector: selector("agent"), template } });
    await untilTold(space, "DaemonSet agent", ["Normal SuccessfulCreate daemonset-controller: Created pod: agent-POD"]);
    const budget = { metadata: { name: "none" }, spec: { minAvailable: 1, selector: selector("none") } };
    await space.create("poddisruptionbudgets", budget);
    await untilTold(space, "PodDisruptionBudget none", ["Normal NoPods controllermanager: No matching pods found"]);
  });

  law("counts repeated failures in one Event", async (space) => {
    const { namespace } = space;
    const template = podTemplate("web", { spec: { serviceAccountName: "nobody" } });
    await space.create("replicasets", { metadata: { name: "web" }, spec: { selector: selector("web"), template } });
    const events = await space.untilList("events", "", (all) => all.some(({ count }) => Number(count) > 2));
    const [event] = events;
    assert.is(events.length, 1);
    assert.equal(textOf(event as AnyObject), [
      "ReplicaSet web",
      `Warning FailedCreate replicaset-controller: Error creating: pods "web-" is forbidden: ` +
        `error looking up service account ${namespace}/nobody: serviceaccount "nobody" not found`,
    ]);
    const { involvedObject, metadata, source, firstTimestamp, lastTimestamp } = event as Told;
    const { uid } = (await space.get("replicasets", "web"))?.metadata ?? {};
    assert.is(involvedObject.uid, uid);
    assert.equal(source, { component: "replicaset-controller" });
    assert.match(metadata.name, /^web\.[0-9a-f]{16}$/);
    assert.ok(Date.parse(firstTimestamp) <= Date.parse(lastTimestamp));
  });
}

type Told = AnyObject & {
  involvedObject: { kind: string; name: string; uid: string };
  source: { component?: string };
  reportingComponent: string;
  firstTimestamp: string;
  lastTimestamp: string;
};

/** Waits until an object has exactly these Events, in any order, because their timestamps have a precision of a second. */
export async function untilTold(space: ClusterSpace, of: string, expected: string[]): Promise<void> {
  const wanted = [...expected].sort();
  let told: string[] = [];
  const isAll = (events: AnyObject[]): boolean => {
    const texts = events.map(textOf);
    told = texts.flatMap(([whose, text]) => (whose === of ? [text] : [])).sort();
    return told.length >= wanted.length;
  };
  await space.untilList("events", "", isAll).catch((error: unknown) => {
    throw new Error(`${of} tells only:\n${told.join("\n")}`, { cause: error });
  });
  assert.equal(told, wanted);
}

function textOf(event: AnyObject): [whose: string, text: string] {
  const { type, reason, message, involvedObject, reportingComponent } = event as Told;
  const text = String(message)
    .replace(/[0-9a-f]{8}-[0-9a-f-]{27}/, "UID")
    .replace(/pod: web-[a-z0-9]+-[a-z0-9]{5}$/, "pod: SET-POD")
    .replace(/pod: (\w+)-[a-z0-9]{5}$/, "pod: $1-POD");
  return [
    `${involvedObject.kind} ${involvedObject.name}`,
    `${String(type)} ${String(reason)} ${reportingComponent}: ${text}`,
  ];
}
