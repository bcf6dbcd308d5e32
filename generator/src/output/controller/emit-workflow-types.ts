import {
  isKubernetes,
  isReadOnly,
  ownOperationsOf,
  type ConditionModel,
  type ControllerModel,
  type DependentModel,
  type ResourceModel,
} from "../../model/project-model.js";
import { dependentNamesOf, nameOrThrow, type ControllerNames } from "../controller-names.js";
import { dependentTypesOf, detailedConditionsOf, isFetched, operationTypesOf } from "./dependent-types.js";
import { externalDependentExports, externalDependentImports, externalTypesOf } from "./emit-external.js";
import { hasOwnDeletionTypes, isAboutDeletionAlone } from "../conditions/condition-types.js";
import { importsFrom } from "./class-imports.js";
import { guardedPrimaryOf } from "./guarded-primary.js";
import { statusInputOf } from "../resource/input-view.js";
import { inputNameOf, specifierOf, type ResourceName } from "../resource/resource-name.js";
import {
  externalResourceImports,
  filterTypesOf,
  hasMapper,
  indexTypesOf,
  lookupTypesOf,
  reducedClassesOf,
  reducedKindsOf,
  sourceTypesOf,
} from "./emit-source-types.js";
import { dependentsTypesOf, secondaryTypesOf } from "./secondary-types.js";
import { schemasOf } from "../../model/schema/raw-schema.js";
import type { PartMemory } from "../../parts/part-memory.js";
import { generatedFile, type OutputFile } from "../files/output-file.js";
import { printAlias, printExport, printImport, printInterface, printNamespaceImport } from "../print/declarations.js";
import { objectOf, reference, type TypeNode } from "../print/type-node.js";
import { codegenModule, type RuntimeType } from "../runtime-symbols.js";

/** Emits the types that the user's functions have: one set for each dependent, and the reconciler's. */
export function emitWorkflowTypes(controller: ControllerModel, names: ControllerNames, parts: PartMemory): OutputFile {
  const imports = [
    importTypes(controller),
    ...resourceImports(names),
    ...externalResourceImports(controller, names.folder),
    ...externalDependentImports(controller, names.folder),
    ...conditionsImport(controller, names),
  ];
  return generatedFile(`src/generated/${names.folder}/types.ts`, [
    imports.join("\n"),
    resourceExports(controller, names),
    ...sourceTypesOf(controller, names),
    ...lookupTypesOf(controller, names),
    ...indexTypesOf(controller, names),
    ...filterTypesOf(controller, names),
    ...externalDependentExports(controller),
    ...dependentsTypesOf(controller, names),
    ...controller.dependents.flatMap((dependent) => typesOf(dependent, controller, names)),
    ...reconcilerTypesOf(controller, names, parts),
  ]);
}

function importTypes(controller: ControllerModel): string {
  const { dependents, workflow = {} } = controller;
  const objects = dependents.filter(isKubernetes);
  const operations = new Set(objects.flatMap(ownOperationsOf));
  const conditions = dependents.flatMap((each) => [usedConditionTypesOf(each), usedDeletionTypesOf(each)]);
  const existing = dependents.map(existingTypesOf);
  const isExplicit = workflow.invocation === "explicit";
  const isUntyped = usesUntyped(controller);
  const isFetchedForOne = dependents.some(
    (each) => !isKubernetes(each) && isFetched(each) && each.external.source.kind !== "poll",
  );
  const types: { readonly [K in RuntimeType]?: boolean } = {
    Condition: conditions.some(({ type }) => type),
    ConditionArguments: conditions.some((each) => each.arguments),
    CreateArguments: operations.has("create"),
    DeleteArguments: operations.has("delete"),
    DependentArguments: dependents.length > 0,
    DependentMatcher: objects.some(({ matcher }) => matcher !== undefined),
    Desired: dependents.some((dependent) => !isReadOnly(dependent)),
    DetailOf: detailedConditionsOf(controller).length > 0,
    ExistingArguments: existing.some((each) => each.arguments),
    ExistingCondition: existing.some(({ type }) => type),
    Explicit: isExplicit,
    ExplicitReconciler: isExplicit,
    FetchContext: isFetchedForOne,
    ItemsOf: dependents.some(({ bulk }) => bulk !== undefined),
    KeepsLess: reducedClassesOf(controller).length > 0,
    Kept: reducedKindsOf(controller).size > 0,
    MapperContext: hasMapper(controller),
    PrimaryPatch: detailedConditionsOf(controller).length > 0,
    ReconcileArguments: true,
    Reconciler: true,
    UntypedInput: isUntyped,
    UpdateArguments: operations.has("update"),
    UntypedResource: isUntyped,
    WorkflowInvocation: isExplicit,
  };
  const used = Object.entries(types).flatMap(([name, isUsed]) => (isUsed ? [name] : []));
  return printImport(used, codegenModule, true);
}

