import type { ResourceModel } from "../../model/project-model.js";
import { nameOrThrow, type ControllerNames } from "../controller-names.js";
import { callDoc, fieldsOf } from "../print/code.js";
import { printImport, type ImportedName } from "../print/declarations.js";
import type { Doc } from "../print/layout.js";
import { specifierOf, type ResourceName } from "../resource/resource-name.js";

/** Prints what stands for a kind in the wiring: its class, or a call that describes it by its name. */
export function resourceDoc(resource: ResourceModel, { resources }: ControllerNames): Doc {
  return resource.isUntyped === true ? untypedDoc(resource) : nameOrThrow(resources, resource).localName;
}

/** Prints a call that describes a kind by its name. */
export function untypedDoc({ group, version, kind, plural, scope }: ResourceModel): Doc {
  const apiVersion = group === "" ? version : `${group}/${version}`;
  return callDoc("untypedResource", [], fieldsOf({ apiVersion, kind, plural, scope }));
}

/** Returns what describes a kind by its name, if any of the kinds has no class. */
export function untypedValues(used: Iterable<ResourceModel>): "untypedResource"[] {
  return [...used].some(({ isUntyped }) => isUntyped === true) ? ["untypedResource"] : [];
}

/** Prints the imports of the classes that kinds have, each by the name that it has in the files of a controller. */
export function importClasses(used: Iterable<ResourceModel>, { resources }: ControllerNames): string[] {
  const classes = [...used].filter(({ isUntyped }) => isUntyped !== true);
  const imported = classes.map((resource) => nameOrThrow(resources, resource));
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
