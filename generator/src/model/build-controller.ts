import type { SourcePosition } from "../diagnostic.js";
import type {
  CacheSpec,
  ControllerSpec,
  DependentSpec,
  ExternalSpec,
  ExternalStateSpec,
  FiltersSpec,
  MappingSpec,
  MovedSpec,
  ReferenceSpec,
  ScheduleSpec,
  UntypedKindSpec,
  WorkflowSettingsSpec,
  WorkflowSpec,
} from "../read/workflow-spec.js";
import type { YamlPath } from "../read/yaml/yaml-document.js";
import { type ParseExpression, constantValueOf } from "./expression.js";
import { EXTERNAL } from "./project-memory.js";
import {
  type BuiltinModel,
  CAPABILITIES,
  type CacheModel,
  type ConditionModel,
  type ControllerModel,
  type ControllerSettings,
  type DependentModel,
  type EventSourceModel,
  type ExpressionModel,
  type ExpressionName,
  type ExternalDependentModel,
  type ExternalTypeModel,
  type FiltersModel,
  type InformerModel,
  type KeptTypeModel,
  type KubernetesDependentModel,
  type MappingModel,
  type NamePartModel,
  type NodeModel,
  type ReferenceModel,
  type ResourceModel,
  type WorkflowSettings,
} from "./project-model.js";
import {
  type DependencyGraph,
  FILTER_ARGUMENTS,
  type LocatedCondition,
  type ResolvedController,
  type ResolvedDependent,
  type ResolvedEventSource,
  type StatedBuiltin,
  activationOf,
  conditionsOf,
  deletionOf,
  edgesOf,
  filtersIn,
  formerNamesOf,
  reachableFrom,
  sortGraph,
} from "./resolved-project.js";
import { IDENTITY_FIELDS, stateFieldOf } from "./schema.js";

/** Names that the expressions of a `ref` may use, because the runtime indexes primaries by them. */
const REFERENCE_NAMES: readonly ExpressionName[] = ["primary"];

interface Tools {
  readonly parse: ParseExpression;
  readonly findKind: FindKind;
  /** Records the positions of each expression. */
  readonly positions: Map<ExpressionModel, (offset: number) => SourcePosition>;
}

/** Builds the model of a controller that has passed all rules. */
export function buildController(controller: ResolvedController, tools: Tools): ControllerModel {
  const { spec, primary, dependents } = controller;
  if (primary === undefined) throw new Error(`controller ${spec.name} has no primary`);
  const filtersAt = (filters: FiltersSpec | undefined, path: YamlPath) =>
    buildFilters({ filters, path }, controller, tools);
  const required = new Map(
    dependents.map(({ name, spec: { dependsOn = [] } }) => [
      name,
      dependsOn.filter((each) => typeof each === "string"),
    ]),
  );
  const edges = edgesOf(dependents);
  const order = sortGraph(edges);
  const reachedFrom = (name: string, graph: DependencyGraph) => {
    const reached = reachableFrom(graph, name);
    return Object.freeze(order.filter((other) => reached.has(other)));
  };
  const models = new Map(
    dependents.map((dependent): [string, DependentModel] => {
      const model = buildDependent(dependent, {
        primary,
        moved: spec.moved,
        waitsFor: reachedFrom(dependent.name, required),
        follows: reachedFrom(dependent.name, edges),
        buildFilters: filtersAt,
        buildCondition: (located) => buildCondition(located, controller, tools),
        buildNamePart: (when, path) => buildNamePart({ when, path }, controller, tools),
        buildAgain: (when, path) => buildExpression({ when, path, names: REFERENCE_NAMES }, controller, tools),
      });
      return [dependent.name, model];
    }),
  );
  // External resources remain, and the runtime has nothing to do for them.
  const objects = controller.removed.filter(({ spec: { resource } }) => resource !== EXTERNAL);
  const removed = objects.map(({ name, spec: { resource: _kind, ...stated }, resource }) => {
    if (resource === undefined) throw new Error(`removed dependent ${name} has no kind`);
    return Object.freeze({ name, resource, ...stated });
  });
  return Object.freeze({
    name: spec.name,
    primary,
    dependents: Object.freeze(order.flatMap((name) => models.get(name) ?? [])),
    eventSources: Object.freeze(
      controller.eventSources.map((source) => buildEventSource(source, filtersAt, tools.findKind)),
    ),
    filters: filtersAt(spec.controller.filters, ["spec", "controller"]),
    settings: buildSettings(spec.controller, spec.statusConditions),
    ...(spec.controller.indexes === undefined ? {} : { indexes: buildIndexes(spec.controller.indexes) }),
    workflow: buildWorkflowSettings(spec.workflow),
    removed: Object.freeze(removed),
    ...(spec.extraRules.length === 0
      ? {}
      : { extraRules: Object.freeze(spec.extraRules.map(({ accept: _, ...rule }) => rule)) }),
    specFile: spec.document.file,
  });
}

