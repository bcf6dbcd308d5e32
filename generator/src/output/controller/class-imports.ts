import type { ResourceModel } from "../../model/project-model.js";
import { nameOrThrow, type ControllerNames } from "../controller-names.js";
import { printImport, type ImportedName } from "../print/declarations.js";
import { specifierOf, type ResourceName } from "../resource/resource-name.js";

/** Prints the imports of classes, each by the name that it has in the files of a controller. */
export function importClasses(used: Iterable<ResourceModel>, { resources }: ControllerNames): string[] {
  const imported = [...used].map((resource) => nameOrThrow(resources, resource));
  return importsFrom(imported, ({ className, localName }) => [{ name: className, alias: localName }]);
}

/** Prints imports of what `namesOf` takes of each class: one for each module. */
export function importsFrom(
  resources: readonly ResourceName[],
  namesOf: (resource: ResourceName) => ImportedName[],
  isTypeOnly = false,
): string[] {
  const byModule = new Map<string, ImportedName[]>();
  for (const resource of resources) {
    const specifier = specifierOf(resource, "../");
    byModule.set(specifier, [...(byModule.get(specifier) ?? []), ...namesOf(resource)]);
  }
  return [...byModule].map(([specifier, names]) => printImport(names, specifier, isTypeOnly));
}