// The types are imported for this file and exported for the user's, who then need to import from here alone.
function resourceImports({ resources }: ControllerNames): string[] {
  const namesOf = ({ className, localName }: ResourceName) => [
    { name: className, alias: localName },
    { name: inputNameOf(className), alias: inputNameOf(localName) },
  ];
  return importsFrom([...resources.values()], namesOf, true);
}

function conditionsImport(controller: ControllerModel, { folder }: ControllerNames): string[] {
  if (detailedConditionsOf(controller).length === 0) return [];
  return [printNamespaceImport("conditions", `../../${folder}/conditions.js`, true)];
}

function resourceExports(controller: ControllerModel, { resources }: ControllerNames): string {
  const names = [
    ...[...resources.values()].flatMap(({ localName }) => [localName, inputNameOf(localName)]),
    ...(usesUntyped(controller) ? ["UntypedInput", "UntypedResource"] : []),
  ];
  return printExport(names, true);
}

/** Tells whether the functions of the user's see objects of a kind without a class. */
function usesUntyped({ dependents, eventSources }: ControllerModel): boolean {
  return [...dependents, ...eventSources].some((each) => "resource" in each && each.resource.isUntyped === true);
}

/** Tells which types of the conditions about the dependent anything refers to. */
function usedConditionTypesOf(dependent: DependentModel) {
  const { existing: _existing, deletePostcondition, ...others } = dependent.conditions;
  const isApart = deletePostcondition === undefined || hasOwnDeletionTypes(dependent);
  return usedTypesOf([...Object.values(others), ...(isApart ? [] : [deletePostcondition])]);
}

/** Tells which types of its own the deletePostcondition has that anything refers to. */
function usedDeletionTypesOf(dependent: DependentModel) {
  const { deletePostcondition } = dependent.conditions;
  return usedTypesOf(deletePostcondition === undefined || !hasOwnDeletionTypes(dependent) ? [] : [deletePostcondition]);
}

/** Tells which types of the condition `existing` anything refers to. */
function existingTypesOf({ conditions: { existing } }: DependentModel) {
  return usedTypesOf(existing === undefined ? [] : [existing]);
}

/** Tells which types conditions refer to: functions have both, expressions the arguments. */
function usedTypesOf(all: readonly ConditionModel[]) {
  const type = all.some(({ kind }) => kind === "function");
  const expression = all.some((each) => each.kind === "when" && each.names.length > 0);
  return { type, arguments: type || expression };
}

function typesOf(dependent: DependentModel, controller: ControllerModel, names: ControllerNames): string[] {
  const { primary } = names;
  const types = dependentNamesOf(dependent);
  const { live, wanted } = dependentTypesOf(dependent, names);
  const args = reference("DependentArguments", primary, types.secondary);
  const known = isAboutDeletionAlone(dependent) ? names.dependents : types.secondary;
  const deletion = usedDeletionTypesOf(dependent);
  const guarded = guardedPrimaryOf(dependent, controller, primary);
  const desired = reference("Desired", primary, types.secondary, wanted, ...(guarded === undefined ? [] : [guarded]));
  const used = usedConditionTypesOf(dependent);
  const existing = existingTypesOf(dependent);
  const ofExisting = [primary, types.secondary, live];
  const external = isKubernetes(dependent) ? undefined : externalTypesOf(dependent, names, desired);
  const aliases = [
    printAlias(types.arguments, args),
    ...(dependent.bulk === undefined ? [] : [printAlias(types.items, wanted)]),
    ...(isReadOnly(dependent) || external !== undefined ? [] : [printAlias(types.desired, desired)]),
    ...conditionAliases(used, [types.condition, types.conditionArguments], [primary, known, live]),
    ...conditionAliases(
      deletion,
      [types.deletionCondition, types.deletionArguments],
      [primary, names.dependents, live],
    ),
    ...(existing.arguments ? [printAlias(types.existingArguments, reference("ExistingArguments", ...ofExisting))] : []),
    ...(existing.type ? [printAlias(types.existing, reference("ExistingCondition", ...ofExisting))] : []),
    ...(!isKubernetes(dependent) || dependent.matcher === undefined
      ? []
      : [printAlias(types.matcher, reference("DependentMatcher", live))]),
    ...(external?.aliases ?? []),
  ];
  const { declarations, alias } = secondaryTypesOf(dependent, controller, names);
  return [
    ...declarations,
    [alias, ...aliases].join("\n"),
    ...(isKubernetes(dependent) ? operationTypesOf(dependent, names) : []),
    ...(external === undefined ? [] : [external.declaration]),
  ];
}

