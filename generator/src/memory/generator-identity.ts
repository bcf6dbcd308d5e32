import { existsSync, readdirSync, readFileSync, realpathSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { packageFile } from "../package-file.js";
import { digestOf } from "../parts/digest.js";

const require = createRequire(import.meta.url);

let identity: string | undefined;

/**
 * Returns a text that changes with the generator: its code, its data, the libraries that it loads, and Node.
 *
 * A version alone does not tell builds of a checkout apart, so times and sizes of files count, too.
 */
export function generatorIdentity(): string {
  return (identity ??= digestOf(...partsOfGenerator()));
}

function partsOfGenerator(): string[] {
  const own = fileURLToPath(packageFile(""));
  const { dependencies = {}, devDependencies = {} } = packageAt(own);
  // What it is developed with is a part of the published program, which has no sources.
  const loaded = existsSync(join(own, "src")) ? { ...dependencies, ...devDependencies } : dependencies;
  return [
    process.version,
    ...stampsBelow(own),
    ...Object.keys(loaded).flatMap((name) => {
      const folder = locate(name);
      if (folder === undefined) return [`${name} is missing`];
      // Templates are read as they are; what is compiled has a file that tells when.
      if (name === "@gen-operator/templates") return stampsBelow(folder);
      const stamps = [stampOf(join(folder, "package.json")), stampOf(join(folder, "dist/.tsbuildinfo"))];
      return [name, packageAt(folder).version ?? "", ...stamps];
    }),
  ];
}

interface Manifest {
  readonly version?: string;
  readonly dependencies?: object;
  readonly devDependencies?: object;
}

function packageAt(folder: string): Manifest {
  return JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Manifest;
}

function locate(name: string): string | undefined {
  const found = (require.resolve.paths(name) ?? [])
    .map((folder) => join(folder, name))
    .find((folder) => existsSync(join(folder, "package.json")));
  return found === undefined ? undefined : realpathSync.native(found);
}

/** What is not part of a package when it runs, or only starts the program: npm changes the state of that whenever it links a package. */
const NOT_RUN: ReadonlySet<string> = new Set(["node_modules", "src", "docs", "bin"]);

function stampsBelow(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (NOT_RUN.has(entry.name) || /\.(?:map|d\.ts)$/.test(entry.name)) return [];
    return entry.isDirectory() ? stampsBelow(path) : [stampOf(path)];
  });
}

function stampOf(path: string): string {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats === undefined ? "" : `${path} ${stats.size} ${stats.mtimeMs} ${stats.ctimeMs}`;
}
