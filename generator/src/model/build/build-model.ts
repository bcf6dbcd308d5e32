import { hasErrors, type Diagnostic, type SourcePosition } from "../../diagnostic.js";
import type { BuiltinKinds } from "../../input/crd/builtin-kinds.js";
import type { Crd } from "../../input/crd/crd.js";
import { RunParts, type PartMemory } from "../../parts/part-memory.js";
import type { ExternalFile } from "../../input/read-external-files.js";
import type { DependentSpec, ExternalSpec, UntypedKindSpec, WorkflowSpec } from "../../input/workflow-spec.js";
import { buildController } from "./build-controller.js";
import { createExpressionParser } from "../expression/expression.js";
import type {
  ControllerModel,
  ExpressionModel,
  LocateExpression,
  ProjectModel,
  ResourceModel,
} from "../project-model.js";
import { NO_MEMORY, type ProjectMemory } from "../project-memory.js";
import { usedKindsOf } from "../used-kinds.js";
import { buildCatalog, parseKind, type ResourceCatalog } from "./resource-catalog.js";
import type { ResolvedController, ResolvedProject, Rule } from "./resolved-project.js";
import { checkAllEvents } from "../rules/watches/all-events.js";
import { checkBuiltinCondition } from "../rules/conditions/builtin-condition.js";
import { checkCachePath } from "../rules/watches/cache-path.js";
import { checkCollidingName } from "../rules/names/colliding-name.js";
import { checkConditionExpression } from "../rules/conditions/condition-expression.js";
import { checkConditionField } from "../rules/conditions/condition-field.js";
import { checkCleanupPolicy } from "../rules/dependents/cleanup-policy.js";
import { checkCleanupInput } from "../rules/graph/cleanup-input.js";
import { checkConditionalDependency } from "../rules/graph/conditional-dependency.js";
import { checkConstantCondition } from "../rules/conditions/constant-condition.js";
import { checkDeletionOrder } from "../rules/graph/deletion-order.js";
import { checkDependencyCycle } from "../rules/graph/dependency-cycle.js";
import { checkDependentNamespace } from "../rules/dependents/dependent-namespace.js";
import { checkDependentOption } from "../rules/dependents/dependent-option.js";
import { checkDependentSource } from "../rules/dependents/dependent-source.js";
import { checkDuplicateController } from "../rules/names/duplicate-controller.js";
import { checkDuplicateKind } from "../rules/kinds/duplicate-kind.js";
import { checkExternalState } from "../rules/dependents/external-state.js";
import { checkExternalType } from "../rules/dependents/external-type.js";
import { checkFormerName } from "../rules/names/former-name.js";
import { checkFieldSelector } from "../rules/watches/field-selector.js";
import { checkItemDependency } from "../rules/graph/item-dependency.js";
import { checkForeignNamespace } from "../rules/rights/foreign-namespace.js";
import { checkLabelSelector } from "../rules/watches/label-selector.js";
import { checkMappingScope } from "../rules/watches/mapping-scope.js";
import { checkOwnerCluster } from "../rules/dependents/owner-cluster.js";
import { checkOwnerNamespace } from "../rules/dependents/owner-namespace.js";
import { checkMovedDependent } from "../rules/history/moved-dependent.js";
import { checkUnhandledRename } from "../rules/history/unhandled-rename.js";
import { checkUnstatedRemoval } from "../rules/history/unstated-removal.js";
import { checkImmutableKind } from "../rules/dependents/immutable-kind.js";
import { checkReleasedField } from "../rules/dependents/released-field.js";
import { checkReference } from "../rules/dependents/reference.js";
import { checkRemovedDependent } from "../rules/history/removed-dependent.js";
import { checkReservedName } from "../rules/names/reserved-name.js";
import { checkPowerfulRight } from "../rules/rights/powerful-right.js";
import { checkSameObject } from "../rules/dependents/same-object.js";
import { checkUnqualifiedFinalizer } from "../rules/names/unqualified-finalizer.js";
import { checkSharedFinalizer } from "../rules/names/shared-finalizer.js";
import { checkStatusConditions } from "../rules/kinds/status-conditions.js";
import { checkUnconvertedVersions } from "../rules/kinds/unconverted-version.js";
import { checkUnknownDependent } from "../rules/graph/unknown-dependent.js";
import { checkUnknownKind } from "../rules/kinds/unknown-kind.js";

/** What a model is built from. */
export interface ModelInput {
  /** The name of the package. Default: operator */
  readonly packageName?: string;
  readonly crds: readonly Crd[];
  readonly workflows: readonly WorkflowSpec[];
  readonly builtin: BuiltinKinds;
  /** The files that external dependents name. Default: none. */
  readonly externalFiles?: ReadonlyMap<string, ExternalFile>;
  /** What the last generation had. Default: nothing is known of one */
  readonly memory?: ProjectMemory;
  /** What earlier runs came to. Default: nothing. */
  readonly parts?: PartMemory;
}

/** A model, or the problems of the input. */
export interface BuiltModel {
  /** There unless a diagnostic is an error. */
  readonly model?: ProjectModel;
  readonly diagnostics: readonly Diagnostic[];
  readonly locate: LocateExpression;
}

