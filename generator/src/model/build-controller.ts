import type { SourcePosition } from "../diagnostic.js";
import type { ControllerSpec } from "../input/workflow-spec.js";
import { reachableFrom, sortGraph } from "./dependency-graph.js";
import type { ParseExpression } from "./expression.js";
import type { ConditionModel, ControllerModel, ControllerSettings, DependentModel } from "./project-model.js";
import { parseDuration } from "./duration.js";
import { conditionsOf, type LocatedCondition, type ResolvedController } from "./resolved-project.js";

interface Tools {
  readonly parse: ParseExpression;
  /** Is told where the expression of each condition is. */
  readonly positions: Map<ConditionModel, (offset: number) => SourcePosition>;
}

/** Builds the model of a controller that broke no rule. */
export function buildController(controller: ResolvedController, tools: Tools): ControllerModel {
  const { spec, primary, dependents } = controller;
  if (primary === undefined) throw new Error(`controller ${spec.name} has no primary`);
  const graph = new Map(dependents.map(({ name, spec: { dependsOn = [] } }) => [name, dependsOn]));
  const order = sortGraph(graph);
  const models = new Map(
    dependents.map((dependent): [string, DependentModel] => {
      const { name, resource } = dependent;
      const { dependsOn = [], namespace, labelSelector, garbageCollected = true } = dependent.spec;
      if (resource === undefined) throw new Error(`dependent ${name} has no kind`);
      const reached = reachableFrom(graph, name);
      return [
        name,
        Object.freeze({
          name,
          resource,
          dependsOn: Object.freeze([...dependsOn]),
          waitsFor: Object.freeze(order.filter((other) => reached.has(other))),
          ...(namespace === undefined ? {} : { namespace }),
          ...(labelSelector === undefined ? {} : { labelSelector }),
          isGarbageCollected: garbageCollected,
          conditions: Object.freeze(
            Object.fromEntries(
              conditionsOf(dependent).map((located) => [located.name, buildCondition(located, controller, tools)]),
            ),
          ),
        }),
      ];
    }),
  );
  return Object.freeze({
    name: spec.name,
    primary,
    dependents: Object.freeze(order.flatMap((name) => models.get(name) ?? [])),
    settings: Object.freeze(settingsOf(spec.controller)),
    specFile: spec.document.file,
  });
}

function buildCondition(
  { condition, path }: LocatedCondition,
  { spec: { document } }: ResolvedController,
  { parse, positions }: Tools,
): ConditionModel {
  const { when, builtin, function: name } = condition;
  if (builtin !== undefined) return Object.freeze({ kind: "builtin", name: builtin });
  if (name !== undefined) return Object.freeze({ kind: "function", name });
  const parsed = parse(when ?? "");
  if (parsed.kind === "problem") throw new Error(`an expression was not checked: ${parsed.message}`);
  const locate = (offset: number) => document.characterAt([...path, "when"], offset);
  const model: ConditionModel = Object.freeze({
    kind: "when",
    expression: when ?? "",
    names: parsed.names,
    position: locate(0),
  });
  positions.set(model, locate);
  return model;
}

function settingsOf(spec: ControllerSpec): ControllerSettings {
  const { namespaces, labelSelector, retry, rateLimit, maxReconciliationInterval, fieldManager, finalizer } = spec;
  const { initialInterval, maxInterval, maxAttempts, multiplier } = retry ?? {};
  return {
    // All namespaces are what a controller watches unless told otherwise.
    ...(namespaces === undefined || namespaces.includes("*") ? {} : { namespaces }),
    ...(labelSelector === undefined ? {} : { labelSelector }),
    ...(retry === undefined
      ? {}
      : {
          retry: {
            ...(maxAttempts === undefined ? {} : { maxAttempts }),
            ...(initialInterval === undefined ? {} : { initialIntervalMs: parseDuration(initialInterval) }),
            ...(multiplier === undefined ? {} : { multiplier }),
            ...(maxInterval === undefined ? {} : { maxIntervalMs: parseDuration(maxInterval) }),
          },
        }),
    ...(rateLimit === undefined
      ? {}
      : {
          rateLimit: {
            maxReconciliations: rateLimit.maxReconciliations,
            withinMs: parseDuration(rateLimit.within),
          },
        }),
    ...(maxReconciliationInterval === undefined
      ? {}
      : { maxReconciliationIntervalMs: parseDuration(maxReconciliationInterval) }),
    ...(fieldManager === undefined ? {} : { fieldManager }),
    ...(finalizer === undefined ? {} : { finalizer }),
  };
}
