// Invariants of Pods, as the scheduler and the kubelet manage them.
import { apiRequestOrThrow, type Connection } from "../api/api-request.js";
import { assert, type DeclareTest } from "../suite.js";
import { TEST_OPTIONS } from "./cluster-steps.js";
import { untilTold } from "./events.js";
import { type AnyObject, conditionsOf, countIn, openClusterSpace, type ClusterSpace } from "./space-of-cluster.js";

/** Declares invariants of Pods on a node. */
export function declarePodLaws(test: DeclareTest["thorough"], connect: () => Promise<Connection>): void {
  const law = (title: string, body: (space: ClusterSpace) => Promise<void>) =>
    test(title, async () => body(await openClusterSpace(await connect())), TEST_OPTIONS);

  law("keeps a Deployment unready while a mounted Secret is missing", async (space) => {
    const volumes = [{ name: "login", secret: { secretName: "login" } }];
    await space.create("deployments", {
      metadata: { name: "web" },
      spec: {
        selector: { matchLabels: { app: "web" } },
        template: { metadata: { labels: { app: "web" } }, spec: { volumes, containers: [{ name: "c", image: "i" }] } },
      },
    });
    const [pod] = await space.untilList("pods", "app=web", (pods) => pods.length === 1);
    const name = pod?.metadata.name ?? "";
    await untilTold(space, `Pod ${name}`, [
      scheduled(space, name),
      'Warning FailedMount kubelet: MountVolume.SetUp failed for volume "login" : secret "login" not found',
    ]);
    const waiting = await space.get("pods", name);
    assert.equal([waiting?.status?.["phase"], ...statesOf(waiting)], ["Pending", "c waiting ContainerCreating"]);
    assert.is(countIn((await space.get("deployments", "web"))!, "readyReplicas"), 0);
    await space.create("secrets", { metadata: { name: "login" } });
    await space.until("deployments", "web", (object) => countIn(object, "readyReplicas") === 1);
  });

  law("creates a container only after the ConfigMap key in its env exists", async (space) => {
    const valueFrom = { configMapKeyRef: { name: "settings", key: "color" } };
    await space.create("pods", {
      metadata: { name: "web" },
      spec: {
        containers: [
          { name: "a", image: "i", env: [{ name: "COLOR", valueFrom }] },
          { name: "b", image: "i" },
        ],
      },
    });
    const waiting = await space.until("pods", "web", (pod) => statesOf(pod)[1] === "b running");
    assert.is(waiting.status?.["phase"], "Pending");
    assert.equal(statesOf(waiting), [
      'a waiting CreateContainerConfigError configmap "settings" not found',
      "b running",
    ]);
    assert.equal(conditionsOf(waiting), [
      "PodReadyToStartContainers True undefined",
      "Initialized True undefined",
      "Ready False ContainersNotReady",
      "ContainersReady False ContainersNotReady",
      "PodScheduled True undefined",
    ]);
    // The key is still missing.
    await space.create("configmaps", { metadata: { name: "settings" }, data: { size: "1" } });
    const keyless = `a waiting CreateContainerConfigError couldn't find key color in ConfigMap ${space.namespace}/settings`;
    await space.until("pods", "web", (pod) => statesOf(pod)[0] === keyless);
    await space.patch("configmaps", "settings", { data: { color: "red" } });
    await space.until("pods", "web", (pod) => statesOf(pod)[0] === "a running" && pod.status?.["phase"] === "Running");
    const pulled =
      'Normal Pulled kubelet: Container image "i" already present on machine and can be accessed by the pod';
    const started = ["Normal Created kubelet: Container created", "Normal Started kubelet: Container started"];
    await untilTold(space, "Pod web", [
      ...[scheduled(space, "web"), pulled, pulled],
      'Warning Failed kubelet: Error: configmap "settings" not found',
      `Warning Failed kubelet: Error: couldn't find key color in ConfigMap ${space.namespace}/settings`,
      ...[...started, ...started],
    ]);
  });

  law("starts Pods with missing optional inputs, and blocks Pods with missing required ones", async (space) => {
    await space.create("secrets", { metadata: { name: "there" }, data: { a: "" } });
    await space.create("configmaps", { metadata: { name: "there" }, data: { a: "" }, binaryData: { b: "" } });
    const image = "i";
    const plain = { name: "c", image };
    const missing: Record<string, object> = {
      "secret-key": { volumes: [{ name: "v", secret: { secretName: "there", items: [{ key: "b", path: "b" }] } }] },
      "config-map": { volumes: [{ name: "v", configMap: { name: "gone" } }] },
      projected: { volumes: [{ name: "v", projected: { sources: [{ secret: { name: "gone" } }] } }] },
      "env-from": { containers: [{ ...plain, envFrom: [{ secretRef: { name: "gone" } }] }] },
      "init-env": { initContainers: [{ name: "init", image, envFrom: [{ configMapRef: { name: "gone" } }] }] },
    };
    const optional = true;
    const present: Record<string, object> = {
      "optional-volumes": {
        volumes: [
          { name: "a", secret: { secretName: "gone", optional } },
          { name: "b", configMap: { name: "there", optional, items: [{ key: "z", path: "z" }] } },
          { name: "c", projected: { sources: [{ configMap: { name: "gone", optional } }] } },
          { name: "d", configMap: { name: "there", items: [{ key: "b", path: "b" }] } },
        ],
      },
      "optional-env": {
        containers: [
          {
            ...plain,
            envFrom: [{ secretRef: { name: "gone", optional } }, { configMapRef: { name: "there" } }],
            env: [
              { name: "A", valueFrom: { secretKeyRef: { name: "there", key: "a" } } },
              { name: "B", valueFrom: { configMapKeyRef: { name: "gone", key: "a", optional } } },
            ],
          },
        ],
      },
    };
    for (const [name, spec] of Object.entries({ ...missing, ...present }))
      await space.create("pods", { metadata: { name }, spec: { containers: [plain], ...spec } });
    for (const name of Object.keys(present))
      await space.until("pods", name, (pod) => conditionsOf(pod).includes("Ready True undefined"));
    const failure = (name: string) => (events: AnyObject[]) =>
      events.some(
        (event) => (event["involvedObject"] as { name: string }).name === name && event["type"] === "Warning",
      );
    for (const name of Object.keys(missing)) await space.untilList("events", "", failure(name));
    const states = await Promise.all(Object.keys(missing).map(async (name) => statesOf(await space.get("pods", name))));
    assert.equal(Object.fromEntries(Object.keys(missing).map((name, index) => [name, states[index]])), {
      "secret-key": ["c waiting ContainerCreating"],
      "config-map": ["c waiting ContainerCreating"],
      projected: ["c waiting ContainerCreating"],
      "env-from": ['c waiting CreateContainerConfigError secret "gone" not found'],
      "init-env": ['init waiting CreateContainerConfigError configmap "gone" not found', "c waiting PodInitializing"],
    });
  });

  law("terminates the containers of a deleted Pod that a finalizer still holds", async (space) => {
    const pod = (name: string, outcome: string) => ({
      metadata: { name, finalizers: ["example.com/hold"], annotations: { "simulate/outcome": outcome } },
      spec: { containers: [{ name: "c", image: "i" }] },
    });
    for (const outcome of ["run", "crash", "no-image"]) await space.create("pods", pod(outcome, outcome));
    const states: Record<string, string> = {
      run: "c running",
      crash: "c waiting CrashLoopBackOff back-off 10s restarting failed container",
      "no-image": "c waiting ImagePullBackOff Back-off pulling image",
    };
    const ended: Record<string, string> = {
      run: "c terminated Error 143",
      crash: "c terminated Error 1",
      "no-image": "c terminated ContainerStatusUnknown 137",
    };
    for (const [name, state] of Object.entries(states)) {
      await space.until("pods", name, (one) => statesOf(one)[0] === state);
      await space.remove("pods", name, name === "crash" ? "?gracePeriodSeconds=0" : "");
      const last = await space.until("pods", name, ({ status }) => status?.["phase"] === "Failed");
      assert.equal(statesOf(last), [ended[name]]);
      assert.ok(conditionsOf(last).includes("Ready False PodFailed"));
      await space.patch("pods", name, { metadata: { finalizers: null } });
      await space.untilGone("pods", name);
    }
  });

  law("runs sidecars beside the containers, and init containers before them", async (space) => {
    await space.create("pods", {
      metadata: { name: "p" },
      spec: {
        initContainers: [
          { name: "first", image: "i" },
          { name: "proxy", image: "i", restartPolicy: "Always" },
        ],
        containers: [{ name: "c", image: "i" }],
      },
    });
    const pod = await space.until("pods", "p", ({ status }) => status?.["phase"] === "Running");
    assert.equal(statesOf(pod), ["first terminated Completed 0", "proxy running", "c running"]);
    const [, proxy] = pod.status?.["initContainerStatuses"] as { ready: boolean; started: boolean }[];
    assert.equal([proxy?.ready, proxy?.started], [true, true]);
  });

  law(
    "leaves Pods that fit no Node pending with the scheduler's message, and ignores other schedulers' Pods",
    async (space) => {
      const requiresTerm = (term: object) => ({
        nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [term] } },
      });
      const requires = (matchExpressions: object[]) => requiresTerm({ matchExpressions });
      const requiresCores = (operator: string, limit: string) =>
        requires([{ key: "example.com/cores", operator, values: [limit] }]);
      const near = (app: string, more: object = {}) => [
        { labelSelector: { matchLabels: { app } }, topologyKey: "kubernetes.io/hostname", ...more },
      ];
      const required = "requiredDuringSchedulingIgnoredDuringExecution";
      const container = { name: "c", image: "i" };
      const pods: Record<string, object> = {
        there: { affinity: requires([{ key: "kubernetes.io/os", operator: "In", values: ["linux"] }]) },
        elsewhere: { affinity: requires([{ key: "kubernetes.io/os", operator: "NotIn", values: ["linux"] }]) },
        selecting: { nodeSelector: { "kubernetes.io/os": "windows" } },
        named: {
          affinity: requiresTerm({
            matchFields: [{ key: "metadata.name", operator: "NotIn", values: ["simulated"] }],
          }),
        },
        empty: { affinity: requiresTerm({}) },
        more: { affinity: requiresCores("Gt", "7") },
        most: { affinity: requiresCores("Gt", "8") },
        less: { affinity: requiresCores("Lt", "9") },
        least: { affinity: requiresCores("Lt", "8") },
        unknown: { affinity: requires([{ key: "example.com/none", operator: "Lt", values: ["8"] }]) },
        together: { affinity: { podAffinity: { [required]: near("there") } } },
        "first-of-group": { affinity: { podAffinity: { [required]: near("first-of-group") } } },
        "far-from-others": {
          affinity: { podAntiAffinity: { [required]: near("there", { namespaces: ["default"] }) } },
        },
        alone: { affinity: { podAffinity: { [required]: near("nothing") } } },
        apart: { affinity: { podAntiAffinity: { [required]: near("there") } } },
        large: { containers: [{ ...container, resources: { requests: { cpu: "9000m" } } }] },
        device: {
          containers: [{ ...container, resources: { requests: { "a.b/gpu": "1" }, limits: { "a.b/gpu": "1" } } }],
        },
        other: { schedulerName: "volcano" },
      };
      const create = (name: string) =>
        space.create("pods", {
          metadata: { name, labels: { app: name } },
          spec: { containers: [container], ...pods[name] },
        });
      const labels = { "example.com/cores": "8" };
      await apiRequestOrThrow(await connect(), "PATCH /api/v1/nodes/simulated", {
        body: { metadata: { labels } },
        contentType: "application/merge-patch+json",
      });
      await create("there");
      await space.until("pods", "there", ({ status }) => status?.["phase"] === "Running");
      for (const name of Object.keys(pods).slice(1)) await create(name);
      const unfit = "node(s) didn't match Pod's node affinity/selector";
      const messages: Record<string, string> = {
        ...{ elsewhere: unfit, selecting: unfit, named: unfit, empty: unfit },
        ...{ most: unfit, least: unfit, unknown: unfit },
        alone: "node(s) didn't match pod affinity rules",
        apart: "node(s) didn't match pod anti-affinity rules",
        large: "Insufficient cpu",
        device: "Insufficient a.b/gpu",
      };
      for (const name of ["more", "less", "together", "first-of-group", "far-from-others"])
        await space.until("pods", name, ({ status }) => status?.["phase"] === "Running");
      for (const [name, message] of Object.entries(messages)) {
        const { status } = await space.until("pods", name, (pod) => conditionsOf(pod).length > 0);
        const [condition] = status?.["conditions"] as { message: string }[];
        assert.match(condition?.message ?? "", `nodes are available: 1 ${message}`);
      }
      assert.equal(conditionsOf((await space.get("pods", "other"))!), []);
    },
  );

  law("evicts Pods that do not tolerate a NoExecute taint, and all Pods of a deleted Node", async (space) => {
    const name = `node-${space.namespace}`;
    const cluster = await connect();
    await apiRequestOrThrow(cluster, "POST /api/v1/nodes", { body: { metadata: { name } } });
    const toleration = { key: "broken", operator: "Exists", effect: "NoExecute" };
    const create = (pod: string, tolerations: object[], metadata: object = {}) =>
      space.create("pods", {
        metadata: { name: pod, ...metadata },
        spec: {
          nodeName: name,
          terminationGracePeriodSeconds: 0,
          tolerations,
          containers: [{ name: "c", image: "i" }],
        },
      });
    await create("strict", [], { finalizers: ["example.com/hold"] });
    await space.create("pods", {
      metadata: { name: "neighbour" },
      spec: { nodeName: "simulated", containers: [{ name: "c", image: "i" }] },
    });
    await create("patient", [{ ...toleration, tolerationSeconds: 1 }]);
    await create("tolerant", [toleration]);
    for (const pod of ["strict", "patient", "tolerant", "neighbour"])
      await space.until("pods", pod, ({ status }) => status?.["phase"] === "Running");
    const taints = [{ key: "broken", effect: "NoExecute" }];
    const contentType = "application/merge-patch+json";
    const since = performance.now();
    await apiRequestOrThrow(cluster, `PATCH /api/v1/nodes/${name}`, { body: { spec: { taints } }, contentType });
    const evicted = await space.until("pods", "strict", ({ status }) => status?.["phase"] === "Failed");
    assert.ok(conditionsOf(evicted).includes("DisruptionTarget True DeletionByTaintManager"));
    const isOfEviction = ({ reason, involvedObject }: AnyObject) =>
      reason === "TaintManagerEviction" && (involvedObject as { name: string }).name === "strict";
    await space.untilList("events", "", (events) => events.some(isOfEviction));
    await space.patch("pods", "strict", { metadata: { finalizers: null } });
    await space.untilGone("pods", "strict");
    await space.untilGone("pods", "patient");
    assert.ok(performance.now() - since > 950, "it is tolerated for a second");
    assert.ok(await space.get("pods", "tolerant"));
    await apiRequestOrThrow(cluster, `DELETE /api/v1/nodes/${name}`);
    await space.untilGone("pods", "tolerant");
    assert.ok(await space.get("pods", "neighbour"), "it is on another Node");
  });

  law(
    "sets the address of a LoadBalancer Service, removes it with the type, and ignores other classes",
    async (space) => {
      const spec = { type: "LoadBalancer", ports: [{ port: 80 }] };
      await space.create("services", { metadata: { name: "web" }, spec });
      await space.create("services", { metadata: { name: "classed" }, spec: { ...spec, loadBalancerClass: "a.b/c" } });
      const ingressOf = ({ status }: AnyObject) =>
        (status?.["loadBalancer"] as { ingress?: { ip: string }[] })?.ingress;
      const web = await space.until("services", "web", (service) => ingressOf(service) !== undefined);
      assert.match(ingressOf(web)?.[0]?.ip ?? "", /^192\.0\.2\.\d+$/);
      await untilTold(space, "Service web", ["Normal EnsuredLoadBalancer service-controller: Ensured load balancer"]);
      await space.patch("services", "web", { spec: { type: "ClusterIP" } });
      await space.until("services", "web", (service) => ingressOf(service) === undefined);
      assert.is(ingressOf((await space.get("services", "classed"))!), undefined);
    },
  );
}

function scheduled({ namespace }: ClusterSpace, name: string): string {
  return `Normal Scheduled default-scheduler: Successfully assigned ${namespace}/${name} to simulated`;
}

interface States {
  name: string;
  state: Record<string, { reason?: string; message?: string; exitCode?: number }>;
}

/** Returns `name state reason message` for each container, with the exit code in place of the message if it has terminated. */
export function statesOf(pod: AnyObject | undefined): string[] {
  const { initContainerStatuses = [], containerStatuses = [] } = (pod?.status ?? {}) as Record<string, States[]>;
  return [...initContainerStatuses, ...containerStatuses].map(({ name, state }) => {
    const [[kind, { reason, message, exitCode }] = ["", {}]] = Object.entries(state);
    const detail = kind === "terminated" ? exitCode : message;
    return [name, kind, reason, detail].filter((part) => part !== undefined).join(" ");
  });
}
