import type { ImportDeclarationStructure } from "ts-morph";
import { loadLibrary } from "../model/library.js";
import type { ControllerModel, ExpressionModel, FunctionModel, ResourceModel } from "../model/project-model.js";
import { nameOrThrow, sourceNamesOf, type ControllerNames } from "./controller-names.js";
import {
  needsFunctions,
  renderEventSources,
  renderInboundSources,
  runtimeValuesOf,
  usesMapper,
} from "./emit-event-sources.js";
import { filteredOf, hasFunctions, renderFilters } from "./filtered.js";
import type { OutputFile } from "./output-file.js";
import { printLine } from "./print-value.js";
import { inputNameOf, type ResourceName } from "./resource-name.js";
import { codegenModule, runtimeModule } from "./runtime-symbols.js";
import type { SourcePrinter } from "./source-file.js";

const { StructureKind, VariableDeclarationKind } = loadLibrary("ts-morph");

/** Emits the definition of a controller: its workflow, the user's reconciler, the settings and event sources of the spec. */
export function emitController(
  controller: ControllerModel,
  names: ControllerNames,
  source: SourcePrinter,
): Promise<OutputFile> {
  const { name, settings } = controller;
  const filters = renderFilters(controller.filters, names.primary);
  const eventSources = renderEventSources(controller, names);
  const stated = Object.entries(settings).filter(([, value]) => value !== undefined);
  const options = [
    `name: ${JSON.stringify(name)}`,
    `workflow: ${names.workflow}`,
    "reconciler",
    ...stated.map(([key, value]) => `${key}: ${printLine(value)}`),
    ...(filters === undefined ? [] : [`filters: ${filters}`]),
    ...(eventSources === undefined ? [] : [`eventSources: ${eventSources}`]),
    ...renderIndexes(controller),
  ];
  const runtimeValues = runtimeValuesOf(controller);
  const resources = resourceImports(controller, names);
  return source.print(`src/generated/${names.folder}/controller.ts`, [
    ...(runtimeValues.length > 0 ? [importLine(runtimeValues.join(", "), runtimeModule)] : []),
    importLine("defineController", codegenModule),
    `import type { ControllerDefinition } from "${codegenModule}";`,
    ...userImports(controller, names),
    importLine("reconciler", `../../${names.folder}/reconciler.js`),
    ...resources,
    ...typeImport(controller, names, resources),
    importLine(names.workflow, "./workflow.js"),
    ...renderInboundSources(controller, names),
    {
      kind: StructureKind.VariableStatement,
      isExported: true,
      declarationKind: VariableDeclarationKind.Const,
      leadingTrivia: `\n/** The controller of ${names.primary} objects. */\n`,
      declarations: [
        {
          name: names.controller,
          type: "ControllerDefinition",
          initializer: `defineController({ ${options.join(", ")} })`,
        },
      ],
    },
  ]);
}

function renderIndexes({ indexes }: ControllerModel): string[] {
  if (indexes === undefined) return [];
  const parts = Object.entries(indexes).map(([name, own]) => `${name}: indexes.${own.name}`);
  return [`indexes: { ${parts.join(", ")} }`];
}

function userImports({ eventSources, filters, indexes }: ControllerModel, { folder }: ControllerNames): string[] {
  const named = eventSources.filter(needsFunctions).map(sourceNamesOf);
  const usesFilters =
    hasFunctions(filters) || eventSources.some((source) => source.kind === "informer" && hasFunctions(source.filters));
  return [
    ...named.map(({ module, file }) => `import * as ${module} from "../../${folder}/event-sources/${file}.js";`),
    ...(usesFilters ? [`import * as filters from "../../${folder}/filters.js";`] : []),
    ...(indexes === undefined ? [] : [`import * as indexes from "../../${folder}/indexes.js";`]),
  ];
}

// The classes are values here: mappers need that of the primary, and watches those of event sources.
function resourceImports(
  { eventSources, primary }: ControllerModel,
  { resources }: ControllerNames,
): ImportDeclarationStructure[] {
  const informers = eventSources.filter((source) => source.kind === "informer");
  const used = new Set([
    ...(informers.some(({ mapping }) => usesMapper(mapping)) ? [primary] : []),
    ...informers.map(({ resource }) => resource),
  ]);
  return [...used]
    .map((resource) => nameOrThrow(resources, resource))
    .map(({ className, localName, module }) => ({
      kind: StructureKind.ImportDeclaration,
      moduleSpecifier: `../${module}.js`,
      namedImports: [{ name: className, ...(className === localName ? {} : { alias: localName }) }],
    }));
}

/** Returns the import of the types that expressions and event sources name, except for imported classes. */
function typeImport(
  controller: ControllerModel,
  names: ControllerNames,
  imported: readonly ImportDeclarationStructure[],
) {
  const filtered = filteredOf(controller, names).filter(
    ({ path, filters }) => !path.startsWith("dependents.") && Object.values(filters).some(namesObjects),
  );
  const types = new Set([
    ...filtered.map(({ objectType }) => objectType),
    ...controller.eventSources.flatMap((source) => (source.kind === "inbound" ? [sourceNamesOf(source).resource] : [])),
  ]);
  const hasPrimary = imported.some(({ moduleSpecifier }) =>
    moduleSpecifier.endsWith(`${nameOrThrow(names.resources, controller.primary).module}.js`),
  );
  if (hasPrimary) types.delete(names.primary);
  return types.size > 0 ? [`import type { ${[...types].sort().join(", ")} } from "./types.js";`] : [];
}

function namesObjects(filter: ExpressionModel | FunctionModel): boolean {
  return filter.kind === "when" && filter.names.length > 0;
}

/** Emits the index of all that is generated: the controllers and the classes. */
export function emitIndex(
  controllers: readonly ControllerNames[],
  resources: ReadonlyMap<ResourceModel, ResourceName>,
  source: SourcePrinter,
): Promise<OutputFile> {
  return source.print("src/generated/index.ts", [
    ...(controllers.length > 0 ? controllerLines(controllers) : []),
    "\n// Resources",
    ...[...resources.values()]
      .sort(byExportName)
      .flatMap(({ className, exportName, module }) => [
        `export { ${renamed(className, exportName)} } from "./${module}.js";`,
        `export type { ${renamed(inputNameOf(className), inputNameOf(exportName))} } from "./${module}.js";`,
      ]),
  ]);
}

function byExportName(left: ResourceName, right: ResourceName): number {
  return left.exportName < right.exportName ? -1 : 1;
}

function controllerLines(controllers: readonly ControllerNames[]): string[] {
  const names = controllers.map(({ controller }) => controller);
  return [
    `import type { ControllerDefinition } from "${codegenModule}";`,
    ...controllers.map(({ controller, folder }) => importLine(controller, `./${folder}/controller.js`)),
    "\n// Controllers",
    `export { ${names.join(", ")} };`,
    "\n/** All controllers of the project. */",
    `export const controllers: readonly ControllerDefinition[] = [${names.join(", ")}];`,
  ];
}

function renamed(name: string, alias: string): string {
  return name === alias ? name : `${name} as ${alias}`;
}

function importLine(name: string, module: string): string {
  return `import { ${name} } from "${module}";`;
}
