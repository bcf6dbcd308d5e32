import type {
  ImportDeclarationStructure,
  InterfaceDeclarationStructure,
  PropertySignatureStructure,
  TypeAliasDeclarationStructure,
} from "ts-morph";
import { loadLibrary } from "../model/library.js";
import {
  isKubernetes,
  isReadOnly,
  ownOperationsOf,
  type ControllerModel,
  type DependentModel,
  type ResourceModel,
} from "../model/project-model.js";
import { dependentNamesOf, type ControllerNames } from "./controller-names.js";
import { alwaysThere, dependentTypesOf, detailedConditionsOf, isFetched, operationTypesOf } from "./dependent-types.js";
import { externalDependentExports, externalDependentImports, externalFunctionTypesOf } from "./emit-external.js";
import { inputNameOf } from "./resource-name.js";
import {
  externalResourceImports,
  filterTypesOf,
  hasMapper,
  indexTypesOf,
  isReduced,
  lookupTypesOf,
  sourceTypesOf,
} from "./emit-source-types.js";
import type { OutputFile } from "./output-file.js";
import { codegenModule, type RuntimeType } from "./runtime-symbols.js";
import type { SourcePrinter, Statements } from "./source-file.js";

const { StructureKind } = loadLibrary("ts-morph");

type Statement = InterfaceDeclarationStructure | TypeAliasDeclarationStructure;

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
    ...externalDependentImports(controller, names.folder),
    ...conditionsImport(controller, names),
    ...resourceExports(controller, names),
    ...sourceTypesOf(controller, names),
    ...lookupTypesOf(controller, names),
    ...indexTypesOf(controller, names),
    ...filterTypesOf(controller, names),
    ...externalDependentExports(controller),
    ...itemsOf(controller, names),
    ...controller.dependents.flatMap((dependent) => typesOf(dependent, controller, names)),
    ...reconcilerTypesOf(controller, names),
  ]);
}