function conditionAliases(
  used: ReturnType<typeof usedTypesOf>,
  [condition, args]: readonly [condition: string, arguments_: string],
  [primary, secondary, live]: readonly [primary: string, secondary: string, live: string],
): string[] {
  return [
    ...(used.arguments ? [printAlias(args, reference("ConditionArguments", primary, secondary, live))] : []),
    ...(used.type
      ? [printAlias(condition, reference("Condition", primary, secondary, "Detail", live), "<Detail = never>")]
      : []),
  ];
}

function reconcilerTypesOf(controller: ControllerModel, names: ControllerNames, parts: PartMemory): string[] {
  const { eventSources, settings, workflow = {} } = controller;
  const { primary } = names;
  const status = statusTypeOf(recallStatus(controller.primary, parts), controller, names);
  const details = detailedConditionsOf(controller).length > 0 ? [names.details] : [];
  const args = reference("ReconcileArguments", primary, names.dependents, ...details);
  const input = details.length === 0 ? [] : [reference("PrimaryPatch", primary), ...details];
  const reconciler = reference("Reconciler", primary, names.dependents, status, ...input);
  const nodes = `keyof ${names.dependents}`;
  const own = eventSources.length > 0 ? reference("Exclude", nodes, `keyof ${names.sources}`) : nodes;
  const run = reference("WorkflowInvocation", own, ...details);
  const explicit = (type: TypeNode, wrapper: "Explicit" | "ExplicitReconciler") =>
    workflow.invocation === "explicit" ? reference(wrapper, type, run) : type;
  const whole = explicit(reconciler, "ExplicitReconciler");
  const aliases = [
    printAlias(names.reconcileArguments, explicit(args, "Explicit")),
    printAlias(names.reconciler, settings.onAllEvents ? reference("Omit", whole, '"cleanup"') : whole),
  ];
  return [...(details.length === 0 ? [] : [detailsOf(controller, names)]), aliases.join("\n")];
}

/** What the types of a controller say of the status of its primary. */
interface StatusFacts {
  readonly isThere: boolean;
  /** What a writer fills in, where that is not what a reader finds. */
  readonly input?: string;
}

function recallStatus(primary: ResourceModel, parts: PartMemory): StatusFacts {
  const look = (): StatusFacts => {
    const input = statusInputOf(primary);
    const isThere = schemasOf(primary.schema, "properties").has("status");
    return { isThere, ...(input === undefined ? {} : { input }) };
  };
  const { digest, version } = primary;
  return digest === undefined ? look() : parts.recall("status", `${digest} ${version}`, look);
}

// What a reconciler writes of a status lacks what the API server fills in.
function statusTypeOf(
  { isThere, input }: StatusFacts,
  { primary }: ControllerModel,
  { resources, primary: localName }: ControllerNames,
): TypeNode {
  if (!isThere) return "never";
  if (input === undefined) return reference("NonNullable", `${localName}["status"]`);
  const module = specifierOf(nameOrThrow(resources, primary), "../");
  return `import(${JSON.stringify(module)}).${input}`;
}

function detailsOf(controller: ControllerModel, { details, primary }: ControllerNames): string {
  return printInterface({
    name: details,
    doc: `/** What the conditions of a ${primary} find besides whether they hold. */`,
    extends: [],
    members: detailedConditionsOf(controller).map(({ dependent, conditions }) => ({
      head: `readonly ${dependent}`,
      type: objectOf(
        Object.fromEntries(
          conditions.map((each) => [
            `readonly ${each.condition}`,
            reference("DetailOf", `typeof conditions.${each.function}`),
          ]),
        ),
      ),
    })),
  });
}
