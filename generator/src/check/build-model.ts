import { type Diagnostic, type SourcePosition, hasErrors, quote, subjectOfCrd } from "../diagnostic.js";
import { buildController } from "../model/build-controller.js";
import { CONDITION_NAMES, parseExpression } from "../model/expression.js";
import { NO_MEMORY, type ProjectMemory } from "../model/project-memory.js";
import {
  type ControllerModel,
  type ExpressionModel,
  type LocateExpression,
  type ProjectModel,
  type ResourceModel,
  usedKindsOf,
} from "../model/project-model.js";
import {
  type Check,
  type ResolvedController,
  type ResolvedProject,
  type ResourceCatalog,
  buildCatalog,
  parseKind,
} from "../model/resolved-project.js";
import type { Crd } from "../read/crd/read-crds.js";
import type { BuiltinKinds } from "../read/kinds.js";
import type { ExternalFile } from "../read/read-project.js";
import type {
  AcceptanceSpec,
  DependentSpec,
  ExternalSpec,
  UntypedKindSpec,
  WorkflowSpec,
} from "../read/workflow-spec.js";
import { type Stage, uncached } from "../stage.js";
import {
  checkBuiltinCondition,
  checkConditionExpression,
  checkConditionField,
  checkConstantCondition,
  decideExpression,
} from "./conditions.js";
import {
  checkCleanupPolicy,
  checkDependentOption,
  checkDependentSource,
  checkExternalState,
  checkExternalType,
  checkImmutableKind,
  checkReleasedField,
} from "./dependents.js";
import {
  checkCleanupInput,
  checkConditionalDependency,
  checkDeletionOrder,
  checkDependencyCycle,
  checkItemDependency,
  checkUnknownDependent,
} from "./graph.js";
import { checkMovedDependent, checkRemovedDependent, checkUnhandledRename, checkUnstatedRemoval } from "./history.js";
import {
  checkDuplicateKind,
  checkStatusConditions,
  checkUnconvertedVersions,
  checkUnknownKind,
  unconvertedVersionsOf,
} from "./kinds.js";
import {
  checkCollidingName,
  checkDuplicateController,
  checkFormerName,
  checkReservedName,
  checkSharedFinalizer,
  checkUnqualifiedFinalizer,
} from "./names.js";
import {
  checkDependentNamespace,
  checkForeignNamespace,
  checkOwnerCluster,
  checkOwnerNamespace,
  checkPowerfulRight,
  checkReference,
  checkSameObject,
  extraSubjectOf,
} from "./places.js";
import { UNUSED_ACCEPTANCE } from "./rules.js";
import {
  checkAllEvents,
  checkCachePath,
  checkFieldSelector,
  checkLabelSelector,
  checkMappingScope,
} from "./watches.js";

/** Input of {@link buildModel}. */
interface ModelInput {
  /** Name of the package. Default: operator */
  readonly packageName?: string;
  readonly crds: readonly Crd[];
  readonly workflows: readonly WorkflowSpec[];
  readonly builtin: BuiltinKinds;
  /** Type and schema files that external dependents reference. Default: none */
  readonly externalFiles?: ReadonlyMap<string, ExternalFile>;
  /** State of the last generation. Default: unknown */
  readonly memory?: ProjectMemory;
  /** Caches the results for expressions and schemas. Default: no cache */
  readonly stage?: Stage;
}

/** The model, or the problems found in the input. */
export interface BuiltModel {
  /** Absent if a diagnostic is an error. */
  readonly model?: ProjectModel;
  readonly diagnostics: readonly Diagnostic[];
  readonly locate: LocateExpression;
}

