import type { GraphNode, WorkflowGraph } from "./workflow-graph.js";

/** Renders a graph as a tree for a terminal: each dependent below the last one that it waits for. */
export function renderText(graph: WorkflowGraph): string {
  const { name, nodes, edges } = graph;
  const primary = nodes.find(({ kind }) => kind === "primary");
  const order = new Map(nodes.map((node, index) => [node.name, index]));
  const parentOf = (node: GraphNode) =>
    edges
      .filter(({ to }) => to === node.name)
      .map(({ from }) => from)
      .sort((left, right) => (order.get(right) ?? 0) - (order.get(left) ?? 0))[0];
  const children = group(nodes, parentOf);
  const lines = [`${name}: ${primary?.resource ?? ""}`];
  const visit = (parent: string, indent: string) => {
    const below = (children.get(parent) ?? []).filter(({ kind }) => kind !== "primary" && kind !== "eventSource");
    for (const [index, node] of below.entries()) {
      const isLast = index === below.length - 1;
      const deeper = `${indent}${isLast ? "   " : "│  "}`;
      lines.push(`${indent}${isLast ? "└─ " : "├─ "}${titleOf(node)}`);
      const hasChildren = children.has(node.name);
      for (const fact of [...otherEdges(graph, node.name, parent), ...node.facts])
        lines.push(`${deeper}${hasChildren ? "│  " : "   "}${fact}`);
      visit(node.name, deeper);
    }
  };
  if (primary !== undefined) visit(primary.name, "");
  for (const node of nodes.filter(({ kind }) => kind === "eventSource"))
    lines.push(`◇ ${titleOf(node)}`, ...node.facts.map((fact) => `   ${fact}`));
  return [...lines, ...deletionLines(graph), ""].join("\n");
}

/** Says in which order the objects of a primary go. */
export function deletionLines({ deletionSteps, garbageCollected, orphaned }: WorkflowGraph): string[] {
  const steps = deletionSteps.map((names) => names.join(", "));
  return [
    ...(steps.length === 0 ? [] : [`deleted by the operator: ${steps.join(", then ")}`]),
    ...(garbageCollected.length === 0
      ? []
      : [`garbage-collected${steps.length === 0 ? "" : " after that"}: ${garbageCollected.join(", ")}`]),
    ...(orphaned.length === 0 ? [] : [`orphaned: ${orphaned.join(", ")}`]),
  ];
}

function titleOf({ name, resource, kind }: GraphNode): string {
  return `${name}  ${resource}${kind === "readOnly" ? "  (read only)" : ""}`;
}

// What stands above a node in the tree is seen; everything else that it waits for is said.
function otherEdges({ edges }: WorkflowGraph, name: string, parent: string): string[] {
  const others = edges.filter(({ from, to, kind }) => to === name && (from !== parent || kind !== "required"));
  const words = { required: "", optional: " (optional)", items: " (item by item)", events: "" };
  return others.length === 0 ? [] : [`after: ${others.map(({ from, kind }) => `${from}${words[kind]}`).join(", ")}`];
}

function group(nodes: readonly GraphNode[], parentOf: (node: GraphNode) => string | undefined) {
  const groups = new Map<string, GraphNode[]>();
  for (const node of nodes) {
    const parent = parentOf(node);
    if (parent !== undefined) groups.set(parent, [...(groups.get(parent) ?? []), node]);
  }
  return groups;
}
