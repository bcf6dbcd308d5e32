import type { ResourceModel } from "../../model/project-model.js";
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
 * A kind keeps its name unless other groups or versions have it too; then the storage version keeps it within a group, and all groups
 * put theirs in front. So a name depends on what shares it and on nothing else.
 */
export function nameResources(resources: readonly ResourceModel[]): ReadonlyMap<ResourceModel, ResourceName> {
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
    const suffix = resource === preferredOf(versions) ? "" : pascalCase(resource.version);
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

function preferredOf(versions: readonly ResourceModel[]): ResourceModel | undefined {
  return versions.find(({ isStorage }) => isStorage) ?? versions[0];
}