const CHECKS: readonly Check[] = [
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

/** Rules that run only if no other rule reports an error, because they judge the spec as a whole. */
const REVIEWS: readonly Check[] = [checkPowerfulRight, checkForeignNamespace];

/** Builds the model of a project: resolves names, checks all rules, and orders the graphs. */
export async function buildModel({
  packageName = "operator",
  crds,
  workflows,
  builtin,
  externalFiles = new Map<string, ExternalFile>(),
  memory = NO_MEMORY,
  stage = uncached,
}: ModelInput): Promise<BuiltModel> {
  const catalog = buildCatalog(crds, builtin);
  const controllers = workflows.map((spec) => resolveController(spec, { catalog, externalFiles }));
  const project: ResolvedProject = { catalog, controllers, memory };
  const parse = stage("expression", (text, names = CONDITION_NAMES) => [text, ...names], parseExpression);
  const decide = stage("constant", (when, absent = new Set()) => [when, ...[...absent].sort()], decideExpression);
  const compareVersions = stage(
    "unconverted",
    ({ digest }) => (digest === undefined ? undefined : [digest]),
    unconvertedVersionsOf,
  );
  const checks = [...CHECKS, checkConstantCondition(decide), checkConditionExpression(parse)];
  const diagnostics = [
    ...checkDuplicateKind(crds),
    ...checkUnconvertedVersions(crds, project, compareVersions),
    ...checks.flatMap((check) => check(project)),
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
  return { model, diagnostics: [...diagnostics, ...REVIEWS.flatMap((check) => check(project))], locate };
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

// With `state`, the stored ids identify the resources of a dependent. A read-only dependent may see all resources of its event source.
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

/** Compares by group, version, and kind; the core group sorts first. */
function compareResources(left: ResourceModel, right: ResourceModel): number {
  for (const part of ["group", "version", "kind"] as const)
    if (left[part] !== right[part]) return left[part] < right[part] ? -1 : 1;
  return 0;
}

/** A part of a spec that can accept warnings about itself. */
interface Subject {
  readonly label: string;
  /** Values of `about` that identify this subject in a diagnostic. */
  readonly about: ReadonlySet<string | undefined>;
  readonly path: readonly (string | number)[];
  readonly accept: readonly AcceptanceSpec[];
}

/** Removes the diagnostics that their subjects accept, and adds a warning for each acceptance that matches no diagnostic. */
export function acceptWarnings(diagnostics: readonly Diagnostic[], workflows: readonly WorkflowSpec[]): Diagnostic[] {
  const unused: Diagnostic[] = [];
  const accepted = new Set<Diagnostic>();
  for (const spec of workflows)
    for (const { label, about, path, accept } of subjectsIn(spec))
      for (const [index, { rule }] of accept.entries()) {
        const meant = diagnostics.filter((each) => each.rule === rule && about.has(each.about));
        for (const each of meant) accepted.add(each);
        if (meant.length > 0) continue;
        unused.push({
          ...UNUSED_ACCEPTANCE.violation,
          message: `${label} accepts warning ${quote(rule)}, which does not occur`,
          ...spec.document.valueAt([...path, "accept", index, "rule"]),
          hint: "remove the entry from accept",
        });
      }
  return [...diagnostics.filter((each) => !accepted.has(each)), ...unused];
}

function subjectsIn(spec: WorkflowSpec): Subject[] {
  const { name: controller, dependents, eventSources, extraRules, accept = [] } = spec;
  const member = (kind: string, list: string) => {
    return ([name, { accept = [] }]: readonly [string, { readonly accept?: readonly AcceptanceSpec[] }]): Subject => ({
      ...{
        label: `${kind} ${quote(name)}`,
        about: new Set([`${controller}/${name}`]),
        path: ["spec", list, name],
        accept,
      },
    });
  };
  return [
    { label: `controller ${quote(controller)}`, about: new Set([controller, ...crdsOf(spec)]), path: ["spec"], accept },
    ...[...dependents].map(member("dependent", "dependents")),
    ...[...eventSources].map(member("event source", "eventSources")),
    ...extraRules.map(({ accept = [] }, index) => ({
      label: `rule ${index + 1} of rbac.extra`,
      about: new Set([extraSubjectOf(controller, index)]),
      path: ["spec", "rbac", "extra", index],
      accept,
    })),
  ];
}

/** Returns the `about` values of warnings about the CRDs of the kinds that a spec names. */
function crdsOf({ primary, dependents, eventSources }: WorkflowSpec): string[] {
  const named = [primary, ...[...dependents.values(), ...eventSources.values()].map(({ resource }) => resource)];
  return named.flatMap((resource) => {
    if (typeof resource !== "string") return [];
    const [group, , kind] = resource.split("/");
    return group === undefined || kind === undefined ? [] : [subjectOfCrd({ group, kind })];
  });
}
