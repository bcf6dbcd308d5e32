import { quote, type Diagnostic } from "../../../diagnostic.js";
import type { ResourceModel } from "../../project-model.js";
import { EXTERNAL, type ProjectMemory } from "../../project-memory.js";
import {
  ruleOfController,
  type ResolvedController,
  type ResolvedDependent,
  type ResolvedRemoved,
} from "../../build/resolved-project.js";

/** Finds dependents that are removed and still there. In another controller that may be intended, so it is a warning; so are objects that nobody deletes. */
export const checkRemovedDependent = ruleOfController((controller, { controllers, memory }) => {
  const { spec, dependents, removed } = controller;
  const others = controllers.filter((other) => other !== controller && sharesPrimary(other, controller));
  return removed.flatMap((each): Diagnostic[] => {
    const { name, path, spec: stated } = each;
    const found = { rule: "removed-dependent", ...spec.document.keyAt(path) } as const;
    if (dependents.some((dependent) => isSame(dependent, each) && isWhole(dependent, each)))
      return [
        {
          ...found,
          severity: "error",
          message: `${quote(name)} is a dependent of the workflow, so it is not removed`,
          hint: "remove it here, or under dependents",
        },
      ];
    if (stated.resource === EXTERNAL) return checkExternal(each, controller);
    const successor = others.find((other) => other.dependents.some((dependent) => isSame(dependent, each)));
    if (successor === undefined) return checkCollected(each, controller, memory);
    if (each.spec.deletion === "garbageCollected") return [];
    return [
      {
        ...found,
        severity: "warning",
        message: `${quote(name)} is a dependent of controller ${quote(successor.spec.name)} now, which may want the same objects`,
        hint: "with deletion: garbageCollected it takes them over",
      },
    ];
  });
});

/** Warns of objects that nobody deletes: the garbage collector is to do it, and they have no owner reference to the primary. */
function checkCollected(removed: ResolvedRemoved, controller: ResolvedController, memory: ProjectMemory): Diagnostic[] {
  const { name, path, spec: stated } = removed;
  const problem = stated.deletion === "garbageCollected" ? unownedBecause(removed, controller, memory) : undefined;
  if (problem === undefined) return [];
  return [
    {
      ...{ severity: "warning", rule: "removed-dependent" },
      message: `the objects of ${quote(name)} have no owner reference, so the garbage collector never deletes them: ${problem}`,
      ...controller.spec.document.valueAt([...path, "deletion"]),
      hint: "write deletion: ordered, and the operator deletes them; or deletion: orphan, and they stay without their link to the primary",
    },
  ];
}

function unownedBecause(
  { name, spec: { cluster, namespace }, resource }: ResolvedRemoved,
  { spec, primary }: ResolvedController,
  { dependents }: ProjectMemory,
): string | undefined {
  if (cluster !== undefined) return `they are in cluster ${quote(cluster)}, and the primary is not`;
  const former = dependents.find((each) => each.controller === spec.name && each.name === name)?.deletion;
  if (former !== undefined) return `the dependent had deletion: ${former}`;
  if (primary?.scope !== "Namespaced") return undefined;
  if (resource?.scope === "Cluster") return `${resource.kind} is cluster-scoped, and the primary is namespaced`;
  const { namespaces } = spec.controller;
  const isOnlyOne = Array.isArray(namespaces) && namespaces.length === 1 && namespaces[0] === namespace;
  if (namespace === undefined || isOnlyOne) return undefined;
  return `they are in namespace ${quote(namespace)}, and the primary may be in another`;
}

// Nothing is kept of an external dependent but its name.
function checkExternal({ name, path, spec: stated }: ResolvedRemoved, { spec }: ResolvedController): Diagnostic[] {
  const { namespace, cluster } = stated;
  const found = { severity: "error", rule: "removed-dependent" } as const;
  if (stated.deletion !== "orphan")
    return [
      {
        ...found,
        message: `the resources of ${quote(name)} are outside of Kubernetes, where only its own code could delete them`,
        ...spec.document.valueAt([...path, "deletion"]),
        hint: 'write deletion: orphan to leave them; to delete them, keep the dependent with reconcilePrecondition: { when: "false" } until they are gone',
      },
    ];
  const field = namespace !== undefined ? "namespace" : cluster !== undefined ? "cluster" : undefined;
  if (field === undefined) return [];
  const message = `${quote(name)} is outside of Kubernetes, so it has no ${field}`;
  return [{ ...found, message, ...spec.document.keyAt([...path, field]), hint: "remove the field" }];
}

function sharesPrimary({ primary: one }: ResolvedController, { primary: other }: ResolvedController): boolean {
  return one !== undefined && other !== undefined && isSameKind(one, other);
}

// A dependent that is in another namespace, or has a selector, may not see what it had before.
function isWhole({ spec: { namespace, labelSelector, fieldSelector } }: ResolvedDependent, removed: ResolvedRemoved) {
  return namespace === removed.spec.namespace && labelSelector === undefined && fieldSelector === undefined;
}

// What is of another kind, or in another cluster, is not the same, though it has the name.
function isSame(dependent: ResolvedDependent, removed: ResolvedRemoved): boolean {
  const [{ resource: one, spec }, { resource: other }] = [dependent, removed];
  if (dependent.name !== removed.name || one === undefined || other === undefined) return false;
  return spec.mode !== "readOnly" && spec.cluster === removed.spec.cluster && isSameKind(one, other);
}

function isSameKind(one: ResourceModel, other: ResourceModel): boolean {
  return one.group === other.group && one.kind === other.kind;
}
