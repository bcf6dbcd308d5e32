// npm run try -- FOLDER [OPTION...]: a project as `gen-operator init` makes it, which needs no registry that has the packages: they lie in its
// folder packages/, so it installs, builds and tests wherever it is moved, in an image and in continuous integration, too.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";

interface PackageJson {
  dependencies?: Record<string, string>;
  devDependencies?: Record<string, string>;
  overrides?: Record<string, string>;
}

const repository = fileURLToPath(new URL("../..", import.meta.url));
const generator = join(repository, "generator/bin/gen-operator.js");
const PACKAGES = "packages";
const INSTALL = "RUN npm ci";

/** Runs a command; ends this process with its exit code if it fails. */
function run(program: string, args: readonly string[], cwd: string, output: "inherit" | "ignore" = "inherit"): void {
  const { status, error } = spawnSync(program, args, { cwd, stdio: ["inherit", output, "inherit"] });
  if (error !== undefined) throw error;
  if (status !== 0) process.exit(status ?? 1);
}

/** Lets what a project depends on, and what that depends on, be one of the archives in its folder. */
function useArchives(folder: string): void {
  const file = join(folder, "package.json");
  const project = JSON.parse(readFileSync(file, "utf8")) as PackageJson;
  const overrides = { ...project.overrides };
  for (const archive of readdirSync(join(folder, PACKAGES))) {
    const name = archive.replace(/-\d.*$/, "").replace(/^gen-operator-/, "@gen-operator/");
    const path = `file:${PACKAGES}/${archive}`;
    const section = [project.dependencies, project.devDependencies].find((each) => each?.[name] !== undefined);
    if (section !== undefined) section[name] = path;
    overrides[name] = section === undefined ? path : `$${name}`;
  }
  writeFileSync(file, `${JSON.stringify({ ...project, overrides }, undefined, 2)}\n`);
}

/** Lets the image have the archives before it installs them. */
function copyArchives(folder: string): void {
  const file = join(folder, "Dockerfile");
  if (!existsSync(file)) return;
  const text = readFileSync(file, "utf8");
  if (!text.includes(`COPY ${PACKAGES} `))
    writeFileSync(file, text.replace(INSTALL, `COPY ${PACKAGES} ./${PACKAGES}\n${INSTALL}`));
}

const [given, ...options] = process.argv.slice(2);
if (given === undefined || given.startsWith("-")) {
  console.error("name the folder of the new project: npm run try -- FOLDER, with options of gen-operator init");
  process.exit(2);
}
// npm runs scripts in the folder of package.json.
const from = process.env["INIT_CWD"] ?? process.cwd();
const folder = resolve(from, given);
run(process.execPath, [generator, "init", folder, ...options], from);
const archives = join(folder, PACKAGES);
rmSync(archives, { recursive: true, force: true });
mkdirSync(archives, { recursive: true });
run("npm", ["pack", "--workspaces", "--loglevel", "error", "--pack-destination", archives], repository, "ignore");
useArchives(folder);
copyArchives(folder);
console.log(
  `\nThe packages are in ${relative(from, archives) || archives}. Next: cd ${relative(from, folder) || "."} && npm install && npm test`,
);