const RULES: readonly Rule[] = [
  checkDuplicateController,
  checkFormerName,
  checkUnknownKind,
  checkUnknownDependent,
  checkItemDependency,
  checkDependencyCycle,
  checkDependentOption,
  checkReleasedField,
  checkImmutableKind,
  checkDependentSource,
  checkReference,
  checkExternalType,
  checkExternalState,
  checkDependentNamespace,
  checkOwnerNamespace,
  checkOwnerCluster,
  checkSameObject,
  checkDeletionOrder,
  checkRemovedDependent,
  checkMovedDependent,
  checkUnhandledRename,
  checkUnstatedRemoval,
  checkBuiltinCondition,
  checkConditionField,
  checkConditionalDependency,
  checkCleanupInput,
  checkCleanupPolicy,
  checkStatusConditions,
  checkSharedFinalizer,
  checkUnqualifiedFinalizer,
  checkLabelSelector,
  checkFieldSelector,
  checkMappingScope,
  checkAllEvents,
  checkCachePath,
  checkReservedName,
  checkCollidingName,
];

/** What is looked at once nothing else is wrong: it is a matter of the whole spec. */
const REVIEWS: readonly Rule[] = [checkPowerfulRight, checkForeignNamespace];

/** Builds the model of a project: resolves the names, checks all rules, orders the graphs. */
export async function buildModel({
  packageName = "operator",
  crds,
  workflows,
  builtin,
  externalFiles = new Map<string, ExternalFile>(),
  memory = NO_MEMORY,
  parts = new RunParts(),
}: ModelInput): Promise<BuiltModel> {
  const catalog = buildCatalog(crds, builtin);
  const controllers = workflows.map((spec) => resolveController(spec, { catalog, externalFiles }));
  const project: ResolvedProject = { catalog, controllers, memory };
  const parse = createExpressionParser(parts);
  const rules = [...RULES, checkConstantCondition(parts), checkConditionExpression(parse)];
  const diagnostics = [
    ...checkDuplicateKind(crds),
    ...checkUnconvertedVersions(crds, project, parts),
    ...rules.flatMap((rule) => rule(project)),
  ];
  const positions = new Map<ExpressionModel, (offset: number) => SourcePosition>();
  const locate: LocateExpression = (expression, offset) => positions.get(expression)?.(offset);
  if (hasErrors(diagnostics)) return { diagnostics, locate };
  const findKind = (kind: string | UntypedKindSpec): ResourceModel => {
    const resource = find(kind, catalog);
    if (resource === undefined) throw new Error(`the kind ${JSON.stringify(kind)} was not checked`);
    return resource;
  };
  const built = project.controllers.map((controller) => buildController(controller, { parse, positions, findKind }));
  const model = Object.freeze({ packageName, resources: resourcesOf(catalog, built), controllers: built });
  return { model, diagnostics: [...diagnostics, ...REVIEWS.flatMap((rule) => rule(project))], locate };
}

interface Lookups {
  readonly catalog: ResourceCatalog;
  readonly externalFiles: ReadonlyMap<string, ExternalFile>;
}

function resolveController(spec: WorkflowSpec, { catalog, externalFiles }: Lookups): ResolvedController {
  const primary = find(spec.primary, catalog);
  const member = <Spec extends { readonly resource?: string | UntypedKindSpec }>(
    list: string,
    name: string,
    own: Spec,
  ) => {
    const found = own.resource === undefined ? undefined : find(own.resource, catalog);
    const path = ["spec", list, name];
    return { name, spec: own, path, ...(found === undefined ? {} : { resource: found }) };
  };
  return {
    spec,
    ...(primary === undefined ? {} : { primary }),
    dependents: [...spec.dependents].map(([name, dependent]) => {
      const { type, schema, desiredType, state } = dependent.external ?? {};
      const stateResource = state?.resource === undefined ? undefined : find(state.resource, catalog);
      const file = externalFiles.get(type ?? schema ?? "");
      const desiredFile = externalFiles.get(desiredType ?? "");
      const stateFile = externalFiles.get(state?.type ?? "");
      return {
        ...member("dependents", name, dependent.ref === undefined ? dependent : { ...dependent, mode: "readOnly" }),
        ...(stateResource === undefined ? {} : { stateResource }),
        ...(file === undefined ? {} : { file }),
        ...(desiredFile === undefined ? {} : { desiredFile }),
        ...(stateFile === undefined ? {} : { stateFile }),
        isSelected: isSelected(dependent, spec),
      };
    }),
    eventSources: [...spec.eventSources].map(([name, source]) => member("eventSources", name, source)),
    removed: [...spec.removed].map(([name, removed]) => member("removed", name, removed)),
  };
}

// With a state, the kept ids tell which resources are its own. A read-only dependent may see all.
function isSelected({ external }: DependentSpec, { dependents }: WorkflowSpec): boolean {
  const isAmbiguous = (each: ExternalSpec | undefined) => each?.state === undefined && each?.capabilities?.length !== 0;
  if (external?.eventSource === undefined || !isAmbiguous(external)) return false;
  const users = [...dependents.values()].filter(({ external: other }) => other?.eventSource === external.eventSource);
  return users.filter((each) => isAmbiguous(each.external)).length > 1;
}

function find(kind: string | UntypedKindSpec, catalog: ResourceCatalog): ResourceModel | undefined {
  return typeof kind === "string" ? catalog.find(parseKind(kind)) : catalog.untyped(kind);
}

function resourcesOf({ custom }: ResourceCatalog, controllers: readonly ControllerModel[]): readonly ResourceModel[] {
  const typed = controllers.flatMap(usedKindsOf).filter(({ isUntyped }) => isUntyped !== true);
  return Object.freeze([...new Set([...custom, ...typed])].sort(compareResources));
}

/** Compares by group, version and kind; the core group comes first. */
function compareResources(left: ResourceModel, right: ResourceModel): number {
  for (const part of ["group", "version", "kind"] as const)
    if (left[part] !== right[part]) return left[part] < right[part] ? -1 : 1;
  return 0;
}
