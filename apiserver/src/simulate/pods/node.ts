import type { Cluster } from "../feed/cluster.js";
import type { Controller } from "../feed/controller.js";
import { HOST_IP } from "./pod-status.js";
import { type Pod, timestamp } from "./pod.js";
import type { Node } from "./schedule.js";

const NAME = "simulated";
const CAPACITY = { cpu: "8", memory: "32Gi", pods: "110", "ephemeral-storage": "100Gi" };
/** Declared features that allow the resize of Pod-level resources. */
const FEATURES = ["InPlacePodLevelResourcesVerticalScaling"];
const NOT_READY = "node.kubernetes.io/not-ready";

/** Registers the Node that the simulated Pods run on, as its kubelet would. */
export async function registerNode(cluster: Cluster, now: Date): Promise<void> {
  if (cluster.get("nodes.", NAME) !== undefined) return;
  const labels = {
    "beta.kubernetes.io/arch": "amd64",
    "beta.kubernetes.io/os": "linux",
    "kubernetes.io/arch": "amd64",
    "kubernetes.io/hostname": NAME,
    "kubernetes.io/os": "linux",
  };
  await cluster.create("nodes.", { metadata: { name: NAME, labels }, spec: {}, status: statusOf(now) }, "kubelet");
}

/** Creates the node lifecycle controller, which removes the not-ready taint from ready Nodes. */
export function createNodes(): Controller<Node> {
  return {
    kind: "nodes.",
    // The Pod garbage collector deletes the Pods of a deleted Node.
    async gone(name, { cluster }) {
      const pods = cluster.list<Pod>("pods.").filter(({ spec }) => spec.nodeName === name);
      await Promise.all(pods.map((pod) => cluster.remove("pods.", pod, { gracePeriodSeconds: 0 })));
    },
    async reconcile(node, { cluster, now }) {
      if (node.metadata.name !== NAME) return;
      if (node.status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True") !== true) {
        await cluster.update(
          "nodes.",
          { ...node, status: statusOf(now()) },
          { subresource: "status", manager: "kubelet" },
        );
        return;
      }
      const taints = node.spec?.taints ?? [];
      const rest = taints.filter(({ key }) => key !== NOT_READY);
      if (rest.length < taints.length)
        await cluster.update("nodes.", { ...node, spec: { ...node.spec, taints: rest } });
    },
  };
}

function statusOf(now: Date) {
  const time = timestamp(now);
  const condition = ([type, status]: [string, "True" | "False"], reason: string, message: string) => ({
    ...{ type, status, reason, message },
    ...{ lastHeartbeatTime: time, lastTransitionTime: time },
  });
  return {
    capacity: CAPACITY,
    allocatable: CAPACITY,
    declaredFeatures: FEATURES,
    addresses: [
      { type: "InternalIP", address: HOST_IP },
      { type: "Hostname", address: NAME },
    ],
    conditions: [
      condition(["MemoryPressure", "False"], "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
      condition(["DiskPressure", "False"], "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
      condition(["PIDPressure", "False"], "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
      condition(["Ready", "True"], "KubeletReady", "kubelet is posting ready status"),
    ],
    daemonEndpoints: { kubeletEndpoint: { Port: 10250 } },
    nodeInfo: {
      machineID: "simulated",
      systemUUID: "simulated",
      bootID: "simulated",
      kernelVersion: "simulated",
      osImage: "simulated",
      containerRuntimeVersion: "simulated://1.0",
      kubeletVersion: "v1.36.0",
      kubeProxyVersion: "",
      operatingSystem: "linux",
      architecture: "amd64",
    },
  };
}