function buildIndexes(indexes: NonNullable<ControllerSpec["indexes"]>): NonNullable<ControllerModel["indexes"]> {
  const entries = Object.entries(indexes).map(([name, { function: own }]) => [
    name,
    Object.freeze({ kind: "function", name: own }),
  ]);
  return Object.freeze(Object.fromEntries(entries)) as NonNullable<ControllerModel["indexes"]>;
}

function buildCondition(
  { condition, path }: LocatedCondition,
  controller: ResolvedController,
  tools: Tools,
): ConditionModel {
  if (condition.kind === "builtin") return buildBuiltin(condition, tools.findKind);
  if (condition.kind === "function") return Object.freeze(condition);
  return buildExpression({ when: condition.expression, path }, controller, tools);
}

function buildNamePart(located: LocatedExpression, controller: ResolvedController, tools: Tools): NamePartModel {
  const constant = constantValueOf(located.when)?.value;
  if (typeof constant === "string") return Object.freeze({ kind: "constant", text: constant });
  return buildExpression({ ...located, names: REFERENCE_NAMES }, controller, tools);
}

function buildFilters(
  { filters, path: owner }: { readonly filters: FiltersSpec | undefined; readonly path: YamlPath },
  controller: ResolvedController,
  tools: Tools,
): FiltersModel {
  return Object.freeze(
    Object.fromEntries(
      filtersIn(filters, owner).map(({ name, filter, path }) => [
        name,
        filter.function === undefined
          ? buildExpression(
              { when: filter.when ?? "", path: [...path, "when"], names: FILTER_ARGUMENTS[name] },
              controller,
              tools,
            )
          : Object.freeze({ kind: "function", name: filter.function }),
      ]),
    ),
  );
}

interface LocatedExpression {
  readonly when: string;
  readonly path: YamlPath;
  readonly names?: readonly ExpressionName[];
}

function buildExpression(
  { when, path, names }: LocatedExpression,
  { spec: { document } }: ResolvedController,
  { parse, positions }: Tools,
): ExpressionModel {
  const parsed = parse(when, names);
  if (parsed.kind === "problem") throw new Error(`an expression was not checked: ${parsed.message}`);
  const locate = (offset: number) => document.characterAt(path, offset);
  const model: ExpressionModel = Object.freeze({
    kind: "when",
    expression: when,
    names: parsed.names,
    ...(parsed.proves.length === 0 ? {} : { proves: parsed.proves }),
    position: locate(0),
  });
  positions.set(model, locate);
  return model;
}

/** Context for building the model of a dependent. */
interface DependentTools {
  /** Required dependencies, including transitive ones, in creation order. */
  readonly waitsFor: readonly string[];
  /** All dependencies, including optional and transitive ones, in creation order. */
  readonly follows: readonly string[];
  readonly primary: ResourceModel;
  readonly moved: readonly MovedSpec[];
  readonly buildFilters: BuildFilters;
  buildCondition(condition: LocatedCondition): ConditionModel;
  buildNamePart(expression: string, path: YamlPath): NamePartModel;
  buildAgain(expression: string, path: YamlPath): ExpressionModel;
}

