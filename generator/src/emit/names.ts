import { hash } from "node:crypto";
import {
  type ControllerModel,
  type FilterName,
  type ProjectModel,
  type ResourceModel,
  isKubernetes,
  usedKindsOf,
} from "../model/project-model.js";
import { type Doc, type ImportSymbol, callDoc, fieldsOf, symbolDoc, valueFrom } from "./print.js";
import { codegenValues, runtimeTypes } from "./runtime-symbols.js";

/** The longest name of a type; deeply nested schemas exceed any limit that a reader would set. */
const MAX_NAME_LENGTH = 100;

/** Returns the words of a name in PascalCase; what is inside a word keeps its case. */
export function pascalCase(text: string): string {
  // Most names are one word.
  if (/^[A-Za-z0-9]*$/.test(text)) return text.charAt(0).toUpperCase() + text.slice(1);
  return text
    .split(/[^A-Za-z0-9]+/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join("");
}

/** Returns a name in camelCase: `WebPage` becomes `webPage`, `HTTPRoute` becomes `httpRoute`. */
export function camelCase(text: string): string {
  return pascalCase(text).replace(/^[A-Z]+(?=[A-Z][a-z]|[0-9]|$)|^[A-Z]/, (start) => start.toLowerCase());
}

/** Returns a name in kebab-case: `WebPage` becomes `web-page`, `HTTPRoute` becomes `http-route`. */
export function kebabCase(text: string): string {
  return text
    .replace(/([a-z0-9])([A-Z])/g, "$1-$2")
    .replace(/([A-Z]+)([A-Z][a-z])/g, "$1-$2")
    .replace(/[^A-Za-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .toLowerCase();
}

// Names of objects are made of it, such as that of a Service, which is 63 characters long at most.
const MAX_OPERATOR_NAME_LENGTH = 50;

/** Returns the name of the operator that a package holds, a DNS label: `@acme/Page_Operator` is `page-operator`. */
export function operatorNameOf(packageName: string): string {
  const name = kebabCase(packageName.slice(packageName.lastIndexOf("/") + 1));
  // A Service must not begin with a digit.
  const label = /^[a-z]/.test(name) ? name : `operator-${name}`;
  return label.slice(0, MAX_OPERATOR_NAME_LENGTH).replace(/-+$/, "");
}

/**
 * Returns the name of the class of a kind.
 *
 * A kind may start in lower case, and could then be a reserved word; it may have hyphens; or it may be called like a type that generated files import or name.
 */
export function classNameOf(kind: string): string {
  const name = pascalCase(kind);
  return IMPORTED.has(name) ? `${name}Resource` : name;
}

/** The types of the language that generated files and stubs name. */
const OF_THE_LANGUAGE = [
  "AbortSignal",
  "Awaited",
  "Error",
  "Exclude",
  "Extract",
  "Map",
  "NonNullable",
  "Object",
  "Omit",
  "Partial",
  "Promise",
  "ReadonlyArray",
  "ReadonlyMap",
  "Record",
];

const IMPORTED: ReadonlySet<string> = new Set([...runtimeTypes, ...OF_THE_LANGUAGE]);

/** Hands out names that are unique within a file and depend on nothing but the path that each one stands for. */
export class NameAllocator {
  readonly #taken: Set<string>;

  constructor(reserved: Iterable<string>) {
    this.#taken = new Set(reserved);
  }

  /** Returns `preferred`, or a name with a hash of `path` if that is too long or belongs to another path. */
  allocate(preferred: string, path: readonly string[]): string {
    const isFree = preferred.length <= MAX_NAME_LENGTH && !this.#taken.has(preferred);
    const name = isFree ? preferred : `${preferred.slice(0, MAX_NAME_LENGTH - 9)}_${hashOf(path)}`;
    this.#taken.add(name);
    return name;
  }
}

function hashOf(path: readonly string[]): string {
  return hash("sha256", JSON.stringify(path), "hex").slice(0, 8);
}

/** Where a generated class is, and what it is called in files that use several. */
export interface ResourceName {
  /** The name of the class in its own file. */
  readonly className: string;
  /** The name that no other class of the project has, by which the index exports it. */
  readonly exportName: string;
  /** The name in the files of one controller: the same, unless they declare a type of that name. */
  readonly localName: string;
  /** The package of a built-in kind, or the module below `src/generated`, without extension: `resources/example.com/v1/page`. */
  readonly module: string;
}

/** The package that has the built-in kinds. */
const KINDS_PACKAGE = "@gen-operator/kinds";

/** Returns what an import names to get a class; `base` is the way from the importing file to `src/generated`, such as `../`. */
export function specifierOf({ module }: ResourceName, base: string): string {
  return module.startsWith("@") ? module : `${base}${module}.js`;
}

/** Returns the name of what `create` and `desired` take. */
export function inputNameOf(className: string): string {
  return `${className}Input`;
}

/** Returns the module of a resource below `src/generated`. */
export function modulePathOf(resource: ResourceModel): string {
  return `resources/${groupPathOf(resource)}/${kebabCase(resource.kind)}`;
}

/** Returns the group and version of a kind as a path: `apps/v1`, or `core/v1`. */
export function groupPathOf({ group, version }: Pick<ResourceModel, "group" | "version">): string {
  return `${group === "" ? "core" : group}/${version}`;
}

/** Tells whether the class of a kind is generated; a package has the others. */
export function hasOwnClass({ isCustom, isDescribed = false }: ResourceModel): boolean {
  return isCustom || isDescribed;
}

function moduleOf(resource: ResourceModel): string {
  return hasOwnClass(resource) ? modulePathOf(resource) : `${KINDS_PACKAGE}/${groupPathOf(resource)}`;
}

/**
 * Names the classes of a project so that no two are alike.
 *
 * A kind keeps its name unless other groups or versions have it too. Within a group, the version that a controller has as its primary keeps it,
 * otherwise one of a dependent, otherwise the storage version. Groups put theirs in front, but for the one whose kind is the primary of a
 * controller. So code of the user keeps its names when the controller moves to another version, or gets a dependent of the same kind: a
 * `Service` of Knative that needs a `Service` of the core group.
 */
export function nameResources({
  resources,
  controllers = [],
}: Pick<ProjectModel, "resources"> & Partial<Pick<ProjectModel, "controllers">>): ReadonlyMap<
  ResourceModel,
  ResourceName
> {
  const primaries = new Set(controllers.map(({ primary }) => primary));
  const used = new Set(
    controllers.flatMap(({ dependents }) => dependents.filter(isKubernetes).map(({ resource }) => resource)),
  );
  const groupsByClass = new Map<string, Set<string>>();
  for (const { kind, group } of resources) {
    const groups = groupsByClass.get(classNameOf(kind)) ?? new Set();
    groupsByClass.set(classNameOf(kind), groups.add(group));
  }
  const names = new Map<ResourceModel, ResourceName>();
  for (const resource of resources) {
    const className = classNameOf(resource.kind);
    const isShared = (groupsByClass.get(className)?.size ?? 0) > 1;
    const isPlain = !isShared || groupOfPrimary(primaries, className) === resource.group;
    const prefix = isPlain ? "" : pascalCase(resource.group || "core");
    const versions = resources.filter(({ kind, group }) => kind === resource.kind && group === resource.group);
    const suffix = resource === preferredOf(versions, [primaries, used]) ? "" : pascalCase(resource.version);
    const exportName = prefix + className + suffix;
    names.set(resource, { className, exportName, localName: exportName, module: moduleOf(resource) });
  }
  return apartFromInputs(names);
}

// Of several groups none has a better right to the name.
function groupOfPrimary(primaries: ReadonlySet<ResourceModel>, className: string): string | undefined {
  const groups = new Set(
    [...primaries].filter(({ kind }) => classNameOf(kind) === className).map(({ group }) => group),
  );
  return groups.size === 1 ? [...groups][0] : undefined;
}

// A kind "FooInput" beside a kind "Foo", whose input type has that name.
function apartFromInputs(names: ReadonlyMap<ResourceModel, ResourceName>): ReadonlyMap<ResourceModel, ResourceName> {
  const inputs = new Set([...names.values()].map(({ exportName }) => `${exportName}Input`));
  return new Map(
    [...names].map(([resource, name]) => {
      if (!inputs.has(name.exportName)) return [resource, name];
      const exportName = `${name.exportName}Resource`;
      return [resource, { ...name, exportName, localName: exportName }];
    }),
  );
}

// Several controllers may use several versions.
function preferredOf(
  versions: readonly ResourceModel[],
  uses: readonly ReadonlySet<ResourceModel>[],
): ResourceModel | undefined {
  const isStored = (version: ResourceModel) => version.isStorage;
  for (const use of uses) {
    const known = versions.filter((version) => use.has(version));
    if (known.length > 0) return known.find(isStored) ?? known[0];
  }
  return versions.find(isStored) ?? versions[0];
}

/** What the files of a controller call things, and where the files are. */
export interface ControllerNames {
  /** `webpage`: the folder below `src` and `src/generated`. */
  readonly folder: string;
  /** `WebPage`: the class of the primary in the files of this controller. */
  readonly primary: string;
  /** `webPageWorkflow` */
  readonly workflow: string;
  /** `webPageController` */
  readonly controller: string;
  /** `WebPageDependents` */
  readonly dependents: string;
  /** `WebPageSources`: what the event sources know of one primary. */
  readonly sources: string;
  /** `WebPageItems`: the items of the bulk dependents. */
  readonly items: string;
  /** `WebPageLookups`: what looking resources up by their class gives, where that is less than all of them. */
  readonly lookups: string;
  /** `WebPageDetails`: what the conditions find besides whether they hold. */
  readonly details: string;
  /** `WebPageIndex`: returns the values under which an index finds a primary. */
  readonly index: string;
  /** `WebPageReconciler` */
  readonly reconciler: string;
  /** `WebPageReconcileArguments` */
  readonly reconcileArguments: string;
  /** The classes that the controller uses, the primary's first. */
  readonly resources: ReadonlyMap<ResourceModel, ResourceName>;
}

/** Names what the files of a controller contain; `others` are all controllers of the project. */
export function controllerNamesOf(
  model: ControllerModel,
  all: ReadonlyMap<ResourceModel, ResourceName>,
  others: readonly ControllerModel[],
): ControllerNames {
  const { name, primary, dependents, eventSources } = model;
  const used = usedKindsOf(model).filter(({ isUntyped }) => isUntyped !== true);
  const declared = new Set([
    ...dependents.flatMap((dependent) => Object.values(dependentNamesOf(dependent))),
    ...eventSources.flatMap((source) => Object.values(sourceNamesOf(source))),
    ...[...dependents, ...eventSources].flatMap(({ name: member }) => Object.values(filterNamesOf(member))),
  ]);
  const resources = new Map(used.map((resource) => [resource, unlike(declared, nameOrThrow(all, resource))]));
  const local = nameOrThrow(resources, primary).localName;
  // The kind says more than the name of the controller, unless several controllers have it.
  const isAlone = others.filter((other) => other.primary === primary).length === 1;
  const prefix = camelCase(isAlone ? local : name);
  return {
    folder: kebabCase(name),
    primary: local,
    workflow: `${prefix}Workflow`,
    controller: `${prefix}Controller`,
    dependents: `${local}Dependents`,
    sources: `${local}Sources`,
    items: `${local}Items`,
    lookups: `${local}Lookups`,
    details: `${local}Details`,
    index: `${local}Index`,
    reconciler: `${local}Reconciler`,
    reconcileArguments: `${local}ReconcileArguments`,
    resources,
  };
}

// A kind "WebCondition" beside a dependent "web", whose condition's type has that name.
function unlike(declared: ReadonlySet<string>, name: ResourceName): ResourceName {
  return declared.has(name.localName) || declared.has(`${name.localName}Input`)
    ? { ...name, localName: `${name.localName}Resource` }
    : name;
}

/** What the files of a controller call one dependent. */
interface DependentNames {
  /** `configMap`, as in the spec. */
  readonly name: string;
  /** `config-map`: the name of the user's file. */
  readonly file: string;
  /** `ServiceNeeds`: what it waits for. */
  readonly needs: string;
  readonly secondary: string;
  readonly arguments: string;
  readonly desired: string;
  readonly items: string;
  readonly condition: string;
  readonly conditionArguments: string;
  /** `WebDeletionCondition`: the type of its deletePostcondition, where other conditions see more. */
  readonly deletionCondition: string;
  readonly deletionArguments: string;
  /** `WebExisting`: the type of a function that decides whether an object is adopted. */
  readonly existing: string;
  readonly existingArguments: string;
  readonly matcher: string;
  /** `DeploymentOperations`: the own functions that write an object. */
  readonly operations: string;
  /** `AccountExternal`: the functions that find and change an external resource. */
  readonly external: string;
  /** What an external dependent consists of. */
  readonly resource: string;
  /** What is desired, where that has a type of its own. */
  readonly draft: string;
  /** `pricesSource`: where the user's code hands over resources that something else brings. */
  readonly source: string;
  /** What is kept of a resource, where that is more than an id. */
  readonly kept: string;
}

/** Names the types of a dependent. */
export function dependentNamesOf({ name }: { readonly name: string }): DependentNames {
  const type = pascalCase(name);
  return {
    name,
    file: kebabCase(name),
    needs: `${type}Needs`,
    secondary: `${type}Secondary`,
    arguments: `${type}Arguments`,
    desired: `${type}Desired`,
    items: `${type}Items`,
    condition: `${type}Condition`,
    conditionArguments: `${type}ConditionArguments`,
    deletionCondition: `${type}DeletionCondition`,
    deletionArguments: `${type}DeletionArguments`,
    existing: `${type}Existing`,
    existingArguments: `${type}ExistingArguments`,
    matcher: `${type}Matcher`,
    operations: `${type}Operations`,
    external: `${type}External`,
    resource: `${type}Resource`,
    draft: `${type}Draft`,
    source: `${name}Source`,
    kept: `${type}Kept`,
  };
}

/** What the files of a controller call one event source. */
interface SourceNames {
  /** `pods`, as in the spec. */
  readonly name: string;
  /** `pods`: the name of the user's file. */
  readonly file: string;
  /** `podsFunctions`: the functions of the user's file, or its constant `source`. */
  readonly module: string;
  /** `podsSource`: the source itself, where the user's code has to reach it. */
  readonly source: string;
  readonly resource: string;
  readonly mapper: string;
  readonly primaryMapper: string;
  /** `ServersSource`: the functions that find the resources of a source outside Kubernetes. */
  readonly functions: string;
}

/** Names the types of an event source. */
export function sourceNamesOf({ name }: { readonly name: string }): SourceNames {
  const type = pascalCase(name);
  return {
    name,
    file: kebabCase(name),
    module: `${name}Functions`,
    source: `${name}Source`,
    resource: `${type}Resource`,
    mapper: `${type}Mapper`,
    primaryMapper: `${type}PrimaryMapper`,
    functions: `${type}Source`,
  };
}

/** Names the types of the filters of the primary, a dependent or an event source, by the kind of change. */
export function filterNamesOf(owner: string): { readonly [K in FilterName]: string } {
  const type = pascalCase(owner);
  return {
    onAdd: `${type}Filter`,
    onUpdate: `${type}UpdateFilter`,
    onDelete: `${type}DeleteFilter`,
    generic: `${type}Filter`,
  };
}

/** Returns the name of a resource that the project must have. */
export function nameOrThrow(names: ReadonlyMap<ResourceModel, ResourceName>, resource: ResourceModel): ResourceName {
  const name = names.get(resource);
  if (name === undefined) throw new Error(`${resource.kind} is used by a workflow but is no resource of the model`);
  return name;
}

/** Prints what stands for a kind in the wiring: its class, or a call that describes it by its name. `place` is that of the import. */
export function resourceDoc(resource: ResourceModel, { resources }: ControllerNames, place = CLASS_PLACE): Doc {
  if (resource.isUntyped === true) return untypedDoc(resource);
  return symbolDoc(classSymbol(nameOrThrow(resources, resource), place));
}

/** Where the imports of classes stand in the wiring of a controller. */
export const CLASS_PLACE = 100;

/** Returns the class of a kind, by the name that it has in the files of a controller. */
export function classSymbol(resource: ResourceName, place = CLASS_PLACE): ImportSymbol {
  return valueFrom(specifierOf(resource, "../"), resource.className, resource.localName, place);
}

/** Prints a call that describes a kind by its name. */
export function untypedDoc({ group, version, kind, plural, scope }: ResourceModel): Doc {
  const apiVersion = group === "" ? version : `${group}/${version}`;
  return callDoc(symbolDoc(codegenValues.untypedResource), [], fieldsOf({ apiVersion, kind, plural, scope }));
}
