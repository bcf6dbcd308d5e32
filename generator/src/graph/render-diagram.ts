import { deletionLines } from "./render-text.js";
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

/** Renders a graph for Mermaid, as GitHub shows it in a README. */
export function renderMermaid(graph: WorkflowGraph): string {
  const ids = idsOf(graph);
  const text = (lines: readonly string[]) => `"${lines.map(escapeMarkup).join("<br/>")}"`;
  return [
    "flowchart TD",
    `  %% ${graph.name}`,
    ...graph.nodes.map((node) => {
      const [open, close] = MERMAID_SHAPES[node.kind];
      return `  ${ids.get(node.name)}${open}${text(linesOf(node))}${close}`;
    }),
    ...graph.edges.map(({ from, to, kind }) => `  ${ids.get(from)} ${MERMAID_EDGES[kind]} ${ids.get(to)}`),
    ...deletionLines(graph).map((line) => `  %% ${line}`),
    "",
  ].join("\n");
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

/** Renders a graph in the language of Graphviz. */
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

/** Returns what stands inside the shape of a node. */
export function linesOf({ name, resource, facts, kind }: GraphNode): string[] {
  return [...(kind === "primary" ? [resource] : [name, resource]), ...facts];
}

/** Escapes a text for markup. */
export function escapeMarkup(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

// A dependent may be called "end" or "graph", which mean something to Mermaid and Graphviz.
function idsOf({ nodes }: WorkflowGraph): ReadonlyMap<string, string> {
  return new Map(nodes.map(({ name }, index) => [name, `n${index}`]));
}

function quoteDot(text: string): string {
  return `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n")}"`;
}