/** Builds the model of a dependent that has passed all rules. Options that equal their default are omitted. */
function buildDependent(dependent: ResolvedDependent, tools: DependentTools): DependentModel {
  const node = nodeOf(dependent, tools);
  const { external } = dependent.spec;
  return Object.freeze(
    external === undefined
      ? { ...node, ...objectOf(dependent, tools) }
      : { ...node, external: externalOf(external, dependent, tools.primary) },
  );
}

function nodeOf(dependent: ResolvedDependent, tools: DependentTools): NodeModel {
  const { waitsFor, follows, buildCondition, moved } = tools;
  const { name, spec } = dependent;
  const { dependsOn = [], itemsDependOn, bulk, matcher, timeout, retry } = spec;
  const movedFrom = formerNamesOf(name, moved);
  return {
    name,
    ...(movedFrom.length === 0 ? {} : { movedFrom: Object.freeze(movedFrom) }),
    dependsOn: Object.freeze([...dependsOn]),
    ...(itemsDependOn === undefined ? {} : { itemsDependOn }),
    waitsFor,
    follows,
    ...(bulk === undefined ? {} : { bulk: bulk === true ? {} : bulk }),
    ...(matcher === undefined ? {} : { matcher: matcher.function }),
    ...(timeout === undefined ? {} : { timeoutMs: parseDuration(timeout) }),
    ...(retry === undefined ? {} : { retry: retryOf(retry) }),
    conditions: Object.freeze(
      Object.fromEntries(conditionsOf(dependent).map((located) => [located.name, buildCondition(located)])),
    ),
  };
}

function retryOf({ maxRetries, initialInterval, multiplier, maxInterval }: NonNullable<DependentSpec["retry"]>) {
  return {
    maxRetries,
    ...(initialInterval === undefined ? {} : { initialIntervalMs: parseDuration(initialInterval) }),
    ...(multiplier === undefined ? {} : { multiplier }),
    ...(maxInterval === undefined ? {} : { maxIntervalMs: parseDuration(maxInterval) }),
  };
}

function objectOf(
  { name, spec, path, resource }: ResolvedDependent,
  { buildAgain, buildFilters, buildNamePart }: DependentTools,
): Omit<KubernetesDependentModel, keyof NodeModel> {
  if (resource === undefined) throw new Error(`dependent ${name} has no kind`);
  const {
    mode,
    ref,
    namespace,
    cluster,
    eventSource,
    labelSelector,
    fieldSelector,
    fieldManager,
    released,
    operations,
  } = spec;
  return {
    resource,
    ...(mode === undefined || mode === "managed" ? {} : { mode }),
    ...(spec.again === undefined ? {} : { again: buildAgain(spec.again, [...path, "again"]) }),
    ...(ref === undefined ? {} : { ref: referenceOf(ref, [...path, "ref"], buildNamePart) }),
    ...(namespace === undefined ? {} : { namespace }),
    ...(cluster === undefined ? {} : { cluster }),
    ...(eventSource === undefined ? {} : { eventSource }),
    ...(labelSelector === undefined ? {} : { labelSelector }),
    ...(fieldSelector === undefined ? {} : { fieldSelector }),
    filters: buildFilters(spec.filters, path),
    deletion: deletionOf(spec),
    ...(spec.existing === "adopt" ? { existing: spec.existing } : {}),
    ...(spec.heldForCleanup === true ? { heldForCleanup: true as const } : {}),
    ...(spec.onImmutable === "recreate" ? { onImmutable: spec.onImmutable } : {}),
    ...(spec.serverSideApply === false ? { serverSideApply: false as const } : {}),
    ...(fieldManager === undefined ? {} : { fieldManager }),
    ...(released === undefined ? {} : { released }),
    ...(operations === undefined ? {} : { operations }),
  };
}

function referenceOf(
  { name, namespace }: ReferenceSpec,
  path: YamlPath,
  build: DependentTools["buildNamePart"],
): ReferenceModel {
  return Object.freeze({
    name: build(name, [...path, "name"]),
    ...(namespace === undefined ? {} : { namespace: build(namespace, [...path, "namespace"]) }),
  });
}

