import type { ImportDeclarationStructure } from "ts-morph";
import type { ConditionModel, ControllerModel, DependentModel } from "../model/project-model.js";
import { loadLibrary } from "../model/library.js";
import { conditionsOf } from "./conditions-of.js";
import { dependentNamesOf, nameOrThrow, type ControllerNames, type DependentNames } from "./controller-names.js";
import { hasFunctions, renderFilters } from "./filtered.js";
import type { OutputFile } from "./output-file.js";
import { printLine } from "./print-value.js";
import { builtinConditions, codegenModule, runtimeModule } from "./runtime-symbols.js";
import type { SourcePrinter } from "./source-file.js";

const { StructureKind, VariableDeclarationKind } = loadLibrary("ts-morph");

/** Emits the wiring of a workflow: one chain that declares, in an order in which the dependents can be created. */
export function emitWorkflow(
  controller: ControllerModel,
  names: ControllerNames,
  source: SourcePrinter,
): Promise<OutputFile> {
  const links = controller.dependents.map((dependent) => renderLink(dependent, names));
  return source.print(`src/generated/${names.folder}/workflow.ts`, [
    ...importsOf(controller, names),
    {
      kind: StructureKind.VariableStatement,
      isExported: true,
      declarationKind: VariableDeclarationKind.Const,
      leadingTrivia: `\n/** What ${names.primary} objects depend on. */\n`,
      declarations: [
        {
          name: names.workflow,
          initializer: `defineWorkflow${typeArgumentsOf(controller, names)}(${names.primary})${links.join("")}`,
        },
      ],
    },
  ]);
}

// The event sources are there besides the dependents, in whatever is called with them.
function typeArgumentsOf({ eventSources }: ControllerModel, { primary, sources }: ControllerNames): string {
  return eventSources.length === 0 ? "" : `<${primary}, ${sources}>`;
}

function renderLink(dependent: DependentModel, names: ControllerNames): string {
  const types = dependentNamesOf(dependent);
  const { namespace, labelSelector, fieldSelector } = dependent;
  const resource = nameOrThrow(names.resources, dependent.resource).localName;
  const filters = renderFilters(dependent.filters, resource);
  const stated = {
    ...(dependent.dependsOn.length > 0 ? { dependsOn: dependent.dependsOn } : {}),
    ...(namespace === undefined ? {} : { namespace }),
    ...(labelSelector === undefined ? {} : { labelSelector }),
    ...(fieldSelector === undefined ? {} : { fieldSelector }),
    ...(dependent.isGarbageCollected ? {} : { isGarbageCollected: false }),
  };
  const options = [
    `resource: ${resource}`,
    `desired: ${moduleNameOf(types)}.desired`,
    ...Object.entries(stated).map(([name, value]) => `${name}: ${printLine(value)}`),
    ...(filters === undefined ? [] : [`filters: ${filters}`]),
    ...conditionsOf(dependent).map(([name, condition]) => `${name}: ${renderCondition(condition, types)}`),
  ];
  return `\n.dependent(${JSON.stringify(dependent.name)}, {\n${options.join(",\n")} })`;
}

// A name of its own, so that a dependent called "ready" or "conditions" does not clash with an import.
function moduleNameOf({ name }: DependentNames): string {
  return `${name}Dependent`;
}

function renderCondition(condition: ConditionModel, { conditionArguments }: DependentNames): string {
  if (condition.kind === "builtin") return condition.name;
  if (condition.kind === "function") return `conditions.${condition.name}`;
  const { names, expression } = condition;
  if (names.length === 0) return `() => (\n${expression}\n)`;
  // The chain knows the dependents before this one; the named type knows all of them.
  const type = names.includes("secondary") ? `: ${conditionArguments}` : "";
  // On lines of its own, so that a comment at its end ends there; the formatter removes what is not needed.
  return `({ ${names.join(", ")} }${type}) => (\n${expression}\n)`;
}

function importsOf(controller: ControllerModel, names: ControllerNames): ImportDeclarationStructure[] {
  const { dependents, eventSources } = controller;
  // Dependents come before event sources, so the classes are those of the primary and the dependents.
  const used = new Set([controller.primary, ...dependents.map(({ resource }) => resource)]);
  const all = dependents.flatMap((dependent) =>
    conditionsOf(dependent).map(([, condition]) => ({ condition, types: dependentNamesOf(dependent) })),
  );
  const builtins = builtinConditions.filter((name) =>
    all.some(({ condition }) => condition.kind === "builtin" && condition.name === name),
  );
  const typed = all.filter(({ condition }) => condition.kind === "when" && condition.names.includes("secondary"));
  const importedTypes = new Set([
    ...typed.map(({ types }) => types.conditionArguments),
    ...(eventSources.length > 0 ? [names.sources] : []),
  ]);
  const user = `../../${names.folder}`;
  return [
    ...(builtins.length > 0 ? [named(runtimeModule, builtins)] : []),
    named(codegenModule, ["defineWorkflow"]),
    ...(all.some(({ condition }) => condition.kind === "function")
      ? [namespace(`${user}/conditions.js`, "conditions")]
      : []),
    ...(dependents.some(({ filters }) => hasFunctions(filters)) ? [namespace(`${user}/filters.js`, "filters")] : []),
    ...dependents
      .map(dependentNamesOf)
      .map((types) => namespace(`${user}/dependents/${types.file}.js`, moduleNameOf(types))),
    ...[...used]
      .map((resource) => nameOrThrow(names.resources, resource))
      .map(({ className, localName, module }) => ({
        ...named(`../${module}.js`, []),
        namedImports: [{ name: className, ...(className === localName ? {} : { alias: localName }) }],
      })),
    ...(importedTypes.size > 0 ? [{ ...named("./types.js", [...importedTypes]), isTypeOnly: true }] : []),
  ];
}

function named(moduleSpecifier: string, namedImports: string[]): ImportDeclarationStructure {
  return { kind: StructureKind.ImportDeclaration, moduleSpecifier, namedImports };
}

function namespace(moduleSpecifier: string, namespaceImport: string): ImportDeclarationStructure {
  return { kind: StructureKind.ImportDeclaration, moduleSpecifier, namespaceImport };
}
