import { type Diagnostic, didYouMean, formatPosition, quote } from "../diagnostic.js";
import { EXTERNAL, type ProjectMemory, type RememberedDependent, type StubWitness } from "../model/project-memory.js";
import type { ResourceModel } from "../model/project-model.js";
import {
  type ResolvedController,
  type ResolvedDependent,
  type ResolvedProject,
  type ResolvedRemoved,
  checkOfController,
  parseKind,
  presentNames,
} from "../model/resolved-project.js";
import type { UntypedKindSpec, WorkflowSpec } from "../read/workflow-spec.js";
import { MOVED_DEPENDENT, REMOVED_DEPENDENT, UNHANDLED_RENAME, UNSTATED_REMOVAL } from "./rules.js";

/** Which objects a dependent watches, compared between `removed`, `moved`, and the dependents. All versions of a kind serve the same objects. */
interface DependentPlace {
  /** Absent for external resources. */
  readonly kind?: { readonly group: string; readonly kind: string };
  readonly cluster?: string;
  /** Absent if the dependent follows the namespaces that the controller watches. */
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** Where the ids of external resources are stored. */
  readonly state?: string;
}

/** Returns the scope of a dependent of the last generation. */
function placeOfRemembered({ resource, ...more }: RememberedDependent): DependentPlace {
  return placeAt(resource, more);
}

/** Returns the scope of a current or removed dependent; undefined if its kind is unknown. */
function placeOf(dependent: ResolvedDependent | ResolvedRemoved): DependentPlace | undefined {
  const { resource, ...more } = dependent.spec;
  const external = "external" in dependent.spec ? dependent.spec.external : undefined;
  if (external !== undefined) return { ...stateOf(external.state) };
  const isKnown = dependent.resource !== undefined || resource === EXTERNAL;
  return resource !== undefined && isKnown ? placeAt(resource, more) : undefined;
}

function placeAt(
  resource: string | UntypedKindSpec,
  { cluster, namespace, labelSelector, fieldSelector, state }: Omit<DependentPlace, "kind">,
): DependentPlace {
  const { group, kind } = parseKind(
    typeof resource === "string" ? resource : `${resource.apiVersion}/${resource.kind}`,
  );
  return {
    ...(resource === EXTERNAL ? {} : { kind: { group, kind } }),
    ...(cluster === undefined ? {} : { cluster }),
    ...(namespace === undefined ? {} : { namespace }),
    ...(labelSelector === undefined ? {} : { labelSelector }),
    ...(fieldSelector === undefined ? {} : { fieldSelector }),
    ...(state === undefined ? {} : { state }),
  };
}

function stateOf(state: NonNullable<ResolvedDependent["spec"]["external"]>["state"]): { state?: string } {
  if (state === undefined) return {};
  const { status, in: store = "configMap", resource, path } = state;
  if (status !== undefined) return { state: `status ${status}` };
  return { state: resource === undefined ? store : `resource ${path ?? ""}` };
}

/** Returns whether two dependents can have the same objects. */
function isSamePlace(one: DependentPlace, other: DependentPlace): boolean {
  const isSameKind = one.kind?.group === other.kind?.group && one.kind?.kind === other.kind?.kind;
  return isSameKind && one.cluster === other.cluster;
}

/** Returns whether the watch of a dependent, limited by its namespace and selectors, covers the objects of another scope. */
function isSeenBy(dependent: DependentPlace, place: DependentPlace): boolean {
  const limits = ["namespace", "labelSelector", "fieldSelector"] as const;
  const isShown = limits.every((limit) => dependent[limit] === undefined || dependent[limit] === place[limit]);
  return isShown && isSamePlace(dependent, place);
}

