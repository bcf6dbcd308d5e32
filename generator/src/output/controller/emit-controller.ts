import type { ControllerModel, ExpressionModel, FunctionModel, ResourceModel } from "../../model/project-model.js";
import { sourceNamesOf, type ControllerNames } from "../controller-names.js";
import { kindsIn } from "./builtin-condition.js";
import { importClasses, untypedDoc, untypedValues } from "./class-imports.js";
import {
  eventSourcesDoc,
  needsFunctions,
  printInboundSources,
  runtimeValuesOf,
  usesMapper,
} from "./emit-event-sources.js";
import { filteredOf, filtersDoc, hasFunctions } from "./filtered.js";
import { generatedFile, type OutputFile } from "../files/output-file.js";
import { arrayDoc, field, fieldsOf, objectDoc, textField } from "../print/code.js";
import {
  printConstant,
  printExport,
  printExportFrom,
  printImport,
  printNamespaceImport,
} from "../print/declarations.js";
import { classNameOf, pascalCase } from "../naming.js";
import type { Doc } from "../print/layout.js";
import { inputNameOf, specifierOf, type ResourceName } from "../resource/resource-name.js";
import { codegenModule, runtimeModule } from "../runtime-symbols.js";

/** Emits the definition of a controller: its workflow, the user's reconciler if there is one, the settings and event sources of the spec. */
export function emitController(
  controller: ControllerModel,
  names: ControllerNames,
  hasReconciler: boolean,
  inputs: readonly string[] = [],
): OutputFile {
  const { name, settings } = controller;
  const filters = filtersDoc(controller.filters, names.primary);
  const eventSources = eventSourcesDoc(controller, names);
  const options = [
    ...fieldsOf({ name }),
    textField("workflow", names.workflow),
    ...(hasReconciler ? ["reconciler"] : []),
    ...fieldsOf({ ...settings }),
    ...(inputs.length === 0 ? [] : fieldsOf({ inputs })),
    ...(filters === undefined ? [] : [field("filters", filters)]),
    ...(eventSources === undefined ? [] : [field("eventSources", eventSources)]),
    ...indexesOf(controller),
  ];
  const runtimeValues = runtimeValuesOf(controller);
  const resources = importedResources(controller);
  const imports = [
    ...(runtimeValues.length > 0 ? [printImport(runtimeValues, runtimeModule)] : []),
    printImport(["defineController", ...untypedValues(resources)], codegenModule),
    printImport(["ControllerDefinition"], codegenModule, true),
    ...userImports(controller, names),
    ...(hasReconciler ? [printImport(["reconciler"], `../../${names.folder}/reconciler.js`)] : []),
    ...importClasses(resources, names),
    ...typeImport(controller, names, resources),
    printImport([names.workflow], "./workflow.js"),
  ];
  const definition: Doc = ["defineController(", objectDoc(options, true), ")"];
  return generatedFile(`src/generated/${names.folder}/controller.ts`, [
    imports.join("\n"),
    ...printInboundSources(controller, names),
    `/** The controller of ${names.primary} objects. */\n${printConstant(names.controller, definition, "ControllerDefinition")}`,
  ]);
}

function indexesOf({ indexes }: ControllerModel): Doc[] {
  if (indexes === undefined) return [];
  return [
    field("indexes", objectDoc(Object.entries(indexes).map(([name, own]) => textField(name, `indexes.${own.name}`)))),
  ];
}

function userImports({ eventSources, filters, indexes }: ControllerModel, { folder }: ControllerNames): string[] {
  const named = eventSources.filter(needsFunctions);
  const usesFilters =
    hasFunctions(filters) || eventSources.some((source) => source.kind === "informer" && hasFunctions(source.filters));
  return [
    ...named.map((source) => {
      const { module, file } = sourceNamesOf(source);
      const path = `../../${folder}/event-sources/${file}.js`;
      return source.kind === "informer"
        ? printNamespaceImport(module, path)
        : printImport([{ name: "source", alias: module }], path);
    }),
    ...(usesFilters ? [printNamespaceImport("filters", `../../${folder}/filters.js`)] : []),
    ...(indexes === undefined ? [] : [printNamespaceImport("indexes", `../../${folder}/indexes.js`)]),
  ];
}

