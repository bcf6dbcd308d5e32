import { readFile, realpath } from "node:fs/promises";
import { join, resolve } from "node:path";
import { buildModel } from "../check/build-model.js";
import { type Diagnostic, hasErrors, sortDiagnostics } from "../diagnostic.js";
import type { CacheModel } from "../model/project-model.js";
import { readSources } from "../read/project-files.js";
import { readProject } from "../read/read-project.js";
import type { CacheSpec, EventSourceSpec, WorkflowSpec } from "../read/workflow-spec.js";
import { setYamlField } from "../read/yaml/edit-yaml.js";
import { diskOperations, writeFileAtOnce } from "../write/write-files.js";
import type { CacheSuggestion } from "./cache-suggestions.js";

/** Options of {@link suggestCaches}. */
export interface SuggestOptions {
  /** Folder of the workflow specs. Default: the working directory */
  readonly project?: string;
  /** Write nothing. Default: false */
  readonly dryRun?: boolean;
  /** Called with a description of each step as it starts, for progress output. */
  readonly onStep?: (step: string) => void;
}

/** Result of {@link suggestCaches}. */
export interface SuggestResult {
  readonly diagnostics: readonly Diagnostic[];
  /** The suggestions with their reasons, one line per suggestion. */
  readonly report: readonly string[];
  /** Specs that were changed, or would be with `dryRun`. */
  readonly updated: readonly string[];
}

/** Writes suggested caches for event sources into the workflow specs of a project, based on the fields that its code reads. */
export async function suggestCaches(options: SuggestOptions = {}): Promise<SuggestResult> {
  const { project = ".", dryRun = false, onStep = () => {} } = options;
  const root = resolve(project);
  const input = await readProject(root, { onStep });
  const nothing = { report: [], updated: [] };
  if (hasErrors(input.diagnostics)) return { diagnostics: sortDiagnostics(input.diagnostics), ...nothing };
  const { model, diagnostics, locate } = await buildModel(input);
  if (model === undefined) return { diagnostics: sortDiagnostics([...input.diagnostics, ...diagnostics]), ...nothing };

  onStep("analyzing your code");
  const [{ suggestCaches: suggest }, { unlessTooDeep }, sources] = await Promise.all([
    import("./cache-suggestions.js"),
    import("../code/source-program.js"),
    readSources(root),
  ]);
  const code = sources.map(({ file, text }) => ({ path: file, text }));
  const suggestions = unlessTooDeep(() => suggest(model, code, locate), "error");
  if ("rule" in suggestions) return { diagnostics: [suggestions], ...nothing };
  const texts = new Map<string, string>();
  const report: string[] = [];
  for (const suggestion of suggestions) {
    const { name, specFile } = suggestion.controller;
    const spec = input.workflows.find((each) => each.name === name && each.document.file === specFile);
    if (spec === undefined) continue;
    const label = model.controllers.length > 1 ? `${name}.${suggestion.source.name}` : suggestion.source.name;
    for (const { line, field } of linesOf(suggestion, spec)) {
      const before = texts.get(specFile) ?? (await readFile(join(root, specFile), "utf8"));
      const path = ["spec", "eventSources", suggestion.source.name];
      const after = field === undefined ? before : setYamlField(before, { document: name, path, ...field });
      report.push(
        `${label}: ${line}${after === undefined ? "; add it manually: it cannot be added without reformatting" : ""}`,
      );
      if (after !== undefined && after !== before) texts.set(specFile, after);
    }
  }
  if (!dryRun)
    for (const [file, text] of texts)
      await writeFileAtOnce(await realpath(join(root, file)), text, { owner: "generator", operations: diskOperations });
  return { diagnostics: [], report, updated: [...texts.keys()] };
}

interface Line {
  readonly line: string;
  /** The field to set. Absent if nothing changes. */
  readonly field?: { readonly key: "cache" | "labelSelector"; readonly value: unknown };
}

function linesOf({ cache, reason, selector, source }: CacheSuggestion, { eventSources }: WorkflowSpec): Line[] {
  const stated = eventSources.get(source.name);
  const lines = [cacheLine(cache, reason, stated)];
  if (selector?.kind === "none") lines.push({ line: `no labelSelector: ${selector.reason}` });
  if (selector?.kind === "selector") {
    const { labelSelector: value } = selector;
    lines.push({
      line: `labelSelector: ${value} (its mapping finds no primary of other objects)`,
      field: { key: "labelSelector", value },
    });
  }
  return lines;
}

function cacheLine(cache: CacheSuggestion["cache"], reason: string, stated: EventSourceSpec | undefined): Line {
  if (cache === undefined) return { line: `no cache: ${reason}` };
  const value = specOf(cache);
  const text = `cache: ${typeof value === "string" ? value : `{ paths: [${value.paths.join(", ")}] }`} (${reason})`;
  if (stated?.cache === "full") return { line: `cache: full, as set; sufficient: ${text.slice("cache: ".length)}` };
  const isStated = JSON.stringify(sorted(stated?.cache)) === JSON.stringify(sorted(value));
  return isStated ? { line: `${text}, as set` } : { line: text, field: { key: "cache", value } };
}

function specOf(cache: Exclude<CacheModel, { kind: "full" }>): Exclude<CacheSpec, "full"> {
  return cache.kind === "metadata" ? "metadata" : { paths: [...cache.paths] };
}

function sorted(cache: CacheSpec | undefined): unknown {
  return typeof cache === "object" ? [...cache.paths].sort() : cache;
}
