import dagre from "@dagrejs/dagre";
import { deletionLines, escapeMarkup, linesOf } from "./render-text.js";
import type { EdgeKind, NodeKind, WorkflowGraph } from "./workflow-graph.js";

const LINE_HEIGHT = 18;
// Width of a monospace character at 12 px, since the reader's fonts are unknown.
const LETTER_WIDTH = 7.3;
const PADDING = 10;
const LONGEST_LINE = 60;

const NODE_STYLES: Record<NodeKind, string> = {
  primary: 'fill="#dbeafe" stroke="#1d4ed8" stroke-width="2" rx="14"',
  managed: 'fill="#ffffff" stroke="#334155" rx="3"',
  readOnly: 'fill="#f8fafc" stroke="#64748b" stroke-dasharray="5 3" rx="3"',
  external: 'fill="#fef3c7" stroke="#b45309" rx="3"',
  eventSource: 'fill="#ecfdf5" stroke="#047857" rx="14"',
};

const EDGE_STYLES: Record<EdgeKind, string> = {
  required: "",
  optional: ' stroke-dasharray="6 4"',
  items: ' stroke-width="2.5"',
  events: ' stroke-dasharray="2 4"',
};

/** Renders a graph as a self-contained SVG: a box for each node, and a legend. */
export function renderSvg(graph: WorkflowGraph): string {
  const layout = new dagre.graphlib.Graph({ multigraph: true });
  layout.setGraph({ rankdir: "TB", nodesep: 30, ranksep: 50, marginx: 20, marginy: 20 });
  layout.setDefaultEdgeLabel(() => ({}));
  const boxes = graph.nodes.map((node) => ({ node, lines: linesOf(node).map(shorten) }));
  for (const { node, lines } of boxes) {
    const width = Math.max(...lines.map((line) => line.length)) * LETTER_WIDTH + 2 * PADDING;
    layout.setNode(node.name, { width, height: lines.length * LINE_HEIGHT + PADDING });
  }
  for (const { from, to, kind } of graph.edges) layout.setEdge(from, to, {}, kind);
  dagre.layout(layout);

  const legend = [...deletionLines(graph), ...edgeWords(graph)];
  const { width = 0, height = 0 } = layout.graph();
  const textWidth = Math.max(0, ...legend.map((line) => line.length)) * LETTER_WIDTH + 2 * PADDING;
  const size = [Math.max(width, textWidth + 20), height + legend.length * LINE_HEIGHT + PADDING]
    .map(Math.ceil)
    .join(" ");
  const edges = graph.edges.map(({ from, to, kind }) => {
    const points: readonly { readonly x: number; readonly y: number }[] = layout.edge(from, to, kind).points ?? [];
    const path = points.map(({ x, y }, index) => `${index === 0 ? "M" : "L"}${round(x)} ${round(y)}`).join(" ");
    return `<path d="${path}" fill="none" stroke="#475569" stroke-linejoin="round"${EDGE_STYLES[kind]} marker-end="url(#arrow)"/>`;
  });
  const shapes = boxes.map(({ node, lines }) => {
    const { x, y, width: boxWidth, height: boxHeight } = layout.node(node.name);
    const [left, top] = [x - boxWidth / 2, y - boxHeight / 2];
    const texts = lines.map(
      (line, index) =>
        `<text x="${round(left + PADDING)}" y="${round(top + (index + 1) * LINE_HEIGHT)}"${index === 0 ? ' font-weight="bold"' : ' fill="#475569"'}>${escapeMarkup(line)}</text>`,
    );
    return `<rect x="${round(left)}" y="${round(top)}" width="${round(boxWidth)}" height="${round(boxHeight)}" ${NODE_STYLES[node.kind]}/>${texts.join("")}`;
  });
  const notes = legend.map(
    (line, index) =>
      `<text x="20" y="${round(height + (index + 0.5) * LINE_HEIGHT)}" fill="#475569">${escapeMarkup(line)}</text>`,
  );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size}" font-family="ui-monospace, 'DejaVu Sans Mono', monospace" font-size="12">`,
    `<title>${escapeMarkup(graph.name)}</title>`,
    '<defs><marker id="arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L10 5L0 10z" fill="#475569"/></marker></defs>',
    '<rect width="100%" height="100%" fill="#ffffff"/>',
    ...edges,
    ...shapes,
    ...notes,
    "</svg>",
    "",
  ].join("\n");
}

function edgeWords({ edges }: WorkflowGraph): string[] {
  const kinds = new Set(edges.map(({ kind }) => kind));
  return [
    ...(kinds.has("optional") ? ["dashed line: optional, waits only while the other is active"] : []),
    ...(kinds.has("items") ? ["thick line: each item waits for the item with the same key"] : []),
    ...(kinds.has("events") ? ["dotted line: events"] : []),
  ];
}

function shorten(line: string): string {
  const characters = [...line];
  return characters.length > LONGEST_LINE ? `${characters.slice(0, LONGEST_LINE - 1).join("")}…` : line;
}

function round(value: number): string {
  return String(Math.round(value * 10) / 10);
}
