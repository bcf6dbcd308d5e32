import type {
  ImportDeclarationStructure,
  InterfaceDeclarationStructure,
  TypeAliasDeclarationStructure,
} from "ts-morph";
import { loadLibrary } from "../model/library.js";
import type { ControllerModel, DependentModel } from "../model/project-model.js";
import { dependentNamesOf, nameOrThrow, type ControllerNames } from "./controller-names.js";
import { inputNameOf } from "./emit-resource.js";
import {
  externalResourceImports,
  filterTypesOf,
  isReduced,
  lookupTypesOf,
  sourceTypesOf,
} from "./emit-source-types.js";
import type { OutputFile } from "./output-file.js";
import { codegenModule, type RuntimeType } from "./runtime-symbols.js";
import type { SourcePrinter, Statements } from "./source-file.js";

const { StructureKind } = loadLibrary("ts-morph");

/** Emits the types that the user's functions have: one set for each dependent, and the reconciler's. */
export function emitWorkflowTypes(
  controller: ControllerModel,
  names: ControllerNames,
  source: SourcePrinter,
): Promise<OutputFile> {
  return source.print(`src/generated/${names.folder}/types.ts`, [
    importTypes(controller),
    ...resourceImports(names),
    ...externalResourceImports(controller, names.folder),
    ...resourceExports(names),
    ...sourceTypesOf(controller, names),
    ...lookupTypesOf(controller, names),
    ...filterTypesOf(controller, names),
    ...controller.dependents.flatMap((dependent) => dependentTypesOf(dependent, controller, names)),
    ...reconcilerTypesOf(controller, names),
  ]);
}

function importTypes(controller: ControllerModel): ImportDeclarationStructure {
  const { dependents } = controller;
  const reduced = isReduced(controller);
  const forFunctions: RuntimeType[] = reduced ? [] : ["Condition", "Desired"];
  const forDependents: RuntimeType[] = ["ConditionArguments", "DependentArguments", ...forFunctions];
  const forReconciler: RuntimeType[] = ["ReconcileArguments", "Reconciler"];
  return {
    kind: StructureKind.ImportDeclaration,
    isTypeOnly: true,
    moduleSpecifier: codegenModule,
    namedImports: [
      ...(dependents.length > 0 ? forDependents : []),
      ...(reduced ? (["Kept", "Narrowed", "NarrowedReconciler"] satisfies RuntimeType[]) : []),
      ...forReconciler,
    ].sort(),
  };
}

// The types are imported for this file and exported for the user's, who then need to import from here alone.
function resourceImports({ resources }: ControllerNames): ImportDeclarationStructure[] {
  return [...resources.values()].map(({ className, localName, module }) => ({
    kind: StructureKind.ImportDeclaration,
    isTypeOnly: true,
    moduleSpecifier: `../${module}.js`,
    namedImports: [className, inputNameOf(className)].map((name) => aliased(name, className, localName)),
  }));
}

function aliased(name: string, className: string, localName: string): { name: string; alias?: string } {
  return className === localName ? { name } : { name, alias: localName + name.slice(className.length) };
}

function resourceExports({ resources }: ControllerNames): Statements & string[] {
  const names = [...resources.values()].flatMap(({ localName }) => [localName, inputNameOf(localName)]);
  return [`\nexport type { ${names.sort().join(", ")} };`];
}

function dependentTypesOf(
  dependent: DependentModel,
  controller: ControllerModel,
  { primary, resources, sources, lookups }: ControllerNames,
): (InterfaceDeclarationStructure | TypeAliasDeclarationStructure)[] {
  const { dependents, eventSources } = controller;
  const reduced = isReduced(controller);
  const narrowed = (type: string) => (reduced ? `Narrowed<${type}, ${lookups}>` : type);
  const types = dependentNamesOf(dependent);
  const input = inputNameOf(nameOrThrow(resources, dependent.resource).localName);
  return [
    {
      ...interfaceOf(
        types.secondary,
        `The live dependents as "${dependent.name}" sees them: what it waits for is there.`,
      ),
      ...(eventSources.length > 0 ? { extends: [sources] } : {}),
      properties: dependents.map(({ name, resource }) => {
        const isPresent = dependent.waitsFor.includes(name);
        const type = nameOrThrow(resources, resource).localName;
        return {
          name,
          isReadonly: true,
          hasQuestionToken: !isPresent,
          type: isPresent ? type : `${type} | undefined`,
        };
      }),
    },
    alias(types.arguments, narrowed(`DependentArguments<${primary}, ${types.secondary}>`)),
    alias(
      types.desired,
      reduced
        ? `(args: ${types.arguments}) => ${input} | Promise<${input}>`
        : `Desired<${primary}, ${types.secondary}, ${input}>`,
    ),
    alias(types.conditionArguments, narrowed(`ConditionArguments<${primary}, ${types.secondary}>`)),
    alias(
      types.condition,
      reduced
        ? `(args: ${types.conditionArguments}) => boolean | Promise<boolean>`
        : `Condition<${primary}, ${types.secondary}>`,
    ),
  ];
}

function reconcilerTypesOf(
  controller: ControllerModel,
  { primary, resources, ...names }: ControllerNames,
): (InterfaceDeclarationStructure | TypeAliasDeclarationStructure)[] {
  const { dependents, eventSources, settings } = controller;
  const { hasStatusSubresource, schema } = controller.primary;
  const properties = schema["properties"];
  const hasStatus =
    hasStatusSubresource && typeof properties === "object" && properties !== null && "status" in properties;
  const status = hasStatus ? `NonNullable<${primary}["status"]>` : "never";
  const reduced = isReduced(controller);
  const args = `ReconcileArguments<${primary}, ${names.dependents}>`;
  const whole = `Reconciler<${primary}, ${names.dependents}, ${status}>`;
  const reconciler = reduced ? `NarrowedReconciler<${whole}, ${names.lookups}>` : whole;
  return [
    {
      ...interfaceOf(
        names.dependents,
        `The live dependents of one ${primary}${eventSources.length > 0 ? ", and what the event sources know of it" : ""}.`,
      ),
      ...(eventSources.length > 0 ? { extends: [names.sources] } : {}),
      properties: dependents.map(({ name, resource }) => ({
        name,
        isReadonly: true,
        hasQuestionToken: true,
        type: `${nameOrThrow(resources, resource).localName} | undefined`,
      })),
    },
    alias(names.reconcileArguments, reduced ? `Narrowed<${args}, ${names.lookups}>` : args),
    alias(names.reconciler, settings.reconcilesOnAllEvents ? `Omit<${reconciler}, "cleanup">` : reconciler),
  ];
}

function interfaceOf(name: string, doc: string): InterfaceDeclarationStructure {
  return { kind: StructureKind.Interface, name, isExported: true, leadingTrivia: `\n/** ${doc} */\n` };
}

function alias(name: string, type: string): TypeAliasDeclarationStructure {
  return { kind: StructureKind.TypeAlias, name, type, isExported: true };
}