function externalOf(
  spec: ExternalSpec,
  dependent: ResolvedDependent,
  primary: ResourceModel,
): ExternalDependentModel["external"] {
  const { state, capabilities = CAPABILITIES } = spec;
  const { desiredFile, isSelected = false } = dependent;
  const keptType = keptTypeOf(dependent, primary);
  return {
    source: sourceOf(spec),
    type: typeOf(spec, dependent),
    ...(desiredFile?.typeName === undefined
      ? {}
      : { desiredType: { kind: "imported", file: desiredFile.path, name: desiredFile.typeName } as const }),
    ...(isSelected ? { isSelected } : {}),
    ...(state === undefined ? {} : { state: stateOf(state, dependent) }),
    ...(keptType === undefined ? {} : { keptType }),
    capabilities: CAPABILITIES.filter((capability) => capabilities.includes(capability)),
    ...(spec.onDeleteFailure === "release" ? { onDeleteFailure: spec.onDeleteFailure } : {}),
    ...(spec.creationGrace === undefined ? {} : { creationGraceMs: parseDuration(spec.creationGrace) }),
  };
}

function stateOf(
  { status, in: store = "configMap", resource, path = "", perItem }: ExternalStateSpec,
  { name, stateResource }: ResolvedDependent,
): NonNullable<ExternalDependentModel["external"]["state"]> {
  if (status !== undefined) return { kind: "status", path: status.split(".") };
  const each = perItem === true ? { perItem } : {};
  if (resource === undefined) return { kind: store, ...each };
  if (stateResource === undefined) throw new Error(`the state of dependent ${name} has no kind`);
  return { kind: "resource", resource: stateResource, path: path.split("."), ...each };
}

function keptTypeOf(dependent: ResolvedDependent, primary: ResourceModel): KeptTypeModel | undefined {
  const { stateFile } = dependent;
  if (stateFile?.typeName !== undefined) return { kind: "imported", file: stateFile.path, name: stateFile.typeName };
  const field = stateFieldOf(dependent, primary);
  if (field?.keeps !== "object") return undefined;
  return { kind: "field", resource: field.resource, path: field.path, isMap: field.isMap };
}

function sourceOf({
  poll,
  perPrimaryPoll,
  inbound,
  eventSource,
}: ExternalSpec): ExternalDependentModel["external"]["source"] {
  if (eventSource !== undefined) return { kind: "eventSource", name: eventSource };
  if (poll !== undefined) return { kind: "poll", ...scheduleOf(poll) };
  if (perPrimaryPoll !== undefined) return { kind: "perPrimaryPoll", ...scheduleOf(perPrimaryPoll) };
  return inbound?.fetch === true
    ? { kind: "inbound", isFetched: true, ...fetchTimeoutOf(inbound) }
    : { kind: "inbound" };
}

function typeOf({ type, schema }: ExternalSpec, { file }: ResolvedDependent): ExternalTypeModel {
  if (type === undefined && schema === undefined) return { kind: "declared" };
  if (file?.typeName !== undefined) return { kind: "imported", file: file.path, name: file.typeName };
  if (file?.schema === undefined) throw new Error(`the schema ${schema} was not checked`);
  return { kind: "schema", schema: file.schema };
}

/** Builds the filters at a path of a spec. */
type BuildFilters = (filters: FiltersSpec | undefined, path: YamlPath) => FiltersModel;

/** Builds the model of an event source that has passed all rules. */
function buildEventSource(
  source: ResolvedEventSource,
  buildFilters: BuildFilters,
  findKind: FindKind,
): EventSourceModel {
  const { name, spec } = source;
  if (spec.resource !== undefined) return Object.freeze(informerOf(source, buildFilters, findKind));
  for (const kind of ["poll", "perPrimaryPoll"] as const) {
    const schedule = spec[kind];
    if (schedule !== undefined) return Object.freeze({ kind, name, ...scheduleOf(schedule) });
  }
  return Object.freeze({ kind: "inbound", name });
}

