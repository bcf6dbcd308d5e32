// What the required terms of an affinity say of a Node, as the scheduler reads them.
import { holdsFor, type LabelSelector, selects } from "../feed/selector.js";
import type { Pod } from "./pod.js";
import type { Node } from "./schedule.js";

/** The affinity of a Pod; preferences are not looked at. */
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

/** Does a Node have what the nodeSelector and the nodeAffinity of a Pod require? */
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

/** Why the other Pods of a cluster keep a Pod from a Node, in the words of the scheduler. */
export function podAffinityProblem(pod: Pod, node: Node, placed: { pod: Pod; node: Node }[]): string | undefined {
  const { podAffinity, podAntiAffinity } = pod.spec.affinity ?? {};
  const isNear = ({ topologyKey }: PodTerm, other: Node) => {
    const value = node.metadata.labels?.[topologyKey];
    return value !== undefined && other.metadata.labels?.[topologyKey] === value;
  };
  const wanted = podAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? [];
  const isMissing = wanted.some((term) => {
    const matching = placed.filter((other) => isMeant(term, pod, other.pod));
    // The first one of a group that wants to be together goes anywhere.
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
