import { compareQuantities } from "@gen-operator/schema";
import { type KubernetesObject, type LabelSelector, holdsFor, selects } from "../feed/kubernetes-object.js";
import type { Pod, Toleration } from "./pod.js";

/** The fields of a Node that the scheduler reads. */
export interface Node extends KubernetesObject {
  spec?: { unschedulable?: boolean; taints?: Taint[] };
  status?: { conditions?: { type: string; status: string }[]; allocatable?: Record<string, string> };
}

interface Taint {
  key: string;
  value?: string;
  effect: string;
}

/** The fields of a PersistentVolumeClaim that the scheduler reads. */
export interface Claim extends KubernetesObject {
  spec?: { volumeName?: string; storageClassName?: string };
  status?: { phase?: string };
}

/** The chosen Node, or the message of the scheduler if there is none. */
export type Placement = { nodeName: string } | { problem: string };

/** Chooses a Node for a Pod. */
export function placementOf(
  pod: Pod,
  {
    nodes,
    placed,
    claimOf,
    isLate,
  }: {
    nodes: Node[];
    /** Scheduled Pods and their Nodes; only called for Pods with inter-pod affinity. */
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

/** Returns why a Pod does not fit on a Node, with the message of the scheduler. */
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

/** Returns a resource whose request exceeds the allocatable amount of a Node. Requests of other Pods are not subtracted. */
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

/** Reports whether a Pod tolerates a taint. */
export function tolerates({ spec }: Pick<Pod, "spec">, taint: Taint): boolean {
  return (spec.tolerations ?? []).some((toleration) => isFor(toleration, taint));
}

function isFor({ key = "", operator = "Equal", effect = "", value = "" }: Toleration, taint: Taint): boolean {
  if (effect !== "" && effect !== taint.effect) return false;
  if (operator === "Exists") return key === "" || key === taint.key;
  return key === taint.key && value === (taint.value ?? "");
}

/** Returns how long a Pod tolerates the taints of its Node, in milliseconds: 0 if not at all, undefined if indefinitely. */
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

/** Returns the Node that the affinity of a DaemonSet Pod names. */
export function namedNode({ spec }: Pod): string | undefined {
  const terms = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [];
  return terms.flatMap(({ matchFields = [] }) => matchFields).find(({ key }) => key === "metadata.name")?.values?.[0];
}

// Evaluates required affinity terms as the scheduler does.

/** Affinity of a Pod; preferred terms are ignored. */
export interface Affinity {
  nodeAffinity?: { requiredDuringSchedulingIgnoredDuringExecution?: { nodeSelectorTerms?: NodeTerm[] } };
  podAffinity?: { requiredDuringSchedulingIgnoredDuringExecution?: PodTerm[] };
  podAntiAffinity?: { requiredDuringSchedulingIgnoredDuringExecution?: PodTerm[] };
}

interface Requirement {
  key: string;
  operator: string;
  values?: string[];
}

interface NodeTerm {
  matchExpressions?: Requirement[];
  matchFields?: Requirement[];
}

interface PodTerm {
  labelSelector?: LabelSelector;
  namespaces?: string[];
  topologyKey: string;
}

/** Reports whether a Node matches the nodeSelector and the required nodeAffinity of a Pod. */
export function matchesNode({ spec }: Pick<Pod, "spec">, { metadata }: Node): boolean {
  const labels = metadata.labels ?? {};
  if (!Object.entries(spec.nodeSelector ?? {}).every(([key, value]) => labels[key] === value)) return false;
  const required = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  if (required === undefined) return true;
  const fields = { "metadata.name": metadata.name };
  return (required.nodeSelectorTerms ?? []).some(({ matchExpressions = [], matchFields = [] }) => {
    // An empty term matches nothing.
    if (matchExpressions.length + matchFields.length === 0) return false;
    return matchExpressions.every((one) => holds(one, labels)) && matchFields.every((one) => holds(one, fields));
  });
}

function holds(requirement: Requirement, labels: Record<string, string>): boolean {
  const { key, operator, values: [limit] = [] } = requirement;
  if (operator !== "Gt" && operator !== "Lt") return holdsFor(requirement, labels);
  const value = labels[key];
  if (value === undefined) return false;
  return operator === "Gt" ? Number(value) > Number(limit) : Number(value) < Number(limit);
}

/** Returns why inter-pod affinity or anti-affinity excludes a Node, with the message of the scheduler. */
function podAffinityProblem(pod: Pod, node: Node, placed: { pod: Pod; node: Node }[]): string | undefined {
  const { podAffinity, podAntiAffinity } = pod.spec.affinity ?? {};
  const isNear = ({ topologyKey }: PodTerm, other: Node) => {
    const value = node.metadata.labels?.[topologyKey];
    return value !== undefined && other.metadata.labels?.[topologyKey] === value;
  };
  const wanted = podAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? [];
  const isMissing = wanted.some((term) => {
    const matching = placed.filter((other) => isMeant(term, pod, other.pod));
    // The first Pod of a group with affinity to itself can be scheduled anywhere.
    if (matching.length === 0 && isMeant(term, pod, pod)) return false;
    return !matching.some((other) => isNear(term, other.node));
  });
  if (isMissing) return "node(s) didn't match pod affinity rules";
  const unwanted = podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? [];
  const isTaken = unwanted.some((term) =>
    placed.some((other) => isMeant(term, pod, other.pod) && isNear(term, other.node)),
  );
  return isTaken ? "node(s) didn't match pod anti-affinity rules" : undefined;
}

function isMeant({ namespaces = [], labelSelector }: PodTerm, pod: Pod, { metadata }: Pod): boolean {
  const among = namespaces.length === 0 ? [pod.metadata.namespace ?? ""] : namespaces;
  return among.includes(metadata.namespace ?? "") && selects(labelSelector, metadata.labels);
}
