import { loadLibrary } from "../model/library.js";
import type { ControllerModel, ResourceModel } from "../model/project-model.js";
import type { ControllerNames } from "./controller-names.js";
import { inputNameOf } from "./emit-resource.js";
import type { OutputFile } from "./output-file.js";
import { printLine } from "./print-value.js";
import type { ResourceName } from "./resource-name.js";
import { codegenModule } from "./runtime-symbols.js";
import type { SourcePrinter } from "./source-file.js";

const { StructureKind, VariableDeclarationKind } = loadLibrary("ts-morph");

/** Emits the definition of a controller: its workflow, the user's reconciler and the settings of the spec. */
export function emitController(
  { name, settings }: ControllerModel,
  names: ControllerNames,
  source: SourcePrinter,
): Promise<OutputFile> {
  const stated = Object.entries(settings).filter(([, value]) => value !== undefined);
  const options = [
    `name: ${JSON.stringify(name)}`,
    `workflow: ${names.workflow}`,
    "reconciler",
    ...stated.map(([key, value]) => `${key}: ${printLine(value)}`),
  ];
  return source.print(`src/generated/${names.folder}/controller.ts`, [
    importLine("defineController", codegenModule),
    `import type { ControllerDefinition } from "${codegenModule}";`,
    importLine("reconciler", `../../${names.folder}/reconciler.js`),
    importLine(names.workflow, "./workflow.js"),
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
