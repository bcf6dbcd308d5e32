// Runs one Pod of each DaemonSet on every eligible Node.
import type { Controller, ControllerContext } from "../feed/controller.js";
import { isSame } from "../feed/kubernetes-object.js";
import { type Pod, isActive, isFinished, isReady } from "../pods/pod.js";
import { type Node, matchesNode, namedNode, tolerates } from "../pods/schedule.js";
import { cleanRevisions, currentRevision, hashOfRevision } from "./controller-revisions.js";
import { scaled } from "./deployment.js";
import {
  type Workload,
  type WorkloadSpec,
  claimPods,
  createPod,
  deletePod,
  nonZero,
  ownersOf,
  podFrom,
  readiness,
} from "./workload.js";

interface DaemonSetSpec extends WorkloadSpec {
  updateStrategy?: { type?: string; rollingUpdate?: { maxUnavailable?: number | string; maxSurge?: number | string } };
}

export type DaemonSet = Workload<DaemonSetSpec>;

const KIND = "daemonsets.apps";
const REVISION = "controller-revision-hash";
const TEMPLATE_GENERATION = "deprecated.daemonset.template.generation";
// Default tolerations of DaemonSet Pods, in the order of kube-controller-manager.
const TOLERATED: [key: string, effect: string][] = [
  ["not-ready", "NoExecute"],
  ["unreachable", "NoExecute"],
  ["disk-pressure", "NoSchedule"],
  ["memory-pressure", "NoSchedule"],
  ["pid-pressure", "NoSchedule"],
  ["unschedulable", "NoSchedule"],
];

/** Creates the controller of DaemonSets. */
export function createDaemonSets(): Controller<DaemonSet> {
  return {
    kind: KIND,
    watches: {
      "pods.": ownersOf({ plural: KIND, kind: "DaemonSet" }),
      "nodes.": (_, cluster) =>
        cluster.list<DaemonSet>(KIND).map(({ metadata }) => `${metadata.namespace}/${metadata.name}`),
      "controllerrevisions.apps": () => [],
    },
    async reconcile(set, context) {
      const { cluster } = context;
      if (set.metadata.deletionTimestamp !== undefined) return undefined;
      const revision = await currentRevision(cluster, set, { kind: "DaemonSet", hashLabel: REVISION });
      const hash = hashOfRevision(revision);
      await claimPods(cluster, { apiVersion: "apps/v1", kind: "DaemonSet", object: set });
      await place(set, hash, context);
      await replaceOld(set, hash, context);
      const again = await writeStatus(set, hash, context);
      await cleanRevisions(cluster, set, new Set([revision.metadata.name]));
      return again;
    },
  };
}

function podsOfSet({ metadata }: DaemonSet, { cluster }: ControllerContext): Pod[] {
  return cluster.controlledBy<Pod>("pods.", metadata.uid);
}

function nodeOf(pod: Pod): string {
  return pod.spec.nodeName ?? namedNode(pod) ?? "";
}

function nodesFor({ spec }: DaemonSet, { cluster }: ControllerContext): Node[] {
  const tolerations = [...(spec.template.spec.tolerations ?? []), ...tolerationsOf(spec.template.spec.tolerations)];
  return cluster.list<Node>("nodes.").filter((node) => {
    const isSelected = matchesNode(spec.template, node);
    const taints = (node.spec?.taints ?? []).filter(({ effect }) => effect !== "PreferNoSchedule");
    return isSelected && taints.every((taint) => tolerates({ spec: { tolerations } }, taint));
  });
}

/** Creates missing Pods and deletes those on ineligible Nodes and finished ones. */
async function place(set: DaemonSet, hash: string, context: ControllerContext): Promise<void> {
  const { cluster } = context;
  const owner = { kind: KIND, object: set };
  const nodes = nodesFor(set, context).map(({ metadata }) => metadata.name);
  const pods = podsOfSet(set, context);
  for (const pod of pods) {
    if (pod.metadata.deletionTimestamp !== undefined) continue;
    if (!nodes.includes(nodeOf(pod)) || isFinished(pod)) await deletePod(cluster, owner, pod);
  }
  for (const node of nodes) {
    if (podsOfSet(set, context).some((pod) => nodeOf(pod) === node)) continue;
    await createPod(cluster, owner, daemonPod(set, { hash, node }));
  }
}

function daemonPod(set: DaemonSet, { hash, node }: { hash: string; node: string }) {
  const pod = podFrom(set.spec.template, { apiVersion: "apps/v1", kind: "DaemonSet", object: set });
  pod.metadata.generateName = `${set.metadata.name}-`;
  Object.assign(pod.metadata.labels, {
    [REVISION]: hash,
    "pod-template-generation": set.metadata.annotations?.[TEMPLATE_GENERATION] ?? String(set.metadata.generation),
  });
  const { tolerations = [], affinity } = pod.spec;
  const term = { matchFields: [{ key: "metadata.name", operator: "In", values: [node] }] };
  const nodeAffinity = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [term] } };
  pod.spec = {
    ...pod.spec,
    affinity: { ...affinity, nodeAffinity },
    tolerations: [...tolerations, ...tolerationsOf(tolerations)],
  };
  return pod;
}

function tolerationsOf(own: { key?: string }[] = []) {
  return TOLERATED.map(([name, effect]) => ({ key: `node.kubernetes.io/${name}`, operator: "Exists", effect })).filter(
    ({ key }) => !own.some((toleration) => toleration.key === key),
  );
}

/** Deletes outdated Pods, limited by maxUnavailable. */
async function replaceOld(set: DaemonSet, hash: string, context: ControllerContext): Promise<void> {
  const { type, rollingUpdate } = set.spec.updateStrategy ?? {};
  if (type === "OnDelete") return;
  const pods = podsOfSet(set, context);
  const total = nodesFor(set, context).length;
  const limit = Math.max(1, scaled(rollingUpdate?.maxUnavailable ?? 1, total, Math.ceil));
  let unavailable = total - pods.filter((pod) => isActive(pod) && isReady(pod)).length;
  const old = pods.filter((pod) => isActive(pod) && pod.metadata.labels?.[REVISION] !== hash);
  for (const pod of old.sort((a, b) => Number(isReady(a)) - Number(isReady(b)))) {
    if (isReady(pod) && ++unavailable > limit) return;
    await deletePod(context.cluster, { kind: KIND, object: set }, pod);
  }
}

async function writeStatus(set: DaemonSet, hash: string, context: ControllerContext): Promise<number | undefined> {
  const nodes = nodesFor(set, context).map(({ metadata }) => metadata.name);
  const pods = podsOfSet(set, context).filter(isActive);
  const placed = pods.filter((pod) => nodes.includes(nodeOf(pod)));
  const { ready, available, again } = readiness(placed, set.spec.minReadySeconds, context.now());
  const updated = placed.filter(({ metadata }) => metadata.labels?.[REVISION] === hash).length;
  const status = {
    currentNumberScheduled: placed.length,
    numberMisscheduled: pods.length - placed.length,
    desiredNumberScheduled: nodes.length,
    numberReady: ready,
    observedGeneration: set.metadata.generation,
    ...nonZero({
      updatedNumberScheduled: updated,
      numberAvailable: available,
      numberUnavailable: nodes.length - available,
    }),
  };
  if (!isSame(set.status, status)) await context.cluster.update(KIND, { ...set, status }, { subresource: "status" });
  return again;
}
