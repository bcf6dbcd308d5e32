import type { KubernetesObject, ResourceKind } from "../feed/kubernetes-object.js";

/** A condition in the status of a namespace. */
export interface Condition {
  type: string;
  status: "True" | "False";
  lastTransitionTime: string;
  reason: string;
  message: string;
}

/** Objects of one kind that are still in a namespace after they were deleted. */
export interface RemainingContent {
  kind: ResourceKind;
  objects: KubernetesObject[];
}

/** The conditions of a namespace that is being deleted, in the words of Kubernetes 1.36. */
export function deletionConditions(before: Condition[], remaining: RemainingContent[], now: Date): Condition[] {
  const conditions = [
    passed("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
    passed(
      "NamespaceDeletionGroupVersionParsingFailure",
      "ParsedGroupVersions",
      "All legacy kube types successfully parsed",
    ),
    passed(
      "NamespaceDeletionContentFailure",
      "ContentDeleted",
      "All content successfully deleted, may be waiting on finalization",
    ),
    contentCondition(remaining),
    finalizersCondition(remaining),
  ];
  const types = conditions.map(({ type }) => type);
  const others = before.filter(({ type }) => !types.includes(type));
  return [...others, ...conditions.map((condition) => withTime(condition, before, now))];
}

type TimelessCondition = Omit<Condition, "lastTransitionTime">;

function passed(type: string, reason: string, message: string): TimelessCondition {
  return { type, status: "False", reason, message };
}

function contentCondition(remaining: RemainingContent[]): TimelessCondition {
  const type = "NamespaceContentRemaining";
  if (remaining.length === 0) return passed(type, "ContentRemoved", "All content successfully removed");
  const counts = remaining.map(({ kind, objects }) => `${resourceOf(kind)} has ${objects.length} resource instances`);
  const message = `Some resources are remaining: ${counts.sort().join(", ")}`;
  return { type, status: "True", reason: "SomeResourcesRemain", message };
}

function finalizersCondition(remaining: RemainingContent[]): TimelessCondition {
  const type = "NamespaceFinalizersRemaining";
  const counts = new Map<string, number>();
  for (const { metadata } of remaining.flatMap(({ objects }) => objects)) {
    for (const name of metadata.finalizers ?? []) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  if (counts.size === 0) return passed(type, "ContentHasNoFinalizers", "All content-preserving finalizers finished");
  const parts = [...counts].map(([name, count]) => `${name} in ${count} resource instances`);
  const message = `Some content in the namespace has finalizers remaining: ${parts.sort().join(", ")}`;
  return { type, status: "True", reason: "SomeFinalizersRemain", message };
}

/** `deployments.apps`; kinds of the core group end with a full stop, as the real controller writes them. */
function resourceOf({ plural, group }: ResourceKind): string {
  return `${plural}.${group}`;
}

function withTime(condition: TimelessCondition, before: Condition[], now: Date): Condition {
  const { type, status, reason, message } = condition;
  const old = before.find((each) => each.type === type);
  const lastTransitionTime = old?.status === status ? old.lastTransitionTime : `${now.toISOString().slice(0, 19)}Z`;
  return { type, status, lastTransitionTime, reason, message };
}
