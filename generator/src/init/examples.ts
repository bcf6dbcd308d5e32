import { readFile, readdir } from "node:fs/promises";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { slashed } from "../diagnostic.js";
import type { OutputFile } from "../emit/output-file.js";

/** Descriptions of the examples, by name. */
export const EXAMPLES = {
  webpage: "a ConfigMap, a Deployment, a Service, and an Ingress while the page is exposed",
  tomcat: "two controllers; one waits for objects of the other",
  bulk: "a Deployment for each entry of a list",
  podwatch: "event sources: objects that others write, and a poll",
  standalone: "workflows that code starts itself",
  external: "resources outside of the cluster, by an HTTP API",
  "mysql-schema": "schemas of a MySQL server",
} as const;

/** Name of an example. */
export type ExampleName = keyof typeof EXAMPLES;

/** An example project, without the files that all projects have in common. */
export interface Example {
  readonly files: readonly OutputFile[];
  /** Additional packages that its code requires. */
  readonly dependencies: { readonly [name: string]: string };
}

const DEPENDENCIES: { readonly [Name in ExampleName]?: Example["dependencies"] } = {
  "mysql-schema": { mysql2: "^3.24.6" },
};

// In the repository, the samples are used as examples.
const FOLDERS = ["examples/", "../fixtures/samples/"].map((folder) =>
  fileURLToPath(new URL(folder, import.meta.resolve("@gen-operator/templates/package.json"))),
);
const WRITTEN_BY_OTHERS = /^(?:deploy|dist|node_modules|src\/generated)\/|^(?:README\.md|tsconfig\.json)$/;

/** Reads the files of an example, except generated files and those that all projects have in common. */
export async function readExample(name: ExampleName): Promise<Example> {
  for (const folder of FOLDERS) {
    const root = join(folder, name);
    const paths = await listFiles(root);
    if (paths.length === 0) continue;
    const files = paths.map(async (path): Promise<OutputFile> => {
      const text = await readFile(join(root, path), "utf8");
      return { path, owner: "user", content: text.replace(SCHEMA_IN_REPOSITORY, SCHEMA_IN_PROJECT) };
    });
    return { files: await Promise.all(files), dependencies: DEPENDENCIES[name] ?? {} };
  }
  throw new Error(`the package @gen-operator/templates lacks the example ${name}`);
}

const SCHEMA_IN_REPOSITORY = /(?<=^# yaml-language-server: \$schema=).*(?=\/data\/workflow\.schema\.json$)/m;
const SCHEMA_IN_PROJECT = "node_modules/gen-operator";

/** Adds the dependencies of an example to the text of a package.json. */
export function addDependencies(packageText: string, { dependencies }: Example): string {
  const manifest = JSON.parse(packageText) as { dependencies: object };
  const all = Object.entries({ ...manifest.dependencies, ...dependencies }).sort(([left], [right]) =>
    left < right ? -1 : 1,
  );
  return `${JSON.stringify({ ...manifest, dependencies: Object.fromEntries(all) }, undefined, 2)}\n`;
}

async function listFiles(root: string): Promise<string[]> {
  const entries = await readdir(root, { recursive: true, withFileTypes: true }).catch(() => []);
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => slashed(relative(root, join(entry.parentPath, entry.name))))
    .filter((path) => !WRITTEN_BY_OTHERS.test(path))
    .sort();
}