/** Describes a scope for a message, for example `a ConfigMap in cluster "edge" in namespace "data"`. */
function describePlace({ kind, cluster, namespace, labelSelector, fieldSelector, state }: DependentPlace): string {
  if (kind === undefined) return `external${state === undefined ? "" : ` with its id in ${state}`}`;
  const article = /^[AEIO]/.test(kind.kind) ? "an" : "a";
  const limits = Object.entries({
    "in cluster": cluster,
    "in namespace": namespace,
    "with labelSelector": labelSelector,
    "with fieldSelector": fieldSelector,
  }).map(([name, value]) => (value === undefined ? "" : ` ${name} ${quote(value)}`));
  return `${article} ${kind.kind}${kind.group === "" ? "" : ` of ${kind.group}`}${limits.join("")}`;
}

/** Reports invalid entries of `moved`, and moves between dependents that cannot share objects. */
export const checkMovedDependent = checkOfController((controller, { memory }) => {
  const { spec, dependents, removed } = controller;
  const present = presentNames(spec.moved);
  const names = dependents.map(({ name }) => name);
  return spec.moved.flatMap(({ from, to }, index): Diagnostic[] => {
    const path = ["spec", "moved", index];
    const fail = (field: "from" | "to", message: string, hint: object): Diagnostic[] => [
      { ...MOVED_DEPENDENT.violation, message, ...spec.document.valueAt([...path, field]), ...hint },
    ];
    const placeOfEntry = (other: number) => formatPosition(spec.document.valueAt(["spec", "moved", other]).position);
    if (names.includes(from))
      return fail("from", `dependent ${quote(from)} is listed under moved but is still in the workflow`, {
        hint: "remove it from dependents, or remove this entry if the name is now used for something else",
      });
    const last = present.get(from) ?? to;
    const dependent = dependents.find(({ name }) => name === last);
    const stated = removed.find(({ name }) => name === from);
    const [place, gone] = [dependent, stated].map((each) => each && placeOf(each));
    // An entry of `removed` may be about objects of another kind that had this name.
    if (stated !== undefined && (place === undefined || gone === undefined || isSamePlace(place, gone)))
      return fail("from", `dependent ${quote(from)} is listed under both moved and removed`, {
        hint: "remove one of the two entries",
      });
    const same = spec.moved.findIndex((each) => each.from === from);
    if (same < index)
      return fail("from", `dependent ${quote(from)} is already moved at ${placeOfEntry(same)}`, {
        hint: "remove one of the two entries",
      });
    const rival = spec.moved.findIndex((each) => each.to === to);
    if (rival < index)
      return fail(
        "to",
        `dependent ${quote(spec.moved[rival]?.from ?? "")} is already moved to ${quote(to)} at ${placeOfEntry(rival)}`,
        {
          hint: "keep one entry, and list the other dependent under removed: two dependents cannot become one",
        },
      );
    if (dependent === undefined) {
      // Report a chain without a target once, at its last entry.
      if (last !== to && last !== from) return [];
      const message =
        last === from
          ? `the moved entries of ${quote(from)} form a cycle`
          : `dependent ${quote(to)} not found in the workflow`;
      return fail(
        "to",
        message,
        last === from ? {} : (didYouMean(to, names) ?? { hint: `known dependents: ${names.join(", ")}` }),
      );
    }
    const rememberedAs = (name: string) =>
      memory.dependents.find((each) => each.controller === spec.name && each.name === name);
    const known = rememberedAs(from);
    if (known !== undefined && memory.isUnfinished !== true && rememberedAs(last) !== undefined)
      return fail(
        "to",
        `dependent ${quote(last)} already existed beside ${quote(from)}, so it cannot take over the objects of ${quote(from)}`,
        {
          hint: `list ${quote(from)} under removed`,
        },
      );
    const [before, now] = [known && placeOfRemembered(known), placeOf(dependent)];
    if (before === undefined || now === undefined) return [];
    if (isSeenBy(now, before) && before.state === now.state) return [];
    return fail(
      "to",
      `dependent ${quote(from)} was ${describePlace(before)}, but ${quote(last)} is ${describePlace(now)}`,
      {
        hint: `moved can change only the name; list ${quote(from)} under removed`,
      },
    );
  });
});

