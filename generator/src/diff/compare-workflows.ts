import {
  CAPABILITIES,
  type ControllerModel,
  type Deletion,
  type DependentModel,
  type EventSourceModel,
  type ExternalDependentModel,
  type FiltersModel,
  type KubernetesDependentModel,
  type ResourceModel,
  isKubernetes,
  isReadOnly,
  referenceText,
} from "../model/project-model.js";
import type { OperationSpec } from "../read/workflow-spec.js";
import { type AddChange, type Change, collectInto } from "./change.js";

/** Compares the controllers of two states of a project: the effects of the new state on running objects, as far as the spec determines them. */
export function compareWorkflows(before: readonly ControllerModel[], after: readonly ControllerModel[]): Change[] {
  const changes: Change[] = [];
  const current = new Map(
    after.flatMap((each) => [each.name, ...(each.settings.formerNames ?? [])].map((name) => [name, each] as const)),
  );
  const former = new Set(before.map(({ name }) => name));
  for (const controller of before) {
    const add = collectInto(changes, `controller ${controller.name}`);
    const now = current.get(controller.name);
    if (now === undefined) add("breaking", "", "removed; its finalizers and objects remain");
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
  // If the controller was renamed, the runtime migrates the managed fields of its former name.
  const isMigrated = before.settings.fieldManager === undefined && before.name !== after.name;
  const isTaken = formerFieldManagers.includes(manager);
  if (manager !== managerAfter && !isMigrated)
    add(
      isTaken ? "compatible" : "breaking",
      "fieldManager",
      isTaken
        ? `${manager} → ${managerAfter}; the fields of the old one are taken over`
        : `${manager} → ${managerAfter}; the fields of the old one remain and are never removed; list it under formerFieldManagers`,
    );
  for (const each of formerFieldManagers)
    if (each !== manager && before.settings.formerFieldManagers?.includes(each) !== true)
      add(
        "breaking",
        "formerFieldManagers",
        `${each} added; the fields that it owns on objects of the operator are removed unless desired() returns them: gen-operator doctor --takeover lists them`,
      );
  if (finalizer !== finalizerAfter)
    add(
      "breaking",
      "finalizer",
      `${finalizer ?? "default"} → ${finalizerAfter ?? "default"}; primaries keep the old one, which is not removed`,
    );
  if (JSON.stringify(namespaces) !== JSON.stringify(namespacesAfter))
    add("compatible", "namespaces", `${words(namespaces)} → ${words(namespacesAfter)}`);
  compareFacts(settingsOf(before), settingsOf(after), (field, text) => add("compatible", field, text));
  compareEventSources(before.eventSources, after.eventSources, add);
  compareLists(before, after, add);
}

// Excludes settings that are compared separately, or that do not affect running objects.
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
      add("breaking", name, "removed; its resources outside Kubernetes remain, unmanaged");
    else if (stated !== undefined)
      add(stated.deletion === "ordered" ? "breaking" : "compatible", name, removalText(stated.deletion));
    else {
      const successor = successorOf(dependent, { before, after, added });
      const end =
        after.workflow?.pruning === false ? "remain but are no longer updated, because pruning is off" : "are deleted";
      add(
        "breaking",
        name,
        successor === undefined
          ? `removed; its objects ${end}. generate requires an entry: list ${name} under removed or moved`
          : `removed, and ${successor} of the same kind added: its objects are replaced. To keep them and your code: moved: [{ from: ${name}, to: ${successor} }]`,
      );
    }
  }
  for (const { name } of added) add("compatible", name, "added");
}

// Renaming a dependency does not change the edge.
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
  const fate = deletion === "orphan" ? "lose their link and are kept" : "remain until their primary is deleted";
  return `removed; its objects ${fate} (deletion: ${deletion})`;
}

function words(namespaces: readonly string[] | "current" | undefined): string {
  return namespaces === undefined ? "all" : namespaces === "current" ? "current" : namespaces.join(", ");
}

