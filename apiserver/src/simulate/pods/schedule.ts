import { compareQuantities } from "@gen-operator/schema";
import type { KubernetesObject } from "../feed/kubernetes-object.js";
import { matchesNode, podAffinityProblem } from "./affinity.js";
import type { Pod, Toleration } from "./pod.js";

/** A Node, as the scheduler sees it. */
export interface Node extends KubernetesObject {
  spec?: { unschedulable?: boolean; taints?: Taint[] };
  status?: { conditions?: { type: string; status: string }[]; allocatable?: Record<string, string> };
}

/** A taint of a Node. */
export interface Taint {
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
    placed,
    claimOf,
    isLate,
  }: {
    nodes: Node[];
    /** The Pods that are on Nodes; asked for by Pods that care for others. */
    placed: () => { pod: Pod; node: Node }[];
    claimOf: (name: string) => Claim | undefined;
    isLate: (claim: Claim) => boolean;
  },
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
  const { podAffinity, podAntiAffinity } = pod.spec.affinity ?? {};
  const others = podAffinity === undefined && podAntiAffinity === undefined ? [] : placed();
  const problems = nodes.map((node) => problemOf(pod, node) ?? podAffinityProblem(pod, node, others));
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
function problemOf(pod: Pod, node: Node): string | undefined {
  const { spec } = node;
  if (
    spec?.unschedulable === true &&
    !tolerates(pod, { key: "node.kubernetes.io/unschedulable", effect: "NoSchedule" })
  )
    return "node(s) were unschedulable";
  const taint = spec?.taints?.find(
    ({ effect, ...rest }) => effect !== "PreferNoSchedule" && !tolerates(pod, { effect, ...rest }),
  );
  if (taint !== undefined) return `node(s) had untolerated taint(s)`;
  if (!matchesNode(pod, node)) return "node(s) didn't match Pod's node affinity/selector";
  return resourceProblem(pod, node);
}

/** Says which resource a Node lacks altogether: what other Pods request is not taken from it. */
function resourceProblem({ spec }: Pod, { status }: Node): string | undefined {
  const { allocatable } = status ?? {};
  if (allocatable === undefined) return undefined;
  for (const { resources } of spec.containers ?? []) {
    for (const [resource, requested] of Object.entries(resources?.requests ?? {})) {
      const available = allocatable[resource] ?? "0";
      if ((compareQuantities(requested, available) ?? 0) > 0) return `Insufficient ${resource}`;
    }
  }
  return undefined;
}

/** Tells whether a Pod may be on a Node with this taint. */
export function tolerates({ spec }: Pick<Pod, "spec">, taint: Taint): boolean {
  return (spec.tolerations ?? []).some((toleration) => isFor(toleration, taint));
}

function isFor({ key = "", operator = "Equal", effect = "", value = "" }: Toleration, taint: Taint): boolean {
  if (effect !== "" && effect !== taint.effect) return false;
  if (operator === "Exists") return key === "" || key === taint.key;
  return key === taint.key && value === (taint.value ?? "");
}

/** How long a Pod tolerates the taints of its Node, in milliseconds: 0 if not at all, `undefined` if for ever. */
export function toleratedMs({ spec }: Pod, node: Node): number | undefined {
  const taints = (node.spec?.taints ?? []).filter(({ effect }) => effect === "NoExecute");
  const times = taints.map((taint) => {
    const tolerations = (spec.tolerations ?? []).filter((toleration) => isFor(toleration, taint));
    if (tolerations.length === 0) return 0;
    return 1_000 * Math.max(0, Math.min(...tolerations.map(({ tolerationSeconds = Infinity }) => tolerationSeconds)));
  });
  const first = Math.min(...times);
  return first === Infinity ? undefined : first;
}

/** The Node that a Pod of a DaemonSet is for. */
export function namedNode({ spec }: Pod): string | undefined {
  const terms = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [];
  return terms.flatMap(({ matchFields = [] }) => matchFields).find(({ key }) => key === "metadata.name")?.values?.[0];
}
