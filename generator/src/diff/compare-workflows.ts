import type { Deletion } from "../model/dependent-model.js";
import { isKubernetes, isReadOnly, type ControllerModel, type DependentModel } from "../model/project-model.js";
import { collectInto, type AddChange, type Change } from "./change.js";
import { compareDependent } from "./compare-dependents.js";
import { compareEventSources } from "./compare-event-sources.js";
import { compareFacts, kindOf } from "./compare-facts.js";
import { successorOf } from "./successor.js";

/** Compares the controllers of two states of a project: what a new version does to running objects, as far as the spec tells. */
export function compareWorkflows(before: readonly ControllerModel[], after: readonly ControllerModel[]): Change[] {
  const changes: Change[] = [];
  const current = new Map(
    after.flatMap((each) => [each.name, ...(each.settings.formerNames ?? [])].map((name) => [name, each] as const)),
  );
  const former = new Set(before.map(({ name }) => name));
  for (const controller of before) {
    const add = collectInto(changes, `controller ${controller.name}`);
    const now = current.get(controller.name);
    if (now === undefined) add("breaking", "", "removed; finalizers that it has set stay, and so do its objects");
    else compareController(controller, now, add);
  }
  for (const { name, settings } of after)
    if (![name, ...(settings.formerNames ?? [])].some((each) => former.has(each)))
      collectInto(changes, `controller ${name}`)("compatible", "", "added");
  return changes;
}

function compareController(before: ControllerModel, after: ControllerModel, add: AddChange): void {
  if (before.name !== after.name)
    add("compatible", "", `renamed to ${after.name}; objects, ids and managed fields of the old name are kept`);
  if (kindOf(before.primary) !== kindOf(after.primary))
    add("breaking", "primary", `${kindOf(before.primary)} → ${kindOf(after.primary)}`);
  const { fieldManager: manager = before.name, finalizer, namespaces } = before.settings;
  const {
    fieldManager: managerAfter = after.name,
    finalizer: finalizerAfter,
    namespaces: namespacesAfter,
    formerFieldManagers = [],
  } = after.settings;
  // The runtime migrates the fields that it managed under a former name of the controller.
  const isMigrated = before.settings.fieldManager === undefined && before.name !== after.name;
  const isTaken = formerFieldManagers.includes(manager);
  if (manager !== managerAfter && !isMigrated)
    add(
      isTaken ? "compatible" : "breaking",
      "fieldManager",
      isTaken
        ? `${manager} → ${managerAfter}; what the old one has applied is taken over`
        : `${manager} → ${managerAfter}; what the old one has applied stays in its name, and is not removed; list it under formerFieldManagers`,
    );
  for (const each of formerFieldManagers)
    if (each !== manager && before.settings.formerFieldManagers?.includes(each) !== true)
      add(
        "breaking",
        "formerFieldManagers",
        `${each} added; what it owns on objects of the operator and desired() does not return is removed: gen-operator doctor --takeover lists it`,
      );
  if (finalizer !== finalizerAfter)
    add(
      "breaking",
      "finalizer",
      `${finalizer ?? "default"} → ${finalizerAfter ?? "default"}; primaries keep the old one, and nobody removes it`,
    );
  if (JSON.stringify(namespaces) !== JSON.stringify(namespacesAfter))
    add("compatible", "namespaces", `${words(namespaces)} → ${words(namespacesAfter)}`);
  compareFacts(settingsOf(before), settingsOf(after), (field, text) => add("compatible", field, text));
  compareEventSources(before.eventSources, after.eventSources, add);
  compareLists(before, after, add);
}

// What is compared on its own, or says nothing about what runs.
function settingsOf({ settings, workflow }: ControllerModel): object {
  const {
    formerNames: _formerNames,
    fieldManager: _manager,
    formerFieldManagers: _formerManagers,
    finalizer: _finalizer,
    namespaces: _namespaces,
    ...others
  } = settings;
  return { ...others, ...(workflow === undefined ? {} : { workflow }) };
}

function compareLists(before: ControllerModel, after: ControllerModel, add: AddChange): void {
  const removed = new Map((after.removed ?? []).map((each) => [each.name, each]));
  const former = new Set(before.dependents.map(({ name }) => name));
  const added = after.dependents.filter(
    ({ name, movedFrom = [] }) => ![name, ...movedFrom].some((each) => former.has(each)),
  );
  for (const dependent of before.dependents) {
    const { name } = dependent;
    const now = after.dependents.find((each) => each.name === name);
    const heir = now ?? after.dependents.find(({ movedFrom = [] }) => movedFrom.includes(name));
    if (heir !== undefined) {
      if (heir !== now) add("compatible", name, `moved to ${heir.name}; its objects are kept, and your code follows`);
      compareDependent(withPresentNames(dependent, after), heir, add);
      continue;
    }
    const stated = removed.get(name);
    if (isReadOnly(dependent)) add("compatible", name, "removed; it was read only");
    else if (!isKubernetes(dependent))
      add("breaking", name, "removed; its resources stay outside of Kubernetes, and nobody has them in hand");
    else if (stated !== undefined)
      add(stated.deletion === "ordered" ? "breaking" : "compatible", name, removalText(stated.deletion));
    else {
      const successor = successorOf(dependent, { before, after, added });
      const end =
        after.workflow?.pruning === false ? "stay, and nobody updates them, as pruning is off" : "are deleted";
      add(
        "breaking",
        name,
        successor === undefined
          ? `removed; its objects ${end}. generate wants to know it: list ${name} under removed, or under moved`
          : `removed, and ${successor} of the same kind added: its objects are replaced. To keep them and your code: moved: [{ from: ${name}, to: ${successor} }]`,
      );
    }
  }
  for (const { name } of added) add("compatible", name, "added");
}

// Edges to a dependent that has another name now are the same edges.
function withPresentNames<Dependent extends DependentModel>(
  dependent: Dependent,
  { dependents }: ControllerModel,
): Dependent {
  const present = new Map(
    dependents.flatMap(({ name, movedFrom = [] }) => movedFrom.map((each) => [each, name] as const)),
  );
  const nameOf = (name: string) => present.get(name) ?? name;
  const { dependsOn, itemsDependOn } = dependent;
  return {
    ...dependent,
    dependsOn: dependsOn.map((each) =>
      typeof each === "string" ? nameOf(each) : { ...each, name: nameOf(each.name) },
    ),
    ...(itemsDependOn === undefined ? {} : { itemsDependOn: itemsDependOn.map(nameOf) }),
  };
}

function removalText(deletion: Deletion): string {
  if (deletion === "ordered") return "removed; its objects are deleted (deletion: ordered)";
  const fate = deletion === "orphan" ? "lose their link, and outlive their primary" : "stay until their primary goes";
  return `removed; its objects ${fate} (deletion: ${deletion})`;
}

function words(namespaces: readonly string[] | "current" | undefined): string {
  return namespaces === undefined ? "all" : namespaces === "current" ? "current" : namespaces.join(", ");
}
