// Builds the peer workload as a project for production in both supported ways: bundled, and with installed packages.
import { cp, mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { repositoryRoot } from "#test/support/repository.js";
import { runOrThrow } from "#test/e2e/command.js";

/** An operator as it is deployed in an image. */
export interface Deployed {
  /** The entry point for Node.js. */
  readonly main: string;
  /** The size of the files that the image needs besides Node.js, without source maps, in MB. */
  readonly megabytes: number;
}

interface PackageJson {
  readonly dependencies: { readonly [name: string]: string };
  readonly devDependencies: { readonly [name: string]: string };
  readonly overrides: object;
}

const WORKLOAD = join(repositoryRoot, "bench/peers-workload");
const TEMPLATES = join(repositoryRoot, "templates/project");

/**
 * Builds the workload in a folder as the Dockerfile of a new project does, once bundled and once with installed packages. `program` is the entry
 * point of the workload. Default: `main`
 */
export async function deployWorkload(
  folder: string,
  program = "main",
): Promise<{ bundled: Deployed; installed: Deployed }> {
  const project = join(folder, "project");
  const run = (...command: string[]) => runOrThrow(command, { cwd: project });
  await mkdir(project);
  await writeFile(join(project, "package.json"), await createManifest(folder));
  await cp(join(WORKLOAD, "src"), join(project, "src"), { recursive: true });
  await cp(join(WORKLOAD, "dist"), join(project, "dist/src"), { recursive: true });
  if (program !== "main") {
    await cp(join(project, `src/${program}.ts`), join(project, "src/main.ts"));
    await cp(join(project, `dist/src/${program}.js`), join(project, "dist/src/main.js"));
  }
  await cp(join(TEMPLATES, "bundle.js"), join(project, "bundle.js"));
  await run("npm", "install", "--prefer-offline");
  await run("node", "bundle.js");
  await run("npm", "prune", "--omit=dev");
  const sizes = await Promise.all(["dist/src", "node_modules"].map((path) => megabytesBelow(join(project, path))));
  return {
    bundled: {
      main: join(project, "dist/bundle/operator.mjs"),
      megabytes: await megabytesBelow(join(project, "dist/bundle")),
    },
    installed: { main: join(project, "dist/src/main.js"), megabytes: sizes.reduce((sum, size) => sum + size) },
  };
}

/** Creates a package.json as `init` does, with archives of our packages as compiled in this repository. */
async function createManifest(folder: string): Promise<string> {
  const text = await readFile(join(TEMPLATES, "package.json"), "utf8");
  const { dependencies, devDependencies, overrides } = JSON.parse(text) as PackageJson;
  const archives = await Promise.all(
    // The schema package is a dependency of the others, and no registry has it.
    [...Object.keys(dependencies), "@gen-operator/schema"].map(async (name) => {
      const pack = ["npm", "pack", "--ignore-scripts", "--workspace", name, "--pack-destination", folder];
      const archive = (await runOrThrow(pack, { cwd: repositoryRoot })).trim().split("\n").at(-1)!;
      return [name, `file:${join(folder, archive)}`] as const;
    }),
  );
  return JSON.stringify({
    private: true,
    type: "module",
    dependencies: Object.fromEntries(archives),
    devDependencies: { esbuild: devDependencies["esbuild"] },
    overrides: { ...overrides, ...Object.fromEntries(archives.map(([name]) => [name, `$${name}`])) },
  });
}

async function megabytesBelow(folder: string): Promise<number> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && !entry.name.endsWith(".map"));
  const sizes = await Promise.all(files.map(async (entry) => (await stat(join(entry.parentPath, entry.name))).size));
  return sizes.reduce((sum, size) => sum + size, 0) / 1e6;
}
