import type { KubernetesObject } from "../feed/kubernetes-object.js";
import type { Pod } from "./pod.js";

/** A Node, as the scheduler sees it. */
export interface Node extends KubernetesObject {
  spec?: { unschedulable?: boolean; taints?: Taint[] };
  status?: { conditions?: { type: string; status: string }[] };
}

interface Taint {
  key: string;
  value?: string;
  effect: string;
}

/** A PersistentVolumeClaim, as the scheduler sees it. */
export interface Claim extends KubernetesObject {
  spec?: { volumeName?: string; storageClassName?: string };
  status?: { phase?: string };
}

/** Where a Pod goes, or the words of the scheduler that says why it goes nowhere. */
export type Placement = { nodeName: string } | { problem: string };

/** Finds a Node for a Pod. */
export function placementOf(
  pod: Pod,
  {
    nodes,
    claimOf,
    isLate,
  }: { nodes: Node[]; claimOf: (name: string) => Claim | undefined; isLate: (claim: Claim) => boolean },
): Placement {
  const total = nodes.length;
  if (total === 0) return { problem: "no nodes available to schedule pods" };
  const refused = (why: string): Placement => ({ problem: `0/${total} nodes are available: ${why}.` });
  for (const { persistentVolumeClaim } of pod.spec.volumes ?? []) {
    if (persistentVolumeClaim === undefined) continue;
    const claim = claimOf(persistentVolumeClaim.claimName);
    if (claim === undefined) return refused(`persistentvolumeclaim "${persistentVolumeClaim.claimName}" not found`);
    if (claim.status?.phase === "Lost" || claim.metadata.deletionTimestamp !== undefined) {
      return refused(`persistentvolumeclaim "${claim.metadata.name}" is being deleted`);
    }
    if (claim.spec?.volumeName === undefined && !isLate(claim)) {
      return refused("pod has unbound immediate PersistentVolumeClaims");
    }
  }
  const problems = nodes.map((node) => problemOf(pod, node));
  const free = problems.indexOf(undefined);
  if (free >= 0) return { nodeName: nodes[free]?.metadata.name ?? "" };
  const counts = new Map<string, number>();
  for (const problem of problems) counts.set(problem ?? "", (counts.get(problem ?? "") ?? 0) + 1);
  return refused(
    [...counts]
      .map(([problem, count]) => `${count} ${problem}`)
      .sort()
      .join(", "),
  );
}

/** Why a Pod does not go to a Node, in the words of the scheduler. */
function problemOf(pod: Pod, { metadata, spec }: Node): string | undefined {
  const { nodeSelector = {} } = pod.spec;
  const wanted = namedNode(pod);
  if (wanted !== undefined && wanted !== metadata.name) return "node(s) didn't match Pod's node affinity/selector";
  if (
    spec?.unschedulable === true &&
    !tolerates(pod, { key: "node.kubernetes.io/unschedulable", effect: "NoSchedule" })
  )
    return "node(s) were unschedulable";
  const taint = spec?.taints?.find(
    ({ effect, ...rest }) => effect !== "PreferNoSchedule" && !tolerates(pod, { effect, ...rest }),
  );
  if (taint !== undefined) return `node(s) had untolerated taint(s)`;
  const labels = metadata.labels ?? {};
  const isSelected = Object.entries(nodeSelector).every(([key, value]) => labels[key] === value);
  return isSelected ? undefined : "node(s) didn't match Pod's node affinity/selector";
}

/** Tells whether a Pod may be on a Node with this taint. */
export function tolerates({ spec }: Pick<Pod, "spec">, taint: Taint): boolean {
  return (spec.tolerations ?? []).some(({ key = "", operator = "Equal", effect = "", value = "" }) => {
    if (effect !== "" && effect !== taint.effect) return false;
    if (operator === "Exists") return key === "" || key === taint.key;
    return key === taint.key && value === (taint.value ?? "");
  });
}

interface NodeAffinity {
  requiredDuringSchedulingIgnoredDuringExecution?: {
    nodeSelectorTerms?: { matchFields?: { key: string; values?: string[] }[] }[];
  };
}

/** The Node that a Pod of a DaemonSet is for. */
export function namedNode({ spec }: Pod): string | undefined {
  const affinity = spec.affinity?.["nodeAffinity"] as NodeAffinity | undefined;
  const terms = affinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [];
  return terms.flatMap(({ matchFields = [] }) => matchFields).find(({ key }) => key === "metadata.name")?.values?.[0];
}
