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

/** Maximum length of a type name. Names in deeply nested schemas would be longer than readable. */
const MAX_NAME_LENGTH = 100;

/** Converts a name to PascalCase. The case within a word is preserved. */
export function pascalCase(text: string): string {
  // Fast path: most names are a single word.
  if (/^[A-Za-z0-9]*$/.test(text)) return text.charAt(0).toUpperCase() + text.slice(1);
  return text
    .split(/[^A-Za-z0-9]+/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join("");
}

/** Converts a name to camelCase: `WebPage` becomes `webPage`, `HTTPRoute` becomes `httpRoute`. */
export function camelCase(text: string): string {
  return pascalCase(text).replace(/^[A-Z]+(?=[A-Z][a-z]|[0-9]|$)|^[A-Z]/, (start) => start.toLowerCase());
}

/** Converts a name to kebab-case: `WebPage` becomes `web-page`, `HTTPRoute` becomes `http-route`. */
export function kebabCase(text: string): string {
  return text
    .replace(/([a-z0-9])([A-Z])/g, "$1-$2")
    .replace(/([A-Z]+)([A-Z][a-z])/g, "$1-$2")
    .replace(/[^A-Za-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .toLowerCase();
}

// Names of objects are derived from it, and the name of a Service has at most 63 characters.
const MAX_OPERATOR_NAME_LENGTH = 50;

/** Returns the name of the operator in a package, a DNS label: `page-operator` for `@acme/Page_Operator`. */
export function operatorNameOf(packageName: string): string {
  const name = kebabCase(packageName.slice(packageName.lastIndexOf("/") + 1));
  // The name of a Service must not start with a digit.
  const label = /^[a-z]/.test(name) ? name : `operator-${name}`;
  return label.slice(0, MAX_OPERATOR_NAME_LENGTH).replace(/-+$/, "");
}

/**
 * Returns the name of the class of a kind.
 *
 * The name of a kind may start in lower case, and so could be a reserved word, or it may contain hyphens. If it equals a type that generated files
 * import or use, the class gets the suffix `Resource`.
 */
export function classNameOf(kind: string): string {
  const name = pascalCase(kind);
  return IMPORTED.has(name) ? `${name}Resource` : name;
}

/** Global types that generated files and stubs use. */
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

/** Allocates names that are unique within a file. A name only depends on the preferred name, the path, and earlier allocations. */
export class NameAllocator {
  readonly #taken: Set<string>;

  constructor(reserved: Iterable<string>) {
    this.#taken = new Set(reserved);
  }

  /** Returns `preferred`, or a shortened name with a hash of `path` if it is too long or taken. */
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

/** The location and the names of a generated class. */
export interface ResourceName {
  /** Name of the class in its own file. */
  readonly className: string;
  /** Name that is unique in the project, under which the index exports the class. */
  readonly exportName: string;
  /** Name in the files of a controller: the exported name, unless a type of the controller has the same name. */
  readonly localName: string;
  /** Package of a built-in kind, or module below `src/generated` without extension: `resources/example.com/v1/page`. */
  readonly module: string;
}

/** The package of the built-in kinds. */
const KINDS_PACKAGE = "@gen-operator/kinds";

/** Returns the module specifier for importing a class. `base` is the relative path from the importing file to `src/generated`, for example `../`. */
export function specifierOf({ module }: ResourceName, base: string): string {
  return module.startsWith("@") ? module : `${base}${module}.js`;
}

/** Returns the name of the input type of a class, which `create` takes and `desired` returns. */
export function inputNameOf(className: string): string {
  return `${className}Input`;
}

/** Returns the module of a kind below `src/generated`. */
export function modulePathOf(resource: ResourceModel): string {
  return `resources/${groupPathOf(resource)}/${kebabCase(resource.kind)}`;
}

/** Returns the group and version of a kind as a path, for example `apps/v1` or `core/v1`. */
export function groupPathOf({ group, version }: Pick<ResourceModel, "group" | "version">): string {
  return `${group === "" ? "core" : group}/${version}`;
}

/** Returns whether the class of a kind is generated into the project instead of imported from a package. */
export function hasOwnClass({ isCustom, isDescribed = false }: ResourceModel): boolean {
  return isCustom || isDescribed;
}

function moduleOf(resource: ResourceModel): string {
  return hasOwnClass(resource) ? modulePathOf(resource) : `${KINDS_PACKAGE}/${groupPathOf(resource)}`;
}

/**
 * Assigns unique names to the classes of a project.
 *
 * A kind keeps its name unless another group or version has it too. Within a group, the version that is the primary of a controller keeps the name,
 * or else a version that a dependent has, or else the storage version; other versions get a suffix. If several groups have the kind, they get a
 * prefix, except for the only group whose kind is the primary of a controller. User code therefore keeps its names when the controller moves to
 * another version, or gets a dependent with the same kind of another group, such as a `Service` of Knative with a `Service` of the core group.
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

// If primaries of several groups have the name, none takes precedence.
function groupOfPrimary(primaries: ReadonlySet<ResourceModel>, className: string): string | undefined {
  const groups = new Set(
    [...primaries].filter(({ kind }) => classNameOf(kind) === className).map(({ group }) => group),
  );
  return groups.size === 1 ? [...groups][0] : undefined;
}

// Renames a kind "FooInput" next to a kind "Foo", whose input type has the same name.
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

// Controllers may use different versions of a kind.
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

/** Names that the files of a controller use, and their folder. */
export interface ControllerNames {
  /** `webpage`: folder below `src` and `src/generated`. */
  readonly folder: string;
  /** `WebPage`: class of the primary in the files of the controller. */
  readonly primary: string;
  /** `webPageWorkflow` */
  readonly workflow: string;
  /** `webPageController` */
  readonly controller: string;
  /** `WebPageDependents` */
  readonly dependents: string;
  /** `WebPageSources`: the event sources in `secondary`. */
  readonly sources: string;
  /** `WebPageItems`: the items of the bulk dependents. */
  readonly items: string;
  /** `WebPageLookups`: results of lookups by class, for kinds that are not cached in full. */
  readonly lookups: string;
  /** `WebPageDetails`: the details that conditions return. */
  readonly details: string;
  /** `WebPageIndex`: type of the functions that return the keys of a primary in an index. */
  readonly index: string;
  /** `WebPageReconciler` */
  readonly reconciler: string;
  /** `WebPageReconcileArguments` */
  readonly reconcileArguments: string;
  /** Classes that the controller uses, the primary's first. */
  readonly resources: ReadonlyMap<ResourceModel, ResourceName>;
}

/** Returns the names that the files of a controller use. `others` are all controllers of the project. */
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
  // Name constants after the kind of the primary, unless several controllers share it.
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

// Renames a kind "WebCondition" next to a dependent "web", whose condition type has the same name.
function unlike(declared: ReadonlySet<string>, name: ResourceName): ResourceName {
  return declared.has(name.localName) || declared.has(`${name.localName}Input`)
    ? { ...name, localName: `${name.localName}Resource` }
    : name;
}

/** Names of a dependent in the files of its controller. */
interface DependentNames {
  /** `configMap`, as in the spec. */
  readonly name: string;
  /** `config-map`: name of the user's file. */
  readonly file: string;
  /** `ServiceNeeds`: the dependencies that are guaranteed to be present. */
  readonly needs: string;
  readonly secondary: string;
  readonly arguments: string;
  readonly desired: string;
  readonly items: string;
  readonly condition: string;
  readonly conditionArguments: string;
  /** `WebDeletionCondition`: type of the deletePostcondition, if it differs from that of other conditions. */
  readonly deletionCondition: string;
  readonly deletionArguments: string;
  /** `WebExisting`: type of the function that decides whether an existing object is adopted. */
  readonly existing: string;
  readonly existingArguments: string;
  readonly matcher: string;
  /** `DeploymentOperations`: the own functions for writing an object. */
  readonly operations: string;
  /** `AccountExternal`: the functions of an external dependent. */
  readonly external: string;
  /** `AccountResource`: type of the external resource. */
  readonly resource: string;
  /** `AccountDraft`: type of the desired resource, if it differs from the live one. */
  readonly draft: string;
  /** `pricesSource`: the channel to which user code pushes inbound resources. */
  readonly source: string;
  /** `AccountKept`: type of the kept state, if it is more than an id. */
  readonly kept: string;
}

/** Returns the names of a dependent. */
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

/** Names of an event source in the files of its controller. */
interface SourceNames {
  /** `pods`, as in the spec. */
  readonly name: string;
  /** `pods`: name of the user's file. */
  readonly file: string;
  /** `podsFunctions`: import of the user's file, or of its constant `source`. */
  readonly module: string;
  /** `podsSource`: the source, if user code pushes resources to it. */
  readonly source: string;
  readonly resource: string;
  readonly mapper: string;
  readonly primaryMapper: string;
  /** `ServersSource`: type of the functions of an external event source. */
  readonly functions: string;
}

/** Returns the names of an event source. */
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

/** Returns the names of the filter types of the primary, a dependent, or an event source, by filter. */
export function filterNamesOf(owner: string): { readonly [K in FilterName]: string } {
  const type = pascalCase(owner);
  return {
    onAdd: `${type}Filter`,
    onUpdate: `${type}UpdateFilter`,
    onDelete: `${type}DeleteFilter`,
    generic: `${type}Filter`,
  };
}

/** Returns the name of a kind that must be in the model. Throws if it is not. */
export function nameOrThrow(names: ReadonlyMap<ResourceModel, ResourceName>, resource: ResourceModel): ResourceName {
  const name = names.get(resource);
  if (name === undefined) throw new Error(`${resource.kind} is used by a workflow but is no resource of the model`);
  return name;
}

/** Prints the reference to a kind in the wiring: its class, or a call that defines an untyped kind. `place` is the order of the import. */
export function resourceDoc(resource: ResourceModel, { resources }: ControllerNames, place = CLASS_PLACE): Doc {
  if (resource.isUntyped === true) return untypedDoc(resource);
  return symbolDoc(classSymbol(nameOrThrow(resources, resource), place));
}

/** Order of the imports of classes in the wiring of a controller. */
export const CLASS_PLACE = 100;

/** Returns the import of a class under its local name. */
export function classSymbol(resource: ResourceName, place = CLASS_PLACE): ImportSymbol {
  return valueFrom(specifierOf(resource, "../"), resource.className, resource.localName, place);
}

/** Prints the definition of an untyped kind. */
export function untypedDoc({ group, version, kind, plural, scope }: ResourceModel): Doc {
  const apiVersion = group === "" ? version : `${group}/${version}`;
  return callDoc(symbolDoc(codegenValues.untypedResource), [], fieldsOf({ apiVersion, kind, plural, scope }));
}
