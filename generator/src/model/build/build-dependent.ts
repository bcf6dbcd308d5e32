import type {
  DependentSpec,
  ExternalSpec,
  ExternalStateSpec,
  MovedSpec,
  ReferenceSpec,
} from "../../input/workflow-spec.js";
import type { YamlPath } from "../../input/yaml/yaml-document.js";
import { fetchTimeoutOf, scheduleOf, type BuildFilters } from "./build-event-source.js";
import { CAPABILITIES } from "../dependent-model.js";
import { formerNamesOf } from "../moved-names.js";
import { parseDuration } from "../duration.js";
import type {
  ConditionModel,
  DependentModel,
  ExternalDependentModel,
  ExternalTypeModel,
  KeptTypeModel,
  KubernetesDependentModel,
  ExpressionModel,
  NamePartModel,
  NodeModel,
  ReferenceModel,
  ResourceModel,
} from "../project-model.js";
import { deletionOf, type ResolvedDependent } from "./resolved-project.js";
import { conditionsOf, type LocatedCondition } from "./stated-condition.js";
import { stateFieldOf } from "../schema/schema-path.js";

/** What the model of a dependent is built with. */
export interface DependentTools {
  /** All that the dependent cannot exist without, in the order of their creation. */
  readonly waitsFor: readonly string[];
  /** All that it comes after, in the same order. */
  readonly follows: readonly string[];
  readonly primary: ResourceModel;
  readonly moved: readonly MovedSpec[];
  readonly buildFilters: BuildFilters;
  buildCondition(condition: LocatedCondition): ConditionModel;
  buildNamePart(expression: string, path: YamlPath): NamePartModel;
  buildAgain(expression: string, path: YamlPath): ExpressionModel;
}

/** Builds the model of a dependent that broke no rule, without options that state the default. */
export function buildDependent(dependent: ResolvedDependent, tools: DependentTools): DependentModel {
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