/** Returns a polling schedule with the option names of the runtime, in milliseconds. */
function scheduleOf({ every, ...stated }: ScheduleSpec): { intervalMs: number; fetchTimeoutMs?: number } {
  return { intervalMs: parseDuration(every), ...fetchTimeoutOf(stated) };
}

/** Returns the timeout of a fetch in milliseconds; empty if the spec sets none. */
function fetchTimeoutOf({ fetchTimeout }: Pick<ScheduleSpec, "fetchTimeout">): { fetchTimeoutMs?: number } {
  return fetchTimeout === undefined ? {} : { fetchTimeoutMs: parseDuration(fetchTimeout) };
}

function informerOf(source: ResolvedEventSource, buildFilters: BuildFilters, findKind: FindKind): InformerModel {
  const { name, spec, path, resource } = source;
  const activation = activationOf(source);
  if (resource === undefined) throw new Error(`event source ${name} has no kind`);
  const { mapping, primaryToSecondary, namespaces, labelSelector, fieldSelector, cache, maxCachedObjects } = spec;
  return {
    kind: "informer",
    ...{ name, resource },
    mapping:
      mapping === undefined && primaryToSecondary !== undefined
        ? { kind: "primaryToSecondary" as const }
        : mappingOf(mapping),
    ...(primaryToSecondary === undefined
      ? {}
      : { primaryToSecondary: { kind: "function" as const, name: primaryToSecondary.function } }),
    ...(namespaces === undefined || namespaces === "sameAsController" ? {} : { namespaces }),
    ...(labelSelector === undefined ? {} : { labelSelector }),
    ...(fieldSelector === undefined ? {} : { fieldSelector }),
    filters: buildFilters(spec.filters, path),
    cache: buildCache(cache),
    ...(maxCachedObjects === undefined ? {} : { maxCachedObjects }),
    ...(activation === undefined ? {} : { activationCondition: buildBuiltin(activation, findKind) }),
  };
}

function mappingOf(mapping: MappingSpec = "ownerReference"): MappingModel {
  if (mapping === "ownerReference") return { kind: "ownerReference" };
  if (mapping.function !== undefined) return { kind: "function", name: mapping.function };
  if (mapping.label !== undefined) return { kind: "label", keys: mapping.label };
  if (mapping.annotation !== undefined) return { kind: "annotation", keys: mapping.annotation };
  throw new Error("a mapping was not checked");
}

function buildCache(cache: CacheSpec = "full"): CacheModel {
  if (typeof cache === "string") return { kind: cache };
  const paths = cache.paths.filter((path) => !IDENTITY_FIELDS.has(path.split(".")[0] ?? ""));
  return paths.length === 0 ? { kind: "metadata" } : { kind: "paths", paths: Object.freeze(paths.sort()) };
}