/**
 * Reports removed dependents that are still in the workflow. Warns if another controller manages the objects now, which may be intended, and if no
 * owner reference lets the garbage collector delete them.
 */
export const checkRemovedDependent = checkOfController((controller, { controllers, memory }) => {
  const { spec, dependents, removed } = controller;
  const others = controllers.filter((other) => other !== controller && sharesPrimary(other, controller));
  return removed.flatMap((each): Diagnostic[] => {
    const { name, path, spec: stated } = each;
    const found = { ...REMOVED_DEPENDENT.violation, ...spec.document.keyAt(path) } as const;
    if (dependents.some((dependent) => isSame(dependent, each) && isWhole(dependent, each)))
      return [
        {
          ...found,
          severity: "error",
          message: `dependent ${quote(name)} is listed under removed but is still in the workflow`,
          hint: "remove it here or from dependents",
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
        message: `dependent ${quote(name)} is now in controller ${quote(successor.spec.name)}, which may claim the same objects`,
        hint: "set deletion: garbageCollected to let that controller take them over",
      },
    ];
  });
});

/** Warns about `deletion: garbageCollected` for objects without an owner reference, which would never be deleted. */
function checkCollected(removed: ResolvedRemoved, controller: ResolvedController, memory: ProjectMemory): Diagnostic[] {
  const { name, path, spec: stated } = removed;
  const problem = stated.deletion === "garbageCollected" ? unownedBecause(removed, controller, memory) : undefined;
  if (problem === undefined) return [];
  return [
    {
      ...{ severity: "warning", ...REMOVED_DEPENDENT.violation },
      message: `the objects of ${quote(name)} have no owner reference, so the garbage collector never deletes them: ${problem}`,
      ...controller.spec.document.valueAt([...path, "deletion"]),
      hint: "set deletion: ordered to have the operator delete them, or deletion: orphan to keep them without their link to the primary",
    },
  ];
}

function unownedBecause(
  { name, spec: { cluster, namespace }, resource }: ResolvedRemoved,
  { spec, primary }: ResolvedController,
  { dependents }: ProjectMemory,
): string | undefined {
  if (cluster !== undefined) return `they are in cluster ${quote(cluster)}, but the primary is not`;
  const former = dependents.find((each) => each.controller === spec.name && each.name === name)?.deletion;
  if (former !== undefined) return `the dependent had deletion: ${former}`;
  if (primary?.scope !== "Namespaced") return undefined;
  if (resource?.scope === "Cluster") return `${resource.kind} is cluster-scoped, but the primary is namespaced`;
  const { namespaces } = spec.controller;
  const isOnlyOne = Array.isArray(namespaces) && namespaces.length === 1 && namespaces[0] === namespace;
  if (namespace === undefined || isOnlyOne) return undefined;
  return `they are in namespace ${quote(namespace)}, but the primary may be in another`;
}

// Only the name of a removed external dependent is known, not its functions.
function checkExternal({ name, path, spec: stated }: ResolvedRemoved, { spec }: ResolvedController): Diagnostic[] {
  const { namespace, cluster } = stated;
  const found = { severity: "error", ...REMOVED_DEPENDENT.violation } as const;
  if (stated.deletion !== "orphan")
    return [
      {
        ...found,
        message: `deletion of external dependent ${quote(name)} must be orphan: only the code of the dependent can delete its resources`,
        ...spec.document.valueAt([...path, "deletion"]),
        hint: 'set deletion: orphan to keep them; to delete them, keep the dependent with reconcilePrecondition: { when: "false" } until they are deleted',
      },
    ];
  const field = namespace !== undefined ? "namespace" : cluster !== undefined ? "cluster" : undefined;
  if (field === undefined) return [];
  const message = `${field} is not allowed for external dependent ${quote(name)}: its resources are not in Kubernetes`;
  return [{ ...found, message, ...spec.document.keyAt([...path, field]), hint: `remove ${field}` }];
}

