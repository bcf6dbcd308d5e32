import { basename } from "node:path";
import { type Diagnostic, counted } from "../diagnostic.js";
import { type GenerateResult, generate } from "../generate.js";
import { readSources } from "../read/project-files.js";
import { UNREADABLE_FILE } from "../read/rules.js";
import { describeSystemError, isSystemError } from "../system-error.js";
import { type Check, ok, skipped } from "./check.js";

/** Maximum number of files listed by name. */
const MOST_NAMED = 5;
const GENERATED = "generated code";
const STUBS = "stubs";
const STUB_PATH = /^src\/[^/]+\/(?:dependents|event-sources)\/[^/]+\.m?ts$/;

/** Checks the spec of a project, whether its generated code is up to date, and whether its stubs are complete and used. */
export async function checkCode(project: string, update: string): Promise<Check[]> {
  const { diagnostics, report } = await generate({ project, dryRun: true }).catch(problemOf);
  const spec = checkSpec(diagnostics, update);
  if (report === undefined)
    return [spec, skipped(GENERATED, "the spec has errors"), skipped(STUBS, "the spec has errors")];
  const missing = report.created.filter((path) => !isGenerated(path));
  const stale = [...report.created.filter(isGenerated), ...report.updated, ...report.deleted];
  return [
    spec,
    stale.length === 0
      ? ok(GENERATED, "up to date")
      : {
          name: GENERATED,
          outcome: "failed",
          message: `${counted(stale.length, "file")} ${stale.length === 1 ? "is" : "are"} stale`,
          details: named(stale),
          advice: `run ${update}`,
        },
    checkStubs({ missing, unused: await findOrphans(project, [...report.kept, ...report.created]) }, update),
  ];
}

/** Converts a system error, or a refusal of the generator, to a diagnostic. */
function problemOf(error: unknown): GenerateResult {
  const { message } = error as Error;
  if (!isSystemError(error) && !/^refused to /.test(message)) throw error;
  const said = isSystemError(error) ? describeSystemError(error) : message;
  return { diagnostics: [{ ...UNREADABLE_FILE.violation, message: said }] };
}

/** Finds files in the folders of stubs that are not stubs of the spec and that no user code imports. */
async function findOrphans(project: string, stubs: readonly string[]): Promise<string[]> {
  const sources = await readSources(project);
  const candidates = sources.filter(({ file }) => STUB_PATH.test(file) && !stubs.includes(file));
  return candidates.flatMap(({ file }) => {
    const specifier = `/${basename(file).replace(/\.(m?)ts$/, ".$1js")}"`;
    return sources.some((other) => other.file !== file && other.text.includes(specifier)) ? [] : [file];
  });
}

function checkSpec(diagnostics: readonly Diagnostic[], update: string): Check {
  const name = "spec";
  const errors = diagnostics.filter(({ severity }) => severity === "error");
  const warnings = diagnostics.length - errors.length;
  const found = [
    ...(errors.length > 0 ? [counted(errors.length, "error")] : []),
    ...(warnings > 0 ? [counted(warnings, "warning")] : []),
  ];
  if (found.length === 0) return ok(name, "no errors and no warnings");
  return {
    name,
    outcome: errors.length > 0 ? "failed" : "warning",
    message: found.join(", "),
    advice: `run ${update} to see ${diagnostics.length === 1 ? "it" : "them"}`,
  };
}

interface Stubs {
  readonly missing: readonly string[];
  readonly unused: readonly string[];
}

function checkStubs({ missing, unused }: Stubs, update: string): Check {
  if (missing.length > 0)
    return {
      name: STUBS,
      outcome: "failed",
      message: `${counted(missing.length, "file")} that generated code imports ${missing.length === 1 ? "is" : "are"} missing`,
      details: named(missing),
      advice: `run ${update} to write ${missing.length === 1 ? "it" : "them"}`,
    };
  if (unused.length === 0) return ok(STUBS, "all present, and all imported by generated code");
  return {
    name: STUBS,
    outcome: "warning",
    message: `${counted(unused.length, "file")} of an earlier spec ${unused.length === 1 ? "is" : "are"} no longer imported`,
    details: named(unused),
    advice: `delete ${unused.length === 1 ? "it" : "them"}, or move the code where it is needed`,
  };
}

function isGenerated(path: string): boolean {
  return /^(?:src|deploy)\/generated\//.test(path);
}

function named(paths: readonly string[]): string[] {
  const more = paths.length - MOST_NAMED;
  return more <= 1 ? [...paths] : [...paths.slice(0, MOST_NAMED), `and ${more} more`];
}