/** Builds the settings of a controller that the spec sets. Flags and enums that equal their default are omitted. */
function buildSettings(spec: ControllerSpec, statusConditions?: WorkflowSpec["statusConditions"]): ControllerSettings {
  const { namespaces, labelSelector, fieldSelector, maxReconciliationInterval, fieldManager, finalizer } = spec;
  const {
    formerNames = [],
    formerFieldManagers = [],
    retry,
    rateLimit,
    maxConcurrentReconciles,
    reconcileTimeout,
    cleanupTimeout,
  } = spec;
  const { initialInterval, maxInterval, maxRetries, multiplier } = retry ?? {};
  return Object.freeze({
    ...(formerNames.length === 0 ? {} : { formerNames }),
    // Default: all
    ...(namespaces === undefined || namespaces === "all" ? {} : { namespaces }),
    ...(labelSelector === undefined ? {} : { labelSelector }),
    ...(fieldSelector === undefined ? {} : { fieldSelector }),
    // Omit values that equal their default.
    ...(spec.onAllEvents === true ? { onAllEvents: true } : {}),
    ...(spec.generationAware === false ? { generationAware: false } : {}),
    ...(spec.defaultFilters === false ? { defaultFilters: false } : {}),
    ...(spec.serverSideApply === false ? { serverSideApply: false } : {}),
    ...(statusConditions === "managed" ? { statusConditions } : {}),
    ...(spec.conditionPrefix === undefined ? {} : { conditionPrefix: spec.conditionPrefix }),
    ...(maxConcurrentReconciles === undefined ? {} : { maxConcurrentReconciles }),
    ...(retry === undefined
      ? {}
      : {
          retry: {
            ...(maxRetries === undefined ? {} : { maxRetries }),
            ...(initialInterval === undefined ? {} : { initialIntervalMs: parseDuration(initialInterval) }),
            ...(multiplier === undefined ? {} : { multiplier }),
            ...(maxInterval === undefined ? {} : { maxIntervalMs: parseDuration(maxInterval) }),
          },
        }),
    ...(rateLimit === undefined
      ? {}
      : { rateLimit: { maxReconciliations: rateLimit.maxReconciliations, withinMs: parseDuration(rateLimit.within) } }),
    ...(maxReconciliationInterval === undefined
      ? {}
      : { maxReconciliationIntervalMs: parseDuration(maxReconciliationInterval) }),
    ...(reconcileTimeout === undefined ? {} : { reconcileTimeoutMs: parseDuration(reconcileTimeout) }),
    ...(spec.cleanupPolicy === "sweep" ? { cleanupPolicy: "sweep" } : {}),
    ...(spec.cleanUpUnselected === true ? { cleanUpUnselected: true } : {}),
    ...(cleanupTimeout === undefined ? {} : { cleanupTimeoutMs: parseDuration(cleanupTimeout) }),
    ...(spec.stalledAfter === undefined ? {} : { stalledAfterMs: parseDuration(spec.stalledAfter) }),
    // Default: isolate
    ...(spec.watchFailurePolicy === "block" ? { watchFailurePolicy: "block" as const } : {}),
    ...(fieldManager === undefined ? {} : { fieldManager }),
    ...(formerFieldManagers.length === 0 ? {} : { formerFieldManagers }),
    ...(finalizer === undefined ? {} : { finalizer }),
    ...(spec.formerFinalizers === undefined || spec.formerFinalizers.length === 0
      ? {}
      : { formerFinalizers: spec.formerFinalizers }),
  });
}

/** Builds the settings of a workflow that the spec sets. Flags and enums that equal their default are omitted. */
function buildWorkflowSettings(spec: WorkflowSettingsSpec): WorkflowSettings {
  const { invocation, exceptions, maxConcurrency, pruning } = spec;
  return Object.freeze({
    ...(invocation === "explicit" ? { invocation } : {}),
    ...(exceptions === "result" ? { exceptions } : {}),
    ...(maxConcurrency === undefined ? {} : { maxConcurrency }),
    ...(pruning === false ? { pruning } : {}),
  });
}

/** Builds the model of a built-in condition. */
function buildBuiltin(builtin: StatedBuiltin, findKind: FindKind): BuiltinModel {
  const stated = argumentsOf(builtin);
  const { of = undefined, isNegated = undefined } = builtin.name === "crdPresent" ? builtin : {};
  return Object.freeze({
    kind: "builtin",
    name: builtin.name,
    ...(stated === undefined ? {} : { arguments: stated }),
    ...(of === undefined ? {} : { of: findKind(of) }),
    ...(isNegated === undefined ? {} : { isNegated }),
  });
}

/** Returns a kind that has passed the unknown-kind rule. */
type FindKind = (kind: string | UntypedKindSpec) => ResourceModel;

function argumentsOf(builtin: StatedBuiltin): readonly unknown[] | undefined {
  switch (builtin.name) {
    case "condition":
      return [{ type: builtin.status.type, status: builtin.status.status ?? "True" }];
    case "fieldEquals":
      return [builtin.field.path, builtin.field.value];
    default:
      return undefined;
  }
}

const UNITS: { readonly [unit: string]: number } = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/** Converts a duration that the schema of specs accepts, such as `2s` or `1h30m`, to milliseconds. */
function parseDuration(text: string): number {
  let milliseconds = 0;
  for (const [, amount, unit] of text.matchAll(/([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)/g))
    milliseconds += Number(amount) * (UNITS[String(unit)] ?? 0);
  return Math.round(milliseconds);
}