function sharesPrimary({ primary: one }: ResolvedController, { primary: other }: ResolvedController): boolean {
  return one !== undefined && other !== undefined && isSameKind(one, other);
}

// A dependent with another namespace or with a selector may no longer see all its former objects.
function isWhole({ spec: { namespace, labelSelector, fieldSelector } }: ResolvedDependent, removed: ResolvedRemoved) {
  return namespace === removed.spec.namespace && labelSelector === undefined && fieldSelector === undefined;
}

// A dependent of another kind, or in another cluster, only reuses the name.
function isSame(dependent: ResolvedDependent, removed: ResolvedRemoved): boolean {
  const [{ resource: one, spec }, { resource: other }] = [dependent, removed];
  if (dependent.name !== removed.name || one === undefined || other === undefined) return false;
  return spec.mode !== "readOnly" && spec.cluster === removed.spec.cluster && isSameKind(one, other);
}

function isSameKind(one: ResourceModel, other: ResourceModel): boolean {
  return one.group === other.group && one.kind === other.kind;
}

/** A controller of the last generation that is no longer in the project. */
interface GoneController {
  readonly name: string;
  /** The dependents that it wrote. */
  readonly dependents: readonly RememberedDependent[];
  /** A new controller with the same primary, which may be the renamed one. */
  readonly successor?: ResolvedController;
}

/**
 * Returns the controllers of the last generation that are no longer in the project. A controller that a successor lists under `formerNames` is not
 * among them: the previous state is read under its new name.
 */
function goneControllers({ controllers, memory }: ResolvedProject): GoneController[] {
  const written = memory.dependents.filter(({ isReadOnly }) => isReadOnly !== true);
  const primaries = new Map((memory.controllers ?? []).map(({ name, primary }) => [name, primary]));
  const known = new Set([...primaries.keys(), ...memory.dependents.map(({ controller }) => controller)]);
  const present = new Set(controllers.map(({ spec }) => spec.name));
  const added = controllers.filter(({ spec }) => !known.has(spec.name));
  return [...known]
    .filter((name) => !present.has(name))
    .sort()
    .map((name) => {
      const dependents = written.filter(({ controller }) => controller === name);
      const common = ({ spec }: ResolvedController) =>
        dependents.filter((each) => spec.dependents.has(each.name)).length;
      const primary = primaries.get(name);
      const [successor] = added
        .filter((each) => (primary === undefined ? common(each) > 0 : isOfKind(each, primary)))
        .sort((one, other) => common(other) - common(one));
      return { name, dependents, ...(successor && { successor }) };
    });
}

// The manifest of an older generator does not record the primary.
function isOfKind({ primary }: ResolvedController, stated: string): boolean {
  const { group, kind } = parseKind(stated);
  return primary?.group === group && primary.kind === kind;
}

/** Reports a controller that was renamed without listing its former name. */
export function checkUnhandledRename(project: ResolvedProject): Diagnostic[] {
  return goneControllers(project).flatMap(({ name, dependents, successor }): Diagnostic[] => {
    if (successor === undefined) return [];
    const { spec } = successor;
    return [
      {
        ...UNHANDLED_RENAME.violation,
        message:
          `controller ${quote(name)} was removed, and new controller ${quote(spec.name)} has the same primary: ` +
          `it will not find the objects that are labeled with ${quote(name)}` +
          (dependents.some(({ resource }) => resource === EXTERNAL)
            ? ", and will create external resources again"
            : ""),
        ...spec.document.valueAt(["metadata", "name"]),
        hint: [
          `if you renamed it, move src/${name} to src/${spec.name}, and ${pastedName(spec, name)}`,
          `otherwise keep controller ${quote(name)} until its objects are deleted, or, if they can stay, run once: gen-operator generate --forget ${name}`,
        ].join("\n"),
      },
    ];
  });
}

