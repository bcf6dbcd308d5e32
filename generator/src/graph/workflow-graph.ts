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

/** What a node of a graph stands for. */
export type NodeKind = "primary" | "managed" | "readOnly" | "external" | "eventSource";

/** How two nodes hang together: the second waits for the first, or the first brings events to the second. */
export type EdgeKind = "required" | "optional" | "items" | "events";

/** A primary, a dependent or an event source. */
export interface GraphNode {
  readonly name: string;
  readonly kind: NodeKind;
  /** The kind of its objects, or where its resources come from. */
  readonly resource: string;
  /** What the spec says of it, a fact a line. */
  readonly facts: readonly string[];
}

/** A line between two nodes, by their names. */
export interface GraphEdge {
  readonly from: string;
  readonly to: string;
  readonly kind: EdgeKind;
}

/** A controller as it is drawn. */
export interface WorkflowGraph {
  readonly name: string;
  /** The primary comes first, then dependents in an order in which they can be created, then event sources. */
  readonly nodes: readonly GraphNode[];
  readonly edges: readonly GraphEdge[];
  /** The dependents that the operator deletes when a primary goes; each step waits for the one before. */
  readonly deletionSteps: readonly (readonly string[])[];
  /** The dependents that Kubernetes' garbage collector deletes after that. */
  readonly garbageCollected: readonly string[];
  /** The dependents that stay, without a link to the primary. */
  readonly orphaned: readonly string[];
}

/** Builds the graph of a controller. */
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

/** Returns what is deleted at once: a dependent goes when nothing that follows it is left. */
function stepsOf(dependents: readonly DependentModel[]): string[][] {
  const steps: string[][] = [];
  const stepOf = new Map<string, number>();
  // What follows a dependent comes after it in the order of creation.
  for (const { name } of [...dependents].reverse()) {
    const after = dependents.filter(({ follows }) => follows.includes(name)).map((each) => stepOf.get(each.name) ?? 0);
    const step = after.length === 0 ? 0 : Math.max(...after) + 1;
    stepOf.set(name, step);
    (steps[step] ??= []).push(name);
  }
  return steps.map((names) => names.sort());
}
