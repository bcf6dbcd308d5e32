import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join, relative } from "node:path";
import { formatPosition, type Diagnostic } from "../diagnostic.js";
import { readPackageName } from "../input/project-files.js";
import { isRecord } from "../input/yaml/json.js";
import { packageFile } from "../package-file.js";
import { ok, type Check } from "./check.js";

/** The packages of ours that a project has. */
const OURS = ["gen-operator", "@gen-operator/runtime", "@gen-operator/kinds", "@gen-operator/apiserver"] as const;
const RUNTIME = "@gen-operator/runtime";
/** The oldest TypeScript that generated code is compiled with in our own tests. */
const OLDEST_TYPESCRIPT = "5.9.0";
/** The lock files of package managers; npm's can be read here. */
const LOCK_FILES = ["package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "yarn.lock", "bun.lock"];

/** Checks Node.js, TypeScript, the packages of a project and its lock file. */
export async function checkPackages(project: string): Promise<Check[]> {
  const generator = await readManifest(packageFile("package.json"));
  const node = checkNode(process.versions.node, String((generator["engines"] as { node?: unknown } | undefined)?.node));
  // Node.js finds no package from a package.json that it cannot read.
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

/** Checks a version of Node.js against the range of a `package.json`, such as `^20.19 || >=22.12`. */
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
      message: "the project has not installed typescript",
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
  // Tests alone need the API server, and a project may use no built-in kind.
  if (missing.includes(RUNTIME))
    return {
      name,
      outcome: "failed",
      message: `the project has not installed ${RUNTIME}, which generated code imports`,
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
    message: `this gen-operator is ${own}, but the project has installed ${different.join(", ")}`,
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
      message: "the project has none, so each installation may bring other versions",
      advice: "run npm install, and commit package-lock.json",
    };
  const shown = relative(project, file);
  const locked = /\.json$/.test(file) ? await lockedVersion(file, project) : undefined;
  if (locked === undefined || runtime === undefined || locked === runtime) return ok(name, shown);
  return {
    name,
    outcome: "failed",
    message: `${shown} has ${RUNTIME} ${locked}, and ${runtime} is installed`,
    advice: "run npm ci to install what it says, or npm install to change it",
  };
}

async function lockedVersion(file: string, project: string): Promise<string | undefined> {
  const { packages } = await readManifest(file);
  if (!isRecord(packages)) return undefined;
  // In a monorepo, a package may have its own copy.
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

/** Reads a JSON file; one that is missing or damaged says nothing. */
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

// As npm's ^: before 1.0 the second number stands for the first.
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
