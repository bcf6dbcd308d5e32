import type { EdgeKind, GraphNode, NodeKind, WorkflowGraph } from "./workflow-graph.js";

const MERMAID_SHAPES: Record<NodeKind, [open: string, close: string]> = {
  primary: ["([", "])"],
  managed: ["[", "]"],
  readOnly: ["[/", "/]"],
  external: ["[(", ")]"],
  eventSource: ["{{", "}}"],
};

const MERMAID_EDGES: Record<EdgeKind, string> = {
  required: "-->",
  optional: "-. optional .->",
  items: "-- items -->",
  events: "-. events .->",
};

/** Renders graphs as one Mermaid flowchart, which GitHub displays in a README. Several graphs become subgraphs. */
export function renderMermaid(graphs: readonly WorkflowGraph[]): string {
  const [only] = graphs;
  if (graphs.length === 1 && only !== undefined)
    return ["flowchart TD", `  %% ${only.name}`, ...mermaidLines(only).map((line) => `  ${line}`), ""].join("\n");
  const parts = graphs.flatMap((graph, index) => [
    `  subgraph g${index}[${mermaidText([graph.name])}]`,
    ...mermaidLines(graph, `g${index}`).map((line) => `    ${line}`),
    "  end",
  ]);
  return ["flowchart TD", ...parts, ""].join("\n");
}

function mermaidLines(graph: WorkflowGraph, prefix = ""): string[] {
  const ids = idsOf(graph, prefix);
  return [
    ...graph.nodes.map((node) => {
      const [open, close] = MERMAID_SHAPES[node.kind];
      return `${ids.get(node.name)}${open}${mermaidText(linesOf(node))}${close}`;
    }),
    ...graph.edges.map(({ from, to, kind }) => `${ids.get(from)} ${MERMAID_EDGES[kind]} ${ids.get(to)}`),
    ...deletionLines(graph).map((line) => `%% ${line}`),
  ];
}

function mermaidText(lines: readonly string[]): string {
  return `"${lines.map(escapeMarkup).join("<br/>")}"`;
}

const DOT_SHAPES: Record<NodeKind, string> = {
  primary: "shape=box, style=rounded, penwidth=2",
  managed: "shape=box",
  readOnly: "shape=box, style=dashed",
  external: "shape=cylinder",
  eventSource: "shape=hexagon",
};

const DOT_EDGES: Record<EdgeKind, string> = {
  required: "",
  optional: ' [style=dashed, label="optional"]',
  items: ' [label="items"]',
  events: ' [style=dotted, label="events"]',
};

/** Renders a graph in the DOT language of Graphviz. */
export function renderDot(graph: WorkflowGraph): string {
  const ids = idsOf(graph);
  return [
    `digraph ${quoteDot(graph.name)} {`,
    `  graph [label=${quoteDot(deletionLines(graph).join("\n"))}, labelloc=b]`,
    '  node [fontname="sans-serif"]',
    ...graph.nodes.map(
      (node) => `  ${ids.get(node.name)} [${DOT_SHAPES[node.kind]}, label=${quoteDot(linesOf(node).join("\n"))}]`,
    ),
    ...graph.edges.map(({ from, to, kind }) => `  ${ids.get(from)} -> ${ids.get(to)}${DOT_EDGES[kind]}`),
    "}",
    "",
  ].join("\n");
}

/** Returns the lines in the shape of a node. */
export function linesOf({ name, resource, facts, kind }: GraphNode): string[] {
  return [...(kind === "primary" ? [resource] : [name, resource]), ...facts];
}

/** Escapes text for markup. */
export function escapeMarkup(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

// Names of dependents, such as "end" or "graph", may be keywords of Mermaid or Graphviz.
function idsOf({ nodes }: WorkflowGraph, prefix = ""): ReadonlyMap<string, string> {
  return new Map(nodes.map(({ name }, index) => [name, `${prefix}n${index}`]));
}

function quoteDot(text: string): string {
  return `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n")}"`;
}

/** Renders a graph as a tree for a terminal. Each dependent is below the last of its dependencies in creation order. */
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

/** Describes the order in which the objects of a primary are deleted. */
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

// The tree shows the edge to the parent; other edges are listed.
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
