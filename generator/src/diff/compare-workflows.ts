import {
  isKubernetes,
  isReadOnly,
  referenceText,
  type ControllerModel,
  type DependentModel,
  type ResourceModel,
} from "../model/project-model.js";
import { collectInto, type AddChange, type Change } from "./change.js";

/** Compares the controllers of two states of a project: what a new version does to running objects, as far as the spec tells. */
export function compareWorkflows(before: readonly ControllerModel[], after: readonly ControllerModel[]): Change[] {
  const changes: Change[] = [];
  const current = new Map(after.map((each) => [each.name, each]));
  const former = new Set(before.map(({ name }) => name));
  for (const controller of before) {
    const add = collectInto(changes, `controller ${controller.name}`);
    const now = current.get(controller.name);
    if (now === undefined) add("breaking", "", "removed; finalizers that it has set stay, and so do its objects");
    else compareController(controller, now, add);
  }
  for (const { name } of after)
    if (!former.has(name)) collectInto(changes, `controller ${name}`)("compatible", "", "added");
  return changes;
}

function compareController(before: ControllerModel, after: ControllerModel, add: AddChange): void {
  if (kindOf(before.primary) !== kindOf(after.primary))
    add("breaking", "primary", `${kindOf(before.primary)} → ${kindOf(after.primary)}`);
  const { fieldManager: manager = before.name, finalizer, namespaces } = before.settings;
  const {
    fieldManager: managerAfter = after.name,
    finalizer: finalizerAfter,
    namespaces: namespacesAfter,
  } = after.settings;
  if (manager !== managerAfter)
    add(
      "breaking",
      "fieldManager",
      `${manager} → ${managerAfter}; what the old one has applied stays in its name, and is not removed`,
    );
  if (finalizer !== finalizerAfter)
    add(
      "breaking",
      "finalizer",
      `${finalizer ?? "default"} → ${finalizerAfter ?? "default"}; primaries keep the old one, and nobody removes it`,
    );
  if (JSON.stringify(namespaces) !== JSON.stringify(namespacesAfter))
    add("compatible", "namespaces", `${words(namespaces)} → ${words(namespacesAfter)}`);
  const removed = new Map((after.removed ?? []).map((each) => [each.name, each]));
  const current = new Map(after.dependents.map((each) => [each.name, each]));
  const added = after.dependents.filter(({ name }) => !before.dependents.some((each) => each.name === name));
  for (const dependent of before.dependents) {
    const { name } = dependent;
    const now = current.get(name);
    if (now !== undefined) {
      compareDependent(dependent, now, add);
      continue;
    }
    const deletion = removed.get(name)?.deletion;
    const successor = deletion === undefined ? successorOf(dependent, added) : undefined;
    if (isReadOnly(dependent)) add("compatible", name, "removed; it was read only");
    else if (successor !== undefined)
      add(
        "breaking",
        name,
        `removed, and ${successor} of the same kind added: its objects are replaced; to keep them, keep the name ${name}`,
      );
    else if (deletion === "garbageCollected" || deletion === "orphan")
      add("compatible", name, `removed; its objects stay (deletion: ${deletion})`);
    else
      add(
        "breaking",
        name,
        deletion === undefined ? prunedText(after) : "removed; its objects are deleted, as removed: says",
      );
  }
  for (const { name } of added) add("compatible", name, "added");
}

function prunedText({ workflow }: ControllerModel): string {
  if (workflow?.inventory === false) return "removed; its objects stay and nobody updates them, as inventory is off";
  return "removed; its objects are deleted";
}

function compareDependent(before: DependentModel, after: DependentModel, add: AddChange): void {
  const { name } = after;
  if (!isKubernetes(before) || !isKubernetes(after)) {
    if (isKubernetes(before) !== isKubernetes(after))
      add(
        "breaking",
        name,
        `${isKubernetes(before) ? "an object of Kubernetes" : "external"} → ${isKubernetes(after) ? "an object of Kubernetes" : "external"}`,
      );
    return;
  }
  const [kind, kindAfter] = [before.resource, after.resource];
  if (kind.group !== kindAfter.group || kind.kind !== kindAfter.kind)
    add("breaking", name, `${kindOf(kind)} → ${kindOf(kindAfter)}; the objects of the old kind are replaced`);
  else if (kind.version !== kindAfter.version)
    add("compatible", name, `${kind.version} → ${kindAfter.version} of ${kind.kind}; the objects stay`);
  for (const option of ["namespace", "cluster"] as const)
    if (before[option] !== after[option])
      add(
        "breaking",
        name,
        `${option} ${before[option] ?? "of the primary"} → ${after[option] ?? "of the primary"}; new objects are created there, and the old ones are pruned or stay`,
      );
  if (before.fieldManager !== after.fieldManager)
    add(
      "breaking",
      name,
      `fieldManager ${before.fieldManager ?? "of the controller"} → ${after.fieldManager ?? "of the controller"}; fields that the old one has applied stay`,
    );
  if (before.deletion !== after.deletion) add("breaking", name, `deletion ${before.deletion} → ${after.deletion}`);
  const [ref, refAfter] = [before.ref, after.ref].map((each) => (each === undefined ? "none" : referenceText(each)));
  if (ref !== refAfter) add("compatible", name, `ref ${ref} → ${refAfter}`);
  if (before.mode !== after.mode) {
    const stops = after.mode !== undefined && before.mode !== "readOnly";
    add(stops ? "breaking" : "compatible", name, `mode ${before.mode ?? "managed"} → ${after.mode ?? "managed"}`);
  }
  if ((before.bulk === undefined) !== (after.bulk === undefined))
    add(
      "breaking",
      name,
      after.bulk === undefined
        ? "no longer bulk; items are pruned"
        : "bulk now; the single object is pruned unless an item has its name",
    );
  for (const condition of [
    "activationCondition",
    "reconcilePrecondition",
    "readyPostcondition",
    "deletePostcondition",
  ] as const)
    if (conditionText(before, condition) !== conditionText(after, condition))
      add("compatible", name, `${condition} ${conditionText(before, condition)} → ${conditionText(after, condition)}`);
}

function conditionText({ conditions }: DependentModel, name: keyof DependentModel["conditions"]): string {
  const condition = conditions[name];
  if (condition === undefined) return "none";
  return condition.kind === "when" ? condition.expression.trim() : condition.name;
}

function successorOf(dependent: DependentModel, added: readonly DependentModel[]): string | undefined {
  if (!isKubernetes(dependent)) return undefined;
  const ofItsKind = added.filter((each) => isKubernetes(each) && kindOf(each.resource) === kindOf(dependent.resource));
  return ofItsKind.length === 1 ? ofItsKind[0]?.name : undefined;
}

function kindOf({ group, version, kind }: ResourceModel): string {
  return [...(group === "" ? [] : [group]), version, kind].join("/");
}

function words(namespaces: readonly string[] | "current" | undefined): string {
  return namespaces === undefined ? "all" : namespaces === "current" ? "current" : namespaces.join(", ");
}
