import { join, relative } from "node:path";
import type ts from "typescript";
import { formatPosition, slashed } from "../diagnostic.js";
import { loadLibrary } from "../model/expression/library.js";
import { ok, type Check } from "./check.js";

const NAME = "tsconfig.json";

/** Checks that the compiler options of a project suit generated code; options of what it extends count, too. */
export function checkTsconfig(project: string): Check {
  const typescript = loadLibrary("typescript");
  const file = join(project, "tsconfig.json");
  const text = typescript.sys.readFile(file);
  if (text === undefined)
    return {
      name: NAME,
      outcome: "failed",
      message: "the project has none",
      advice: "run npx gen-operator init . --crd crds, which adds what is missing",
    };
  const { config, error } = typescript.parseConfigFileTextToJson(file, text);
  const parsed = typescript.parseJsonConfigFileContent(config ?? {}, typescript.sys, project);
  // That no file matches is no mistake here: before the first run there is no code.
  const problem = error ?? parsed.errors.find(({ code }) => code !== NO_INPUTS);
  if (problem !== undefined)
    return {
      name: NAME,
      outcome: "failed",
      message: `${placeOf(problem, project)}${typescript.flattenDiagnosticMessageText(problem.messageText, " ")}`,
      advice: "correct it; npx tsc --showConfig prints what TypeScript reads",
    };
  return judge(parsed.options, typescript);
}

function placeOf({ file, start }: ts.Diagnostic, project: string): string {
  if (file === undefined || start === undefined) return "";
  const { line, character } = file.getLineAndCharacterOfPosition(start);
  const position = { file: slashed(relative(project, file.fileName)), line: line + 1, column: character + 1 };
  return `${formatPosition(position)}: `;
}

// https://github.com/microsoft/TypeScript/blob/main/src/compiler/diagnosticMessages.json
const NO_INPUTS = 18003;

function judge(options: ts.CompilerOptions, typescript: typeof ts): Check {
  const needed = moduleProblems(options, typescript);
  const advised = ADVISED.filter(({ isSet }) => !isSet(options));
  const lacking = [...needed, ...advised];
  if (lacking.length === 0) return ok(NAME, "has what generated code needs");
  return {
    name: NAME,
    outcome: needed.length > 0 ? "failed" : "warning",
    message:
      needed.length > 0
        ? "generated code does not compile with these options"
        : "generated code compiles, but TypeScript finds less with these options",
    details: lacking.map(({ flag, why }) => `${flag}: ${why}`),
    advice: `set ${lacking.map(({ flag }) => flag).join(", ")} in compilerOptions`,
  };
}

/** An option that is missing, and the reason for it. */
interface Lacking {
  readonly flag: string;
  readonly why: string;
}

/** Generated code is made of ES modules, and imports paths that only the `exports` of packages tell. */
function moduleProblems(options: ts.CompilerOptions, typescript: typeof ts): Lacking[] {
  const { ModuleKind, ModuleResolutionKind } = typescript;
  const { module = ModuleKind.CommonJS, moduleResolution } = options;
  if (module < ModuleKind.ES2015)
    return [{ flag: '"module": "NodeNext"', why: "generated code consists of ES modules" }];
  const readsExports =
    moduleResolution === undefined ? module >= ModuleKind.Node16 : moduleResolution >= ModuleResolutionKind.Node16;
  const why = "generated code imports what the exports of a package name";
  return readsExports ? [] : [{ flag: '"moduleResolution": "NodeNext"', why }];
}

interface Advised extends Lacking {
  isSet(options: ts.CompilerOptions): boolean;
}

const ADVISED: readonly Advised[] = [
  {
    flag: '"strict": true',
    why: "without it, TypeScript accepts the use of a dependent that may be absent",
    isSet: ({ strict, strictNullChecks, strictFunctionTypes }) =>
      (strictNullChecks ?? strict) === true && (strictFunctionTypes ?? strict) === true,
  },
  {
    flag: '"exactOptionalPropertyTypes": true',
    why: "without it, a field may be set to undefined, which no API server stores",
    isSet: ({ exactOptionalPropertyTypes }) => exactOptionalPropertyTypes === true,
  },
  {
    flag: '"isolatedModules": true',
    why: "gen-operator dev compiles each file alone",
    isSet: ({ isolatedModules, verbatimModuleSyntax }) => isolatedModules === true || verbatimModuleSyntax === true,
  },
];
