import { isKubernetes, type ProjectModel, type ResourceModel } from "../../model/project-model.js";
import { classNameOf, kebabCase, pascalCase } from "../naming.js";

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
 * otherwise one of a dependent, otherwise the storage version; all groups put theirs in front. So code of the user keeps its names when the
 * controller moves to another version.
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
    const prefix = isShared ? pascalCase(resource.group || "core") : "";
    const versions = resources.filter(({ kind, group }) => kind === resource.kind && group === resource.group);
    const suffix = resource === preferredOf(versions, [primaries, used]) ? "" : pascalCase(resource.version);
    const exportName = prefix + className + suffix;
    names.set(resource, { className, exportName, localName: exportName, module: moduleOf(resource) });
  }
  return apartFromInputs(names);
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
