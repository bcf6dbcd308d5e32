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
  /** The module below `src/generated`, without extension: `resources/apps/v1/deployment`. */
  readonly module: string;
}

/** Returns the name of what `create` and `desired` take. */
export function inputNameOf(className: string): string {
  return `${className}Input`;
}

/** Returns the module of a resource below `src/generated`. */
export function moduleOfResource({ group, version, kind }: ResourceModel): string {
  return `resources/${group === "" ? "core" : group}/${version}/${kebabCase(kind)}`;
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
    names.set(resource, { className, exportName, localName: exportName, module: moduleOfResource(resource) });
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