function importTypes(controller: ControllerModel): ImportDeclarationStructure {
  const { dependents, workflow = {} } = controller;
  const objects = dependents.filter(isKubernetes);
  const operations = new Set(objects.flatMap(ownOperationsOf));
  const reduced = isReduced(controller);
  const isExplicit = workflow.invocation === "explicit";
  const isUntyped = objects.some(({ resource }) => resource.isUntyped === true);
  const isFetchedForOne = dependents.some(
    (each) => !isKubernetes(each) && isFetched(each) && each.external.source.kind !== "poll",
  );
  const types: { readonly [K in RuntimeType]?: boolean } = {
    Condition: dependents.length > 0 && !reduced,
    ConditionArguments: dependents.length > 0,
    ConditionResult: dependents.length > 0 && reduced,
    CreateArguments: operations.has("create"),
    DeleteArguments: operations.has("delete"),
    DependentArguments: dependents.length > 0,
    DependentMatcher: objects.some(({ matcher }) => matcher !== undefined),
    Desired: !reduced && dependents.some((dependent) => !isReadOnly(dependent)),
    DetailOf: detailedConditionsOf(controller).length > 0,
    Explicit: isExplicit,
    ExplicitReconciler: isExplicit,
    FetchContext: isFetchedForOne,
    ItemsOf: dependents.some(({ bulk }) => bulk !== undefined),
    Kept: reduced,
    MapperContext: hasMapper(controller),
    Narrowed: reduced,
    NarrowedReconciler: reduced,
    PrimaryPatch: detailedConditionsOf(controller).length > 0,
    ReconcileArguments: true,
    Reconciler: true,
    UntypedInput: isUntyped,
    UpdateArguments: operations.has("update"),
    UntypedResource: isUntyped,
    WorkflowInvocation: isExplicit,
  };
  return {
    kind: StructureKind.ImportDeclaration,
    isTypeOnly: true,
    moduleSpecifier: codegenModule,
    namedImports: Object.entries(types).flatMap(([name, isUsed]) => (isUsed ? [name] : [])),
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

function conditionsImport(controller: ControllerModel, { folder }: ControllerNames): ImportDeclarationStructure[] {
  if (detailedConditionsOf(controller).length === 0) return [];
  return [
    {
      kind: StructureKind.ImportDeclaration,
      isTypeOnly: true,
      moduleSpecifier: `../../${folder}/conditions.js`,
      namespaceImport: "conditions",
    },
  ];
}

function aliased(name: string, className: string, localName: string): { name: string; alias?: string } {
  return className === localName ? { name } : { name, alias: localName + name.slice(className.length) };
}

function resourceExports(controller: ControllerModel, { resources }: ControllerNames): Statements & string[] {
  const isUntyped = controller.dependents.some(
    (dependent) => isKubernetes(dependent) && dependent.resource.isUntyped === true,
  );
  const names = [
    ...[...resources.values()].flatMap(({ localName }) => [localName, inputNameOf(localName)]),
    ...(isUntyped ? ["UntypedInput", "UntypedResource"] : []),
  ];
  return [`\nexport type { ${names.sort().join(", ")} };`];
}

function typesOf(dependent: DependentModel, controller: ControllerModel, names: ControllerNames): Statement[] {
  const { primary, lookups } = names;
  const reduced = isReduced(controller);
  const narrowed = (type: string) => (reduced ? `Narrowed<${type}, ${lookups}>` : type);
  const types = dependentNamesOf(dependent);
  const { live, wanted } = dependentTypesOf(dependent, names);
  const result = "boolean | ConditionResult<Detail>";
  return [
    secondaryOf(dependent, controller, names),
    alias(types.arguments, narrowed(`DependentArguments<${primary}, ${types.secondary}>`)),
    ...(dependent.bulk === undefined ? [] : [alias(types.items, wanted)]),
    ...(isReadOnly(dependent)
      ? []
      : [
          alias(
            types.desired,
            reduced
              ? `(args: ${types.arguments}) => ${wanted} | Promise<${wanted}>`
              : `Desired<${primary}, ${types.secondary}, ${wanted}>`,
          ),
        ]),
    alias(types.conditionArguments, narrowed(`ConditionArguments<${primary}, ${types.secondary}, ${live}>`)),
    {
      ...alias(
        types.condition,
        reduced
          ? `(args: ${types.conditionArguments}) => ${result} | Promise<${result}>`
          : `Condition<${primary}, ${types.secondary}, Detail, ${live}>`,
      ),
      typeParameters: [{ name: "Detail", default: "never" }],
    },
    ...(isKubernetes(dependent)
      ? [
          ...(dependent.matcher === undefined ? [] : [alias(types.matcher, `DependentMatcher<${live}>`)]),
          ...operationTypesOf(dependent, names, narrowed).map(([name, type]) => alias(name, type)),
        ]
      : externalFunctionTypesOf(dependent, names).map(([name, type]) => alias(name, type))),
  ];
}

function secondaryOf(
  dependent: DependentModel,
  controller: ControllerModel,
  names: ControllerNames,
): InterfaceDeclarationStructure {
  const { secondary, name } = dependentNamesOf(dependent);
  return {
    ...interfaceOf(secondary, `The live dependents as "${name}" sees them: what it waits for is there.`),
    extends: alwaysThere(controller, names),
    properties: controller.dependents
      .filter(({ bulk }) => bulk === undefined)
      .map((other) => memberOf(other, names, dependent.waitsFor.includes(other.name))),
  };
}

function memberOf(dependent: DependentModel, names: ControllerNames, isPresent: boolean): PropertySignatureStructure {
  const { secondary } = dependentTypesOf(dependent, names);
  return {
    kind: StructureKind.PropertySignature,
    name: dependent.name,
    isReadonly: true,
    hasQuestionToken: !isPresent,
    type: isPresent ? secondary : `${secondary} | undefined`,
  };
}

// There may be no items of a bulk dependent, which is a record without fields.
function itemsOf({ dependents }: ControllerModel, names: ControllerNames): Statement[] {
  const bulk = dependents.filter((dependent) => dependent.bulk !== undefined);
  if (bulk.length === 0) return [];
  return [
    {
      ...interfaceOf(names.items, `The items of the bulk dependents of one ${names.primary}, by their keys.`),
      properties: bulk.map((dependent) => memberOf(dependent, names, true)),
    },
  ];
}

function reconcilerTypesOf(controller: ControllerModel, names: ControllerNames): Statement[] {
  const { dependents, eventSources, settings, workflow = {} } = controller;
  const { primary } = names;
  const status = hasStatus(controller.primary) ? `NonNullable<${primary}["status"]>` : "never";
  const details = detailedConditionsOf(controller).length > 0 ? names.details : undefined;
  const types = `${primary}, ${names.dependents}`;
  const args = `ReconcileArguments<${types}${details === undefined ? "" : `, ${details}`}>`;
  const input = details === undefined ? "" : `, PrimaryPatch<${primary}>, ${details}`;
  const reconciler = `Reconciler<${types}, ${status}${input}>`;
  const narrow = (type: string, wrapper: "Narrowed" | "NarrowedReconciler") =>
    isReduced(controller) ? `${wrapper}<${type}, ${names.lookups}>` : type;
  const nodes = `keyof ${names.dependents}`;
  const own = eventSources.length > 0 ? `Exclude<${nodes}, keyof ${names.sources}>` : nodes;
  const run = `WorkflowInvocation<${own}${details === undefined ? "" : `, ${details}`}>`;
  const explicit = (type: string, wrapper: "Explicit" | "ExplicitReconciler") =>
    workflow.invocation === "explicit" ? `${wrapper}<${type}, ${run}>` : type;
  const whole = explicit(narrow(reconciler, "NarrowedReconciler"), "ExplicitReconciler");
  return [
    {
      ...interfaceOf(
        names.dependents,
        `The live dependents of one ${primary}${eventSources.length > 0 ? ", and what the event sources know of it" : ""}.`,
      ),
      extends: alwaysThere(controller, names),
      properties: dependents
        .filter(({ bulk }) => bulk === undefined)
        .map((dependent) => memberOf(dependent, names, false)),
    },
    ...(details === undefined ? [] : [detailsOf(controller, names)]),
    alias(names.reconcileArguments, explicit(narrow(args, "Narrowed"), "Explicit")),
    alias(names.reconciler, settings.onAllEvents ? `Omit<${whole}, "cleanup">` : whole),
  ];
}

function hasStatus({ hasStatusSubresource, schema }: ResourceModel): boolean {
  const properties = schema["properties"];
  return hasStatusSubresource && typeof properties === "object" && properties !== null && "status" in properties;
}

function detailsOf(controller: ControllerModel, { details, primary }: ControllerNames): InterfaceDeclarationStructure {
  return {
    ...interfaceOf(details, `What the conditions of a ${primary} find besides whether they hold.`),
    properties: detailedConditionsOf(controller).map(({ dependent, conditions }) => ({
      name: dependent,
      isReadonly: true,
      type: `{ ${conditions
        .map((each) => `readonly ${each.condition}: DetailOf<typeof conditions.${each.function}>`)
        .join("; ")} }`,
    })),
  };
}

function interfaceOf(name: string, doc: string): InterfaceDeclarationStructure {
  return { kind: StructureKind.Interface, name, isExported: true, leadingTrivia: `\n/** ${doc} */\n` };
}

function alias(name: string, type: string): TypeAliasDeclarationStructure {
  return { kind: StructureKind.TypeAlias, name, type, isExported: true };
}
