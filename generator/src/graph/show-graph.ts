import { resolve } from "node:path";
import { buildModel } from "../check/build-model.js";
import { type Diagnostic, didYouMean, hasErrors, quote, sortDiagnostics } from "../diagnostic.js";
import { readProject } from "../read/read-project.js";
import { UNKNOWN_CONTROLLER } from "../read/rules.js";
import { type WorkflowGraph, buildGraph } from "./workflow-graph.js";

/** Output formats of a graph. */
export const GRAPH_OUTPUTS = ["text", "mermaid", "dot", "svg"] as const;

/** Options of {@link showGraph}. */
export interface GraphOptions {
  readonly project: string;
  readonly output: (typeof GRAPH_OUTPUTS)[number];
  /** The controller to show. Default: all; SVG can only show one */
  readonly controller?: string;
}

/** The rendered graphs, or the problems that prevent rendering. */
export interface GraphResult {
  readonly diagnostics: readonly Diagnostic[];
  readonly text?: string;
}

/** Renders the dependents of a project with their order, conditions, and event sources. */
export async function showGraph({ project, output, controller }: GraphOptions): Promise<GraphResult> {
  const input = await readProject(resolve(project));
  if (hasErrors(input.diagnostics)) return { diagnostics: sortDiagnostics(input.diagnostics) };
  const { model, diagnostics } = await buildModel(input);
  const found = sortDiagnostics([...input.diagnostics, ...diagnostics].filter(({ severity }) => severity === "error"));
  if (model === undefined) return { diagnostics: found };
  const chosen = model.controllers.filter(({ name }) => controller === undefined || name === controller);
  const names = model.controllers.map(({ name }) => name).sort();
  if (output === "svg" && chosen.length > 1)
    return fail("--output svg can show only one controller", `set --controller to one of ${names.join(", ")}`);
  if (chosen.length === 0) {
    const meant = didYouMean(controller ?? "", names)?.hint ?? `known controllers: ${names.join(", ")}`;
    return fail(`controller ${quote(controller ?? "")} not found in the project`, meant);
  }
  const render = await loadRenderer(output);
  return { diagnostics: found, text: render(chosen.map((each) => buildGraph(each))) };
}

function fail(message: string, hint: string): GraphResult {
  return { diagnostics: [{ ...UNKNOWN_CONTROLLER.violation, message, hint }] };
}

async function loadRenderer(output: GraphOptions["output"]): Promise<(graphs: readonly WorkflowGraph[]) => string> {
  const { renderDot, renderMermaid } = await import("./render-text.js");
  if (output === "mermaid") return renderMermaid;
  const render = output === "dot" ? renderDot : await loadPlainRenderer(output);
  return (graphs) => graphs.map(render).join("\n");
}

async function loadPlainRenderer(output: "text" | "svg"): Promise<(graph: WorkflowGraph) => string> {
  return output === "text"
    ? (await import("./render-text.js")).renderText
    : (await import("./render-svg.js")).renderSvg;
}