// The classes are values here: mappers need that of the primary, and watches those of event sources.
function importedResources({ eventSources, primary }: ControllerModel): ReadonlySet<ResourceModel> {
  const informers = eventSources.filter((source) => source.kind === "informer");
  return new Set([
    ...(informers.some(({ mapping }) => usesMapper(mapping)) ? [primary] : []),
    ...informers.map(({ resource }) => resource),
    ...informers.flatMap(({ activationCondition: activation }) =>
      activation === undefined ? [] : kindsIn(activation),
    ),
  ]);
}

/** Returns the import of the types that expressions and event sources name, except for imported classes. */
function typeImport(
  controller: ControllerModel,
  names: ControllerNames,
  imported: ReadonlySet<ResourceModel>,
): string[] {
  const filtered = filteredOf(controller, names).filter(
    ({ path, filters }) => !path.startsWith("dependents.") && Object.values(filters).some(namesObjects),
  );
  const types = new Set([
    ...filtered.map(({ objectType }) => objectType),
    ...controller.eventSources.flatMap((source) => (source.kind === "inbound" ? [sourceNamesOf(source).resource] : [])),
  ]);
  if (imported.has(controller.primary)) types.delete(names.primary);
  return types.size > 0 ? [printImport([...types].sort(), "./types.js", true)] : [];
}

function namesObjects(filter: ExpressionModel | FunctionModel): boolean {
  return filter.kind === "when" && filter.names.length > 0;
}

/** Emits the index of all that is generated: the controllers, the classes, and what describes the kinds that have none. */
export function emitIndex(
  controllers: readonly ControllerNames[],
  resources: ReadonlyMap<ResourceModel, ResourceName>,
  untyped: readonly ResourceModel[] = [],
): OutputFile {
  const byModule = new Map<string, ResourceName[]>();
  for (const resource of [...resources.values()].sort(byExportName)) {
    const specifier = specifierOf(resource, "./");
    byModule.set(specifier, [...(byModule.get(specifier) ?? []), resource]);
  }
  return generatedFile("src/generated/index.ts", [
    ...(controllers.length > 0 ? controllerSections(controllers, untypedValues(untyped)) : []),
    ["// Resources", ...[...byModule].flatMap(([specifier, names]) => exportsFrom(specifier, names))].join("\n"),
    ...untypedSections(untyped, resources),
  ]);
}

// A kind that a spec describes by its name has no class, and must not change the name of one.
function untypedSections(
  untyped: readonly ResourceModel[],
  resources: ReadonlyMap<ResourceModel, ResourceName>,
): string[] {
  const taken = new Set([...resources.values()].flatMap(({ exportName }) => [exportName, inputNameOf(exportName)]));
  return untyped.map((resource) => {
    const { group, version, kind } = resource;
    const own = classNameOf(kind);
    const inGroup = pascalCase(group || "core") + own;
    const names = [own, inGroup, inGroup + pascalCase(version)];
    const name = names.find((each) => !taken.has(each)) ?? `${names[2]}${taken.size}`;
    taken.add(name);
    return `/** ${kind}, which the spec describes by its name. */\n${printConstant(name, untypedDoc(resource))}`;
  });
}

function byExportName(left: ResourceName, right: ResourceName): number {
  return left.exportName < right.exportName ? -1 : 1;
}

function exportsFrom(specifier: string, resources: readonly ResourceName[]): string[] {
  const classes = resources.map(({ className, exportName }) => ({ name: className, alias: exportName }));
  const inputs = classes.map(({ name, alias }) => ({ name: inputNameOf(name), alias: inputNameOf(alias) }));
  return [printExportFrom(classes, specifier), printExportFrom(inputs, specifier, true)];
}

function controllerSections(controllers: readonly ControllerNames[], values: readonly string[]): string[] {
  const names = controllers.map(({ controller }) => controller);
  const imports = [
    ...(values.length > 0 ? [printImport([...values], codegenModule)] : []),
    printImport(["ControllerDefinition"], codegenModule, true),
    ...controllers.map(({ controller, folder }) => printImport([controller], `./${folder}/controller.js`)),
  ];
  return [
    imports.join("\n"),
    `// Controllers\n${printExport(names)}`,
    `/** All controllers of the project. */\n${printConstant("controllers", arrayDoc(names), "readonly ControllerDefinition[]")}`,
  ];
}