/** Compares the former and the current dependent: the effects on its objects. */
function compareDependent(before: DependentModel, after: DependentModel, add: AddChange): void {
  const { name } = after;
  compareEdges(before, after, add);
  compareConditions(before, after, add);
  if (!isKubernetes(before) && !isKubernetes(after)) return compareExternal(before, after, add);
  if (!isKubernetes(before) || !isKubernetes(after)) {
    const [former, now] = [before, after].map((each) => (isKubernetes(each) ? kindOf(each.resource) : "external"));
    add("breaking", name, `${former} → ${now}; existing objects and resources remain, unmanaged`);
    return;
  }
  const [kind, kindAfter] = [before.resource, after.resource];
  if (kind.group !== kindAfter.group || kind.kind !== kindAfter.kind)
    add(
      "breaking",
      name,
      `${kindOf(kind)} → ${kindOf(kindAfter)}; objects of the new kind are created, and ${OLD_ONES}`,
    );
  else if (kind.version !== kindAfter.version)
    add("compatible", name, `${kind.version} → ${kindAfter.version} of ${kind.kind}; the objects are kept`);
  for (const option of ["namespace", "cluster"] as const) {
    const [former, now] = [before, after].map((each) => each[option] ?? "of the primary");
    const isSeen = option === "namespace" && after.namespace === undefined;
    const fate = `new objects are created there, and ${isSeen ? "the old ones are pruned" : OLD_ONES}`;
    if (former !== now)
      add(
        "breaking",
        name,
        `${option} ${former} → ${now}; ${before.mode === "readOnly" ? "objects are read there" : fate}`,
      );
  }
  if (before.fieldManager !== after.fieldManager)
    add(
      "breaking",
      name,
      `fieldManager ${before.fieldManager ?? "of the controller"} → ${after.fieldManager ?? "of the controller"}; the fields of the old one remain`,
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
  compareWriting(before, after, add);
}

// Compares the options that determine which objects are watched, and how they are written.
function compareWriting(before: KubernetesDependentModel, after: KubernetesDependentModel, add: AddChange): void {
  const { name } = after;
  for (const option of ["labelSelector", "fieldSelector"] as const) {
    const [former, now] = [before, after].map((each) => each[option] ?? "none");
    const isWider = after[option] === undefined;
    const fate = before.mode === "readOnly" ? "" : `, and are created again; ${OLD_ONES}`;
    const seen = isWider ? "more objects are seen" : `objects that it does not select are no longer seen${fate}`;
    if (former !== now) add(isWider ? "compatible" : "breaking", name, `${option} ${former} → ${now}; ${seen}`);
  }
  if (before.serverSideApply !== after.serverSideApply)
    add(
      "breaking",
      name,
      after.serverSideApply === false
        ? "written by PUT now; fields of other managers are overwritten"
        : "written by server-side apply now; fields set by PUT keep their manager",
    );
  const isConditional = [before, after].some(({ conditions }) => conditions.existing !== undefined);
  if (before.existing !== after.existing && !isConditional)
    add(
      "compatible",
      name,
      after.existing === "adopt"
        ? "existing objects of that name are adopted"
        : "existing objects of that name are rejected",
    );
  if (before.heldForCleanup !== after.heldForCleanup)
    add(
      "compatible",
      name,
      after.heldForCleanup === true
        ? "held for cleanup: its objects get a finalizer"
        : "no longer held for cleanup; its objects lose the finalizer",
    );
  if (before.onImmutable !== after.onImmutable)
    add(
      after.onImmutable === undefined ? "breaking" : "compatible",
      name,
      after.onImmutable === undefined
        ? "onImmutable recreate → fail; changes of immutable fields are rejected"
        : "onImmutable fail → recreate; its objects are deleted and created again when an immutable field changes",
    );
  for (const operation of CAPABILITIES) {
    const [former, now] = [before, after].map(({ operations }) => operationText(operations?.[operation]));
    if (former !== now)
      add(
        now === "never" ? "breaking" : "compatible",
        name,
        `${operation} ${former} → ${now}${now === "never" ? `; ${NEVER[operation]}` : ""}`,
      );
  }
  compareFacts(dependentFactsOf(before), dependentFactsOf(after), (field, text) =>
    add("compatible", name, `${field} ${text}`),
  );
}

const OLD_ONES = "the old ones need an entry under removed";

const NEVER = {
  create: "another client has to create its objects",
  update: "its objects are no longer updated",
  delete: "its objects are no longer deleted",
} as const;

function operationText(operation: OperationSpec | undefined): string {
  return operation === undefined ? "by the runtime" : operation === "own" ? "by your function" : "never";
}

function dependentFactsOf(dependent: KubernetesDependentModel): object {
  const { bulk, eventSource, released, matcher, timeoutMs, retry, filters, again } = dependent;
  return {
    released: released?.join(", "),
    again: again?.expression.trim(),
    bulk: bulk?.maxConcurrency,
    eventSource,
    matcher,
    timeoutMs,
    retry,
    filters: filtersText(filters),
  };
}

function compareExternal(before: ExternalDependentModel, after: ExternalDependentModel, add: AddChange): void {
  const { name } = after;
  const states = [before, after].map(({ external }) => external.state);
  const [former, now] = states.map(stateText);
  const [formerPlace, place] = states.map(placeText);
  if (formerPlace !== place)
    add(
      "breaking",
      name,
      `ids stored in ${former} → ${now}; stored ids are not found: copy them first, otherwise resources are created twice`,
    );
  else if (former !== now)
    add("compatible", name, `ids stored in ${former} → ${now}; the operator moves the stored ids`);
  for (const operation of CAPABILITIES) {
    const [could, can] = [before, after].map(({ external }) => external.capabilities.includes(operation));
    if (could !== can)
      add(
        can === true ? "compatible" : "breaking",
        name,
        can === true ? `${operation} is possible now` : `${operation} is no longer possible`,
      );
  }
  if ((before.bulk === undefined) !== (after.bulk === undefined))
    add(
      "breaking",
      name,
      after.bulk === undefined ? "no longer bulk" : "bulk now; a resource is found by the key of its item",
    );
  const factsOfExternal = ({
    external: { source, onDeleteFailure, creationGraceMs },
    matcher,
    timeoutMs,
    retry,
  }: ExternalDependentModel) => ({
    source,
    onDeleteFailure,
    creationGraceMs,
    matcher,
    timeoutMs,
    retry,
  });
  compareFacts(factsOfExternal(before), factsOfExternal(after), (field, text) =>
    add("compatible", name, `${field} ${text}`),
  );
}

type State = ExternalDependentModel["external"]["state"];

function placeText(state: State): string {
  if (state === undefined) return "nothing";
  if (state.kind === "status") return `status.${state.path.join(".")}`;
  return state.kind === "resource" ? `${kindOf(state.resource)} ${state.path.join(".")}` : state.kind;
}

function stateText(state: State): string {
  const isPerItem = state !== undefined && state.kind !== "status" && state.perItem === true;
  return isPerItem ? `${placeText(state)} of each item` : placeText(state);
}

// A dependent is deleted when a required dependency becomes inactive.
function compareEdges(before: DependentModel, after: DependentModel, add: AddChange): void {
  const edgesOf = ({ dependsOn, itemsDependOn = [] }: DependentModel) =>
    new Map<string, "required" | "optional" | "by items">([
      ...dependsOn.map((each) =>
        typeof each === "string" ? ([each, "required"] as const) : ([each.name, "optional"] as const),
      ),
      ...itemsDependOn.map((each) => [each, "by items"] as const),
    ]);
  const [former, now] = [edgesOf(before), edgesOf(after)];
  for (const [other, form] of now)
    if (former.get(other) !== form)
      add(
        "compatible",
        after.name,
        `depends on ${other} (${form})${form === "required" ? `; it is deleted when ${other} is inactive` : ""}`,
      );
  for (const other of former.keys())
    if (!now.has(other)) add("compatible", after.name, `no longer depends on ${other}`);
}

function compareConditions(before: DependentModel, after: DependentModel, add: AddChange): void {
  const { name } = after;
  for (const condition of [
    "activationCondition",
    "reconcilePrecondition",
    "readyPostcondition",
    "deletePostcondition",
  ] as const)
    if (conditionText(before, condition) !== conditionText(after, condition))
      add("compatible", name, `${condition} ${conditionText(before, condition)} → ${conditionText(after, condition)}`);
}

/** Formats filters for a message. */
function filtersText(filters: FiltersModel): string | undefined {
  const parts = Object.entries(filters).map(
    ([each, filter]) => `${each}: ${filter.kind === "when" ? filter.expression.trim() : filter.name}`,
  );
  return parts.length === 0 ? undefined : parts.join(", ");
}

function conditionText({ conditions }: DependentModel, name: keyof DependentModel["conditions"]): string {
  const condition = conditions[name];
  if (condition === undefined) return "none";
  return condition.kind === "when" ? condition.expression.trim() : condition.name;
}

/** Compares event sources. They do not affect running objects; code that stops compiling is reported separately, line by line. */
function compareEventSources(
  before: readonly EventSourceModel[],
  after: readonly EventSourceModel[],
  add: AddChange,
): void {
  const current = new Map(after.map((each) => [each.name, each]));
  const former = new Set(before.map(({ name }) => name));
  for (const source of before) {
    const path = `eventSources.${source.name}`;
    const now = current.get(source.name);
    if (now === undefined) add("compatible", path, "removed; its changes no longer trigger reconciles");
    else
      compareFacts(sourceFactsOf(source), sourceFactsOf(now), (field, text) =>
        add("compatible", `${path}.${field}`, text),
      );
  }
  for (const source of after)
    if (!former.has(source.name)) add("compatible", `eventSources.${source.name}`, `added: ${describeSource(source)}`);
}

function sourceFactsOf(source: EventSourceModel): object {
  if (source.kind !== "informer") return source;
  const { resource, filters, cache: kept, ...others } = source;
  const conditions = Object.entries(filters).map(([name, filter]) => [
    name,
    filter.kind === "when" ? filter.expression.trim() : filter.name,
  ]);
  const cache = kept.kind === "paths" ? kept.paths.join(", ") : kept.kind;
  return { ...others, resource: kindOf(resource), filters: Object.fromEntries(conditions) as object, cache };
}

function describeSource(source: EventSourceModel): string {
  return source.kind === "informer"
    ? `${kindOf(source.resource)} is watched; the operator needs permissions for it`
    : source.kind;
}

/** Reports each field in which two plain objects differ. */
function compareFacts(before: object, after: object, tell: (field: string, text: string) => void): void {
  const [former, now] = [flatten(before), flatten(after)];
  for (const field of new Set([...former.keys(), ...now.keys()])) {
    const [old = "default", present = "default"] = [former.get(field), now.get(field)];
    if (old !== present) tell(field, `${old} → ${present}`);
  }
}

function flatten(value: object, path = ""): Map<string, string> {
  return new Map(
    Object.entries(value).flatMap(([name, each]: [string, unknown]): [string, string][] => {
      const at = path === "" ? name : `${path}.${name}`;
      if (each === undefined) return [];
      if (typeof each === "object" && each !== null && !Array.isArray(each)) return [...flatten(each, at)];
      return [[at, typeof each === "string" ? each : JSON.stringify(each)]];
    }),
  );
}

/** Formats a kind as specs do: `group/version/Kind`. */
function kindOf({ group, version, kind }: Pick<ResourceModel, "group" | "version" | "kind">): string {
  return [...(group === "" ? [] : [group]), version, kind].join("/");
}

/** Context for finding a successor. */
interface SuccessorOptions {
  readonly before: ControllerModel;
  readonly after: ControllerModel;
  readonly added: readonly DependentModel[];
}

/**
 * Returns the added dependent that a removed one was probably renamed to: one of the same kind, cluster, and namespace. If there are several, the one
 * with the most similar edges and conditions; undefined if that is ambiguous.
 */
function successorOf(dependent: DependentModel, { before, after, added }: SuccessorOptions): string | undefined {
  const scored = added
    .filter((each) => isSamePlace(dependent, each))
    .map((each) => ({ name: each.name, score: likeness([dependent, before], [each, after]) }))
    .sort((one, other) => other.score - one.score);
  const [first, second] = scored;
  return first === undefined || first.score === second?.score ? undefined : first.name;
}

function isSamePlace(one: DependentModel, other: DependentModel): boolean {
  if (!isKubernetes(one) || !isKubernetes(other)) return false;
  return (
    kindOf(one.resource) === kindOf(other.resource) &&
    one.cluster === other.cluster &&
    one.namespace === other.namespace
  );
}

type Placed = readonly [dependent: DependentModel, controller: ControllerModel];

function likeness(one: Placed, other: Placed): number {
  const [first, second] = [one, other].map(neighboursOf);
  const shared = [...(first ?? [])].filter((each) => second?.has(each) === true).length;
  const conditions =
    JSON.stringify(Object.keys(one[0].conditions)) === JSON.stringify(Object.keys(other[0].conditions));
  return shared + (conditions ? 1 : 0);
}

// Returns the edges from and to a dependent.
function neighboursOf([{ name, dependsOn }, { dependents }]: Placed): ReadonlySet<string> {
  const followers = dependents.filter((each) =>
    each.dependsOn.some((edge) => (typeof edge === "string" ? edge : edge.name) === name),
  );
  return new Set([
    ...dependsOn.map((edge) => `→${typeof edge === "string" ? edge : edge.name}`),
    ...followers.map((each) => `←${each.name}`),
  ]);
}
