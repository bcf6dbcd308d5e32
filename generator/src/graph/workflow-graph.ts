import {
  type ConditionModel,
  type ControllerModel,
  type DependentModel,
  type EventSourceModel,
  type ResourceModel,
  isKubernetes,
  isReadOnly,
  referenceText,
} from "../model/project-model.js";

/** Kind of a node. */
export type NodeKind = "primary" | "managed" | "readOnly" | "external" | "eventSource";

/** Kind of an edge. For `events`, the first node emits events to the second; otherwise the second waits for the first. */
export type EdgeKind = "required" | "optional" | "items" | "events";

/** A primary, a dependent, or an event source. */
export interface GraphNode {
  readonly name: string;
  readonly kind: NodeKind;
  /** Kind of its objects, or the source of its external resources. */
  readonly resource: string;
  /** Settings in the spec, one per line. */
  readonly facts: readonly string[];
}

/** An edge between two nodes, by name. */
export interface GraphEdge {
  readonly from: string;
  readonly to: string;
  readonly kind: EdgeKind;
}

/** The graph of a controller. */
export interface WorkflowGraph {
  readonly name: string;
  /** The primary, followed by dependents in creation order, and event sources. */
  readonly nodes: readonly GraphNode[];
  readonly edges: readonly GraphEdge[];
  /** Dependents that the operator deletes during cleanup. Each step waits for the previous one. */
  readonly deletionSteps: readonly (readonly string[])[];
  /** Dependents that the garbage collector deletes afterwards. */
  readonly garbageCollected: readonly string[];
  /** Dependents that are orphaned. */
  readonly orphaned: readonly string[];
}

export function buildGraph(controller: ControllerModel): WorkflowGraph {
  const { name, primary, dependents, eventSources } = controller;
  const primaryName = primary.kind;
  const isDeleted = (each: DependentModel) => !isReadOnly(each) && (!isKubernetes(each) || each.deletion === "ordered");
  const namesOf = (chosen: (each: DependentModel) => boolean) => dependents.filter(chosen).map((each) => each.name);
  return {
    name,
    nodes: [
      { name: primaryName, kind: "primary", resource: resourceText(primary), facts: [] },
      ...dependents.map(dependentNode),
      ...eventSources.map(sourceNode),
    ],
    edges: [
      ...dependents.flatMap((each) => edgesOf(each, primaryName)),
      ...eventSources.map((each): GraphEdge => ({ from: each.name, to: primaryName, kind: "events" })),
    ],
    deletionSteps: stepsOf(dependents.filter(isDeleted)),
    garbageCollected: namesOf(
      (each) => isKubernetes(each) && !isReadOnly(each) && each.deletion === "garbageCollected",
    ),
    orphaned: namesOf((each) => isKubernetes(each) && each.deletion === "orphan"),
  };
}

function edgesOf({ name, dependsOn, itemsDependOn = [] }: DependentModel, primary: string): GraphEdge[] {
  const edges = [
    ...dependsOn.map((each): GraphEdge =>
      typeof each === "string"
        ? { from: each, to: name, kind: "required" }
        : { from: each.name, to: name, kind: "optional" },
    ),
    ...itemsDependOn.map((each): GraphEdge => ({ from: each, to: name, kind: "items" })),
  ];
  return edges.length > 0 ? edges : [{ from: primary, to: name, kind: "required" }];
}

function dependentNode(dependent: DependentModel): GraphNode {
  const conditions = Object.entries(dependent.conditions).map(([name, each]) => `${name}: ${conditionText(each)}`);
  const bulk = dependent.bulk === undefined ? [] : ["bulk: any number of objects"];
  const { name } = dependent;
  if (!isKubernetes(dependent)) {
    const { source, capabilities } = dependent.external;
    const can = capabilities.length === 0 ? "read only" : capabilities.join(", ");
    return {
      name,
      kind: "external",
      resource: `external, ${source.kind}`,
      facts: [...bulk, `can: ${can}`, ...conditions],
    };
  }
  const { mode, ref, namespace, cluster, eventSource, deletion } = dependent;
  const facts = [
    ...(ref === undefined ? [] : [`ref: ${referenceText(ref)}`]),
    ...(mode === undefined || ref !== undefined ? [] : [`mode: ${mode}`]),
    ...(dependent.again === undefined ? [] : [`again: ${dependent.again.expression.trim()}`]),
    ...bulk,
    ...(namespace === undefined ? [] : [`namespace: ${namespace}`]),
    ...(cluster === undefined ? [] : [`cluster: ${cluster}`]),
    ...(eventSource === undefined ? [] : [`eventSource: ${eventSource}`]),
    ...(deletion === "garbageCollected" || mode === "readOnly" ? [] : [`deletion: ${deletion}`]),
    ...(dependent.heldForCleanup === true ? ["held for cleanup"] : []),
    ...(dependent.onImmutable === undefined ? [] : [`onImmutable: ${dependent.onImmutable}`]),
    ...conditions,
  ];
  return {
    name,
    kind: mode === "readOnly" ? "readOnly" : "managed",
    resource: resourceText(dependent.resource),
    facts,
  };
}

function sourceNode(source: EventSourceModel): GraphNode {
  const { name } = source;
  if (source.kind !== "informer") return { name, kind: "eventSource", resource: source.kind, facts: [] };
  const { mapping, labelSelector, fieldSelector } = source;
  const by =
    "keys" in mapping ? `${mapping.kind} ${mapping.keys.name}` : "name" in mapping ? mapping.name : mapping.kind;
  const facts = [
    `mapping: ${by}`,
    ...(labelSelector === undefined ? [] : [`labelSelector: ${labelSelector}`]),
    ...(fieldSelector === undefined ? [] : [`fieldSelector: ${fieldSelector}`]),
  ];
  return { name, kind: "eventSource", resource: resourceText(source.resource), facts };
}

function conditionText(condition: ConditionModel): string {
  if (condition.kind === "when") return `when ${condition.expression.replaceAll(/\s+/g, " ").trim()}`;
  if (condition.kind === "function") return `function ${condition.name}`;
  const given = (condition.arguments ?? []).map((each) => JSON.stringify(each)).join(", ");
  return given === "" ? condition.name : `${condition.name}(${given})`;
}

function resourceText({ group, version, kind }: ResourceModel): string {
  return [...(group === "" ? [] : [group]), version, kind].join("/");
}

/** Groups dependents into deletion steps: a dependent is deleted after all dependents that follow it. */
function stepsOf(dependents: readonly DependentModel[]): string[][] {
  const steps: string[][] = [];
  const stepOf = new Map<string, number>();
  // In creation order, a dependent precedes those that follow it.
  for (const { name } of [...dependents].reverse()) {
    const after = dependents.filter(({ follows }) => follows.includes(name)).map((each) => stepOf.get(each.name) ?? 0);
    const step = after.length === 0 ? 0 : Math.max(...after) + 1;
    stepOf.set(name, step);
    (steps[step] ??= []).push(name);
  }
  return steps.map((names) => names.sort());
}
