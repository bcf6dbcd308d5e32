import type { SourcePosition } from "../../diagnostic.js";
import type { ControllerSpec, FiltersSpec } from "../../input/workflow-spec.js";
import type { YamlPath } from "../../input/yaml/yaml-document.js";
import { buildEventSource } from "./build-event-source.js";
import { buildBuiltin, type FindKind } from "./build-builtin.js";
import { buildDependent } from "./build-dependent.js";
import { buildSettings, buildWorkflowSettings } from "./build-settings.js";
import { reachableFrom, sortGraph, type DependencyGraph } from "./dependency-graph.js";
import { EXTERNAL } from "../project-memory.js";
import { constantValueOf } from "../expression/constant-value.js";
import type { ParseExpression } from "../expression/expression.js";
import type {
  ConditionModel,
  ControllerModel,
  DependentModel,
  ExpressionModel,
  ExpressionName,
  FiltersModel,
  NamePartModel,
} from "../project-model.js";
import { edgesOf, FILTER_ARGUMENTS, filtersIn, type ResolvedController } from "./resolved-project.js";
import type { LocatedCondition } from "./stated-condition.js";

/** What an index may look at that leads from an object to the primaries that name it. */
const REFERENCE_NAMES: readonly ExpressionName[] = ["primary"];

interface Tools {
  readonly parse: ParseExpression;
  readonly findKind: FindKind;
  /** Is told where each expression is. */
  readonly positions: Map<ExpressionModel, (offset: number) => SourcePosition>;
}

/** Builds the model of a controller that broke no rule. */
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
  // What was outside of Kubernetes stays there, and nothing is to be done for it.
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
