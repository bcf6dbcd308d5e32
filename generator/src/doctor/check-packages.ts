import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join, relative } from "node:path";
import type ts from "typescript";
import { type Diagnostic, formatPosition, slashed } from "../diagnostic.js";
import { loadLibrary } from "../model/typescript.js";
import { packageFile } from "../package-file.js";
import { readPackageName } from "../read/project-files.js";
import { isRecord } from "../read/yaml/values.js";
import { type Check, ok } from "./check.js";

/** Packages of gen-operator that a project may have installed. */
const OURS = ["gen-operator", "@gen-operator/runtime", "@gen-operator/kinds", "@gen-operator/apiserver"] as const;
const RUNTIME = "@gen-operator/runtime";
/** The oldest TypeScript version that the tests compile generated code with. */
const OLDEST_TYPESCRIPT = "5.9.0";
/** Lock files of package managers. Only those of npm are parsed. */
const LOCK_FILES = ["package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "yarn.lock", "bun.lock"];

/** Checks Node.js, TypeScript, the packages of a project, and its lock file. */
export async function checkPackages(project: string): Promise<Check[]> {
  const generator = await readManifest(packageFile("package.json"));
  const node = checkNode(process.versions.node, String((generator["engines"] as { node?: unknown } | undefined)?.node));
  // Node.js cannot resolve packages from a package.json that it cannot parse.
  const { problem } = await readPackageName(project);
  if (problem !== undefined) return [node, damaged(problem)];
  const versions = new Map<string, string | undefined>();
  for (const name of [...OURS, "typescript"]) versions.set(name, await installedVersion(project, name));
  return [
    node,
    checkTypeScript(versions.get("typescript")),
    checkOurs(String(generator["version"]), versions),
    await checkLockFile(project, versions.get(RUNTIME)),
  ];
}

function damaged({ message, position, hint }: Diagnostic): Check {
  const place = position === undefined ? "" : `${formatPosition(position)}: `;
  return { name: "package.json", outcome: "failed", message: place + message, advice: hint ?? "correct it" };
}

/** Checks a version of Node.js against the `engines` range of a package.json, for example `^20.19 || >=22.12`. */
export function checkNode(version: string, range: string): Check {
  const isSupported = range.split("||").some((each) => {
    const [, sign = "", least = ""] = /^\s*(\^|>=)\s*(\d+(?:\.\d+)*)\s*$/.exec(each) ?? [];
    if (sign === "" || !isAtLeast(version, least)) return false;
    return sign === ">=" || version.split(".")[0] === least.split(".")[0];
  });
  if (isSupported) return ok("Node.js", version);
  return {
    name: "Node.js",
    outcome: "failed",
    message: `${version} is not supported: gen-operator needs ${range}`,
    advice: "install a newer Node.js",
  };
}

function checkTypeScript(version: string | undefined): Check {
  const name = "TypeScript";
  if (version === undefined)
    return {
      name,
      outcome: "failed",
      message: "typescript is not installed in the project",
      advice: "run npm install, or npm install --save-dev typescript",
    };
  if (isAtLeast(version, OLDEST_TYPESCRIPT)) return ok(name, version);
  return {
    name,
    outcome: "warning",
    message: `${version} is older than ${OLDEST_TYPESCRIPT}, the oldest version that generated code is tested with`,
    advice: "run npm install --save-dev typescript@latest",
  };
}

function checkOurs(own: string, versions: ReadonlyMap<string, string | undefined>): Check {
  const name = "packages";
  const missing = OURS.filter((each) => versions.get(each) === undefined);
  // The other packages are optional: only tests need the API server, and a project may use no built-in kind.
  if (missing.includes(RUNTIME))
    return {
      name,
      outcome: "failed",
      message: `${RUNTIME} is not installed in the project, but generated code imports it`,
      advice: `run npm install, or npm install ${RUNTIME}@${own}`,
    };
  const different = OURS.flatMap((each) => {
    const version = versions.get(each);
    return version === undefined || isCompatible(version, own) ? [] : [`${each} ${version}`];
  });
  if (different.length === 0) {
    const lacking = missing.length === 0 ? "" : ` (not installed: ${missing.join(", ")})`;
    return ok(name, `gen-operator ${own}, runtime ${versions.get(RUNTIME)}${lacking}`);
  }
  return {
    name,
    outcome: "failed",
    message: `version mismatch: gen-operator is ${own}, but the project has ${different.join(", ")}`,
    advice: `run npm install ${different.map((each) => `${each.split(" ")[0]}@${own}`).join(" ")}, then npx gen-operator generate`,
  };
}

async function checkLockFile(project: string, runtime: string | undefined): Promise<Check> {
  const name = "lock file";
  const file = await findUpwards(project, LOCK_FILES);
  if (file === undefined)
    return {
      name,
      outcome: "warning",
      message: "not found, so each installation may resolve to other versions",
      advice: "run npm install, and commit package-lock.json",
    };
  const shown = relative(project, file);
  const locked = /\.json$/.test(file) ? await lockedVersion(file, project) : undefined;
  if (locked === undefined || runtime === undefined || locked === runtime) return ok(name, shown);
  return {
    name,
    outcome: "failed",
    message: `${shown} has ${RUNTIME} ${locked}, but ${runtime} is installed`,
    advice: "run npm ci to install the locked version, or npm install to update the lock file",
  };
}

async function lockedVersion(file: string, project: string): Promise<string | undefined> {
  const { packages } = await readManifest(file);
  if (!isRecord(packages)) return undefined;
  // In a monorepo, a workspace may have its own copy.
  const inside = relative(dirname(file), project).split("\\").join("/");
  const paths = [...(inside === "" ? [] : [`${inside}/node_modules/${RUNTIME}`]), `node_modules/${RUNTIME}`];
  const found = paths.map((path) => packages[path]).find(isRecord)?.["version"];
  return typeof found === "string" ? found : undefined;
}

async function findUpwards(folder: string, names: readonly string[]): Promise<string | undefined> {
  for (let at = folder; ; at = dirname(at)) {
    for (const name of names) if ((await readText(join(at, name))) !== undefined) return join(at, name);
    if (dirname(at) === at || (await readText(join(at, ".git/HEAD"))) !== undefined) return undefined;
  }
}

async function installedVersion(project: string, name: string): Promise<string | undefined> {
  try {
    const file = createRequire(join(project, "package.json")).resolve(`${name}/package.json`);
    const { version } = await readManifest(file);
    return typeof version === "string" ? version : undefined;
  } catch {
    return undefined;
  }
}

/** Reads a JSON file; empty if it is missing or invalid. */
async function readManifest(file: string | URL): Promise<{ readonly [field: string]: unknown }> {
  try {
    const read: unknown = JSON.parse((await readText(file)) ?? "{}");
    return isRecord(read) ? read : {};
  } catch {
    return {};
  }
}

async function readText(file: string | URL): Promise<string | undefined> {
  try {
    return await readFile(file, "utf8");
  } catch {
    return undefined;
  }
}

// Like the ^ range of npm: below 1.0, the minor version must match.
function isCompatible(version: string, own: string): boolean {
  const [major, minor] = version.split(".");
  const [ownMajor, ownMinor] = own.split(".");
  return major === ownMajor && (major !== "0" || minor === ownMinor);
}

function isAtLeast(version: string, least: string): boolean {
  const [have, want] = [version, least].map((each) => each.split(/[.-]/).map(Number));
  for (const [index, number] of (want ?? []).entries()) {
    const own = have?.[index] ?? 0;
    if (own !== number) return own > number;
  }
  return true;
}

const NAME = "tsconfig.json";

/** Checks that the compiler options of a project, including those of extended files, suit generated code. */
export function checkTsconfig(project: string): Check {
  const typescript = loadLibrary("typescript");
  const file = join(project, "tsconfig.json");
  const text = typescript.sys.readFile(file);
  if (text === undefined)
    return {
      name: NAME,
      outcome: "failed",
      message: "not found in the project",
      advice: "run npx gen-operator init . --crd crds to add it",
    };
  const { config, error } = typescript.parseConfigFileTextToJson(file, text);
  const parsed = typescript.parseJsonConfigFileContent(config ?? {}, typescript.sys, project);
  // A project without matching files is valid: there is no code before the first generation.
  const problem = error ?? parsed.errors.find(({ code }) => code !== NO_INPUTS);
  if (problem !== undefined)
    return {
      name: NAME,
      outcome: "failed",
      message: `${placeOf(problem, project)}${typescript.flattenDiagnosticMessageText(problem.messageText, " ")}`,
      advice: "correct it; run npx tsc --showConfig to see what TypeScript reads",
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
  if (lacking.length === 0) return ok(NAME, "has the options that generated code requires");
  return {
    name: NAME,
    outcome: needed.length > 0 ? "failed" : "warning",
    message:
      needed.length > 0
        ? "generated code does not compile with these options"
        : "generated code compiles, but TypeScript misses errors with these options",
    details: lacking.map(({ flag, why }) => `${flag}: ${why}`),
    advice: `set ${lacking.map(({ flag }) => flag).join(", ")} in compilerOptions`,
  };
}

/** A missing compiler option, with the reason why it is needed. */
interface Lacking {
  readonly flag: string;
  readonly why: string;
}

/** Checks the module options: generated code consists of ES modules, and imports paths that are defined by the `exports` of packages. */
function moduleProblems(options: ts.CompilerOptions, typescript: typeof ts): Lacking[] {
  const { ModuleKind, ModuleResolutionKind } = typescript;
  const { module = ModuleKind.CommonJS, moduleResolution } = options;
  if (module < ModuleKind.ES2015)
    return [{ flag: '"module": "NodeNext"', why: "generated code consists of ES modules" }];
  const readsExports =
    moduleResolution === undefined ? module >= ModuleKind.Node16 : moduleResolution >= ModuleResolutionKind.Node16;
  const why = "generated code imports paths that packages define in exports";
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
