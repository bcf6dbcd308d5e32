import { isDeepStrictEqual } from "node:util";
import type { Connection } from "../api/api-request.js";
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

/** The usage of a quota in a new namespace. */
const UNUSED = { configmaps: "1", "count/deployments.apps": "0", pods: "0", services: "0" };

/** Declares invariants of objects other than workloads: endpoints, volumes, the default objects of namespaces, and disruption budgets. */
export function declareClusterObjectLaws(test: DeclareTest["thorough"], connect: () => Promise<Connection>): void {
  const law = (title: string, body: (space: ClusterSpace) => Promise<void>) =>
    test(title, async () => body(await openClusterSpace(await connect())), TEST_OPTIONS);
  const web = (replicas: number, options = {}) => ({
    metadata: { name: "web" },
    spec: { replicas, selector: { matchLabels: { app: "web" } }, template: podTemplate("web", options) },
  });
  const areReady = (replicas: number) => (object: AnyObject) => countIn(object, "readyReplicas") === replicas;

  law("counts objects for a ResourceQuota on create and delete, and enforces it once counted", async (space) => {
    // Wait for the default objects of the namespace.
    await space.untilList("configmaps", "", (present) => present.length === 1);
    const hard = { configmaps: "3", "count/deployments.apps": "2", pods: "1", services: "4" };
    await space.create("resourcequotas", { metadata: { name: "all" }, spec: { hard } });
    const isUsed = (expected: object) => (quota: AnyObject) =>
      isDeepStrictEqual(quota.status, { hard, used: { ...UNUSED, ...expected } });
    await space.until("resourcequotas", "all", isUsed({}));
    await space.create("configmaps", { metadata: { name: "a" } });
    await space.until("resourcequotas", "all", isUsed({ configmaps: "2" }));
    await space.create("configmaps", { metadata: { name: "b" } });
    await assert.rejects(
      space.create("configmaps", { metadata: { name: "c" } }),
      "exceeded quota: all, requested: configmaps=1, used: configmaps=3, limited: configmaps=3",
    );
    await space.remove("configmaps", "a");
    await space.until("resourcequotas", "all", isUsed({ configmaps: "2" }));
    await space.create("configmaps", { metadata: { name: "c" } });
    await space.create("deployments", web(2));
    await space.until("resourcequotas", "all", isUsed({ configmaps: "3", "count/deployments.apps": "1", pods: "1" }));
    await space.remove("deployments", "web");
    await space.until("resourcequotas", "all", isUsed({ configmaps: "3" }));
    await space.patch("resourcequotas", "all", { spec: { hard: { services: null } } });
    const isFewer = ({ status }: AnyObject) => !Object.hasOwn(status?.["used"] as object, "services");
    await space.until("resourcequotas", "all", isFewer);
  });

  law("maintains EndpointSlices and Endpoints with the ready Pods of a Service", async (space) => {
    const ports = [{ name: "www", port: 8080, targetPort: "http" }];
    await space.create("services", {
      metadata: { name: "web", labels: { of: "test" } },
      spec: { selector: { app: "web" }, ports },
    });
    await space.create("deployments", web(1));
    await space.until("deployments", "web", areReady(1));
    const [pod] = await space.list("pods");
    const isFilled = ([slice]: AnyObject[]) => readyOf(slice).length === 1;
    const [slice] = await space.untilList("endpointslices", "kubernetes.io/service-name=web", isFilled);
    assert.equal(slice?.metadata.labels, {
      "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
      "kubernetes.io/service-name": "web",
      of: "test",
    });
    assert.equal(slice?.["ports"], [{ name: "www", port: 80, protocol: "TCP" }]);
    assert.equal(slice?.["addressType"], "IPv4");
    const { podIP } = pod?.status as { podIP: string };
    const targetRef = { kind: "Pod", namespace: space.namespace, name: pod?.metadata.name, uid: pod?.metadata.uid };
    assert.equal(slice?.["endpoints"], [
      {
        addresses: [podIP],
        conditions: { ready: true, serving: true, terminating: false },
        targetRef,
        nodeName: "simulated",
      },
    ]);
    const endpoints = await space.until("endpoints", "web", ({ subsets }) => subsets !== undefined);
    assert.equal(endpoints["subsets"], [
      {
        addresses: [{ ip: podIP, nodeName: "simulated", targetRef }],
        ports: [{ name: "www", port: 80, protocol: "TCP" }],
      },
    ]);
    await space.patch("deployments", "web", { spec: { replicas: 0 } });
    await space.untilList("endpointslices", "kubernetes.io/service-name=web", ([empty]) => readyOf(empty).length === 0);
    await space.until("endpoints", "web", ({ subsets }) => subsets === undefined);
    await space.remove("services", "web");
    await space.untilGone("endpoints", "web");
  });

  law(
    "binds a PVC to a matching PV, protects it while a Pod uses it, and releases the PV afterwards",
    async (space) => {
      const volume = `volume-of-${space.namespace}`;
      const spec = { accessModes: ["ReadWriteOnce"], storageClassName: space.namespace };
      await space.create("persistentvolumes", {
        metadata: { name: volume },
        spec: {
          ...spec,
          capacity: { storage: "2Gi" },
          hostPath: { path: "/x" },
          persistentVolumeReclaimPolicy: "Retain",
        },
      });
      await space.create("persistentvolumeclaims", {
        metadata: { name: "data" },
        spec: { ...spec, resources: { requests: { storage: "1Gi" } } },
      });
      const isBound = ({ status }: AnyObject) => status?.["phase"] === "Bound";
      const claim = await space.until("persistentvolumeclaims", "data", isBound);
      assert.equal(claim.status, { phase: "Bound", accessModes: ["ReadWriteOnce"], capacity: { storage: "2Gi" } });
      assert.equal(claim.metadata.annotations, {
        "pv.kubernetes.io/bind-completed": "yes",
        "pv.kubernetes.io/bound-by-controller": "yes",
      });
      const bound = await space.until("persistentvolumes", volume, isBound);
      assert.equal((bound.spec as { claimRef: { name: string } }).claimRef.name, "data");
      const volumes = [{ name: "data", persistentVolumeClaim: { claimName: "data" } }];
      await space.create("pods", {
        metadata: { name: "user" },
        spec: { containers: [{ name: "c", image: "c" }], volumes },
      });
      await space.until("pods", "user", ({ status }) => status?.["phase"] === "Running");
      await space.remove("persistentvolumeclaims", "data");
      const held = await space.get("persistentvolumeclaims", "data");
      assert.equal(held?.metadata.finalizers, ["kubernetes.io/pvc-protection"]);
      await space.remove("pods", "user");
      await space.untilGone("persistentvolumeclaims", "data");
      await space.until("persistentvolumes", volume, ({ status }) => status?.["phase"] === "Released");
      await space.remove("persistentvolumes", volume);
      await space.untilGone("persistentvolumes", volume);
    },
  );

  law("recreates the default ServiceAccount and kube-root-ca.crt of a namespace", async (space) => {
    const isThere = () => true;
    const account = await space.until("serviceaccounts", "default", isThere);
    const config = await space.until("configmaps", "kube-root-ca.crt", isThere);
    assert.match((config["data"] as Record<string, string>)["ca.crt"] ?? "", /BEGIN CERTIFICATE/);
    assert.equal(Object.keys(config.metadata.annotations ?? {}), ["kubernetes.io/description"]);
    await space.remove("serviceaccounts", "default");
    await space.remove("configmaps", "kube-root-ca.crt");
    const isAnother = ({ metadata }: AnyObject) => metadata.uid !== account.metadata.uid;
    await space.until("serviceaccounts", "default", isAnother);
    await space.until("configmaps", "kube-root-ca.crt", ({ metadata }) => metadata.uid !== config.metadata.uid);
  });

  law("allows as many evictions as a PodDisruptionBudget permits, and returns 429 beyond", async (space) => {
    await space.create("poddisruptionbudgets", {
      metadata: { name: "web" },
      spec: { minAvailable: 2, selector: { matchLabels: { app: "web" } } },
    });
    await space.create("deployments", web(2));
    const isFull = (object: AnyObject) => countIn(object, "currentHealthy") === 2;
    const budget = await space.until("poddisruptionbudgets", "web", isFull);
    assert.equal(conditionsOf(budget), ["DisruptionAllowed False InsufficientPods"]);
    const [pod] = await space.list("pods");
    const refused = await space.evict(pod?.metadata.name ?? "");
    assert.is(refused.status, 429);
    assert.is(refused.body["message"], "Cannot evict pod as it would violate the pod's disruption budget.");
    assert.equal(refused.body["details"], {
      causes: [
        { reason: "DisruptionBudget", message: "The disruption budget web needs 2 healthy pods and has 2 currently" },
      ],
    });
    await space.patch("poddisruptionbudgets", "web", { spec: { minAvailable: 1 } });
    await space.until("poddisruptionbudgets", "web", (object) => countIn(object, "disruptionsAllowed") === 1);
    const allowed = await space.evict(pod?.metadata.name ?? "");
    assert.equal([allowed.status, allowed.body["status"]], [201, "Success"]);
    await space.untilGone("pods", pod?.metadata.name ?? "");
    await space.until("deployments", "web", areReady(2));
  });

  law("scales the target of a HorizontalPodAutoscaler up to minReplicas", async (space) => {
    await space.create("deployments", web(1));
    await space.create("horizontalpodautoscalers", {
      metadata: { name: "web" },
      spec: {
        scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "web" },
        minReplicas: 2,
        maxReplicas: 3,
      },
    });
    await space.until("deployments", "web", areReady(2));
    const scaler = await space.until(
      "horizontalpodautoscalers",
      "web",
      (object) => countIn(object, "desiredReplicas") === 2,
    );
    assert.ok(conditionsOf(scaler).some((condition) => condition.startsWith("AbleToScale True")));
  });
}

function readyOf(slice: AnyObject | undefined): unknown[] {
  const endpoints = (slice?.["endpoints"] ?? []) as { conditions: { ready: boolean } }[];
  return endpoints.filter(({ conditions }) => conditions.ready);
}