/** Returns the instruction for adding the former name, which differs if the spec already has the enclosing field. */
function pastedName({ controller, document }: WorkflowSpec, name: string): string {
  if (controller.formerNames !== undefined) return `add to spec.controller.formerNames: ${name}`;
  const { spec } = document.value as { readonly spec: object };
  const field = `formerNames: [${name}]`;
  return "controller" in spec ? `add to spec.controller:\n  ${field}` : `add to spec:\ncontroller:\n  ${field}`;
}

/**
 * Reports dependents that were removed from the spec without a `removed` or `moved` entry, which leaves their objects in the cluster.
 *
 * The same applies if the kind, cluster, namespace, or selector of a dependent has changed.
 */
export function checkUnstatedRemoval(project: ResolvedProject): Diagnostic[] {
  const { controllers, memory } = project;
  const written = memory.dependents.filter(({ isReadOnly }) => isReadOnly !== true);
  // checkUnhandledRename reports controllers that may have been renamed.
  const gone = goneControllers(project).filter(
    ({ successor, dependents }) => successor === undefined && dependents.length > 0,
  );
  return [
    ...gone.map(controllerGone),
    ...controllers.flatMap((controller) => [
      ...written
        .filter((each) => each.controller === controller.spec.name)
        .flatMap((each) => checkRemembered(each, controller, memory)),
      ...memory.stubs
        .filter(({ folder }) => isCalled(controller.spec.name, folder))
        .flatMap((stub) => checkStub(stub, controller)),
    ]),
  ];
}

function checkRemembered(
  remembered: RememberedDependent,
  controller: ResolvedController,
  memory: ProjectMemory,
): Diagnostic[] {
  const { name } = remembered;
  const { spec, dependents, removed } = controller;
  const place = placeOfRemembered(remembered);
  const dependent = dependents.find((each) => each.name === name);
  // The unknown-kind rule reports a kind that cannot be resolved.
  const now = dependent === undefined ? undefined : (placeOf(dependent) ?? place);
  if (now !== undefined && isSeenBy(now, place)) return [];
  if (now === undefined && spec.moved.some(({ from }) => from === name)) return [];
  const stated = removed.find((each) => each.name === name);
  if (stated === undefined) {
    const problem =
      now === undefined
        ? `dependent ${quote(name)} was removed from the workflow, but its`
        : `dependent ${quote(name)} was ${describePlace(place)} and is now ${describePlace(now)}; its previous`;
    const message = `${problem} ${place.kind === undefined ? "resources may still exist" : "objects may still exist in clusters"}`;
    const hint = hintFor(remembered, { controller, memory, mayMove: now === undefined });
    return [{ ...UNSTATED_REMOVAL.violation, message, ...placeIn(controller, name), hint }];
  }
  const statedPlace = placeOf(stated);
  if (statedPlace === undefined || isSamePlace(place, statedPlace)) return [];
  const message = `dependent ${quote(name)} was ${describePlace(place)}, but its entry under removed is ${describePlace(statedPlace)}`;
  return [
    {
      ...UNSTATED_REMOVAL.violation,
      message,
      ...spec.document.keyAt(stated.path),
      hint: `use: ${removedEntry(remembered)}`,
    },
  ];
}

function placeIn({ spec, dependents }: ResolvedController, name: string) {
  const own = dependents.find((each) => each.name === name);
  return spec.document.keyAt(own?.path ?? ["spec", "dependents"]);
}

interface HintOptions {
  readonly controller: ResolvedController;
  readonly memory: ProjectMemory;
  /** True if no dependent of the workflow has the name now. */
  readonly mayMove: boolean;
}

/** Returns the hint. Each line is printed with two blanks of indentation, like the fields of `spec`, so that the lines can be pasted. */
function hintFor(remembered: RememberedDependent, { controller, memory, mayMove }: HintOptions): string {
  const { name } = remembered;
  const { spec, dependents } = controller;
  const isNew = (each: string) => !memory.dependents.some((old) => old.controller === spec.name && old.name === each);
  const place = placeOfRemembered(remembered);
  const successors = dependents.filter((each) => {
    const own = placeOf(each);
    return own !== undefined && isNew(each.name) && isSeenBy(own, place);
  });
  const [successor] = successors;
  const moved = pasted(
    spec,
    "moved",
    `- { from: ${name}, to: ${successors.length === 1 ? successor?.name : "NEW_NAME"} }`,
  );
  const isExternal = remembered.resource === EXTERNAL;
  const choices = isExternal
    ? ""
    : "; deletion can be ordered (delete now), garbageCollected (delete with the primary), or orphan (keep)";
  const removed = pasted(spec, "removed", removedEntry(remembered), choices);
  const forRemoved = isExternal
    ? [
        "only the code of the dependent can delete its resources. To delete them, keep the dependent with",
        `reconcilePrecondition: { when: "false" } until they are deleted. To keep them, ${removed}`,
      ]
    : [`${mayMove ? "otherwise, " : ""}${removed}`];
  return [...(mayMove ? [`if you renamed it, ${moved}`] : []), ...forRemoved].join("\n");
}

/** Returns the instruction for adding an entry, which differs if the spec already has the field. */
function pasted({ document }: WorkflowSpec, field: "moved" | "removed", entry: string, remark = ""): string {
  const { spec } = document.value as { readonly spec: object };
  return field in spec ? `add to spec.${field}${remark}:\n  ${entry}` : `add to spec${remark}:\n${field}:\n  ${entry}`;
}

/** Returns the entry of `removed` to paste. */
function removedEntry({ name, resource, namespace, cluster, deletion }: RememberedDependent): string {
  const kind =
    typeof resource === "string"
      ? resource
      : `{ ${Object.entries(resource)
          .map(([field, value]) => `${field}: ${String(value)}`)
          .join(", ")} }`;
  const fields = [
    `resource: ${kind}`,
    ...(namespace === undefined ? [] : [`namespace: ${namespace}`]),
    ...(cluster === undefined ? [] : [`cluster: ${cluster}`]),
    `deletion: ${resource === EXTERNAL || deletion === "orphan" ? "orphan" : "ordered"}`,
  ];
  return `${name}: { ${fields.join(", ")} }`;
}

function controllerGone({ name, dependents }: GoneController): Diagnostic {
  const names = dependents.map((each) => each.name).join(", ");
  return {
    ...UNSTATED_REMOVAL.violation,
    message: `controller ${quote(name)} was removed, but objects of its dependents may still exist in clusters: ${names}`,
    hint: [
      "to delete them, keep the controller until they are deleted, with only its primary and these fields under spec:",
      "dependents: {}",
      "removed:",
      ...dependents.map((each) => `  ${removedEntry(each)}`),
      `to keep them, run once: gen-operator generate --forget ${name}`,
    ].join("\n"),
  };
}

// Without a manifest, a leftover stub is the only evidence of the dependent, and does not tell its kind.
function checkStub({ name, file }: StubWitness, controller: ResolvedController): Diagnostic[] {
  const { spec, dependents, removed } = controller;
  const known = [
    ...dependents.map((each) => each.name),
    ...removed.map((each) => each.name),
    ...spec.moved.map(({ from }) => from),
  ];
  if (known.some((each) => isCalled(each, name))) return [];
  const message = `${file} belongs to a dependent that is not in the workflow, and src/generated does not record its kind`;
  return [
    {
      ...UNSTATED_REMOVAL.violation,
      message,
      ...spec.document.keyAt(["spec", "dependents"]),
      hint: [
        "restore src/generated/.gen-operator.json from version control, list the dependent under moved or removed,",
        "or delete the file if none of its objects exists",
      ].join("\n"),
    },
  ];
}

// File names are in kebab-case.
function isCalled(name: string, file: string): boolean {
  const letters = (text: string) => text.replaceAll("-", "").toLowerCase();
  return letters(name) === letters(file);
}
