// Builds an image without a container engine: each stage is a folder, which is the root of its files, and each instruction of the Dockerfile
// is executed on it. Nothing is skipped: what is not known here is an error.
import dockerignore from "@balena/dockerignore";
import { Copy, DockerfileParser, Entrypoint, Env, From, JSONInstruction, type Instruction } from "dockerfile-ast";
import { copyFile, cp, mkdir, readdir, readFile, stat } from "node:fs/promises";
import { basename, dirname, join, posix, relative } from "node:path";
import { runOrThrow } from "./command.js";

/** What a Dockerfile makes. */
export interface Image {
  /** The folder that is the root of the container. */
  readonly root: string;
  readonly workdir: string;
  readonly env: { readonly [name: string]: string };
  /** As USER states it; empty for root. */
  readonly user: string;
  readonly entrypoint: readonly string[];
  /** The files that the Dockerfile added to its base image, relative to the root. */
  readonly files: readonly string[];
  /** The stages before, by their names. */
  readonly stages: ReadonlyMap<string, string>;
}

/** What an image is made of. */
export interface ImageOptions {
  /** The folder with Dockerfile and .dockerignore. */
  readonly context: string;
  /** Where the folders of the stages are made. */
  readonly folder: string;
  /** The program of the Node that the base images have. */
  readonly node: string;
}

interface Stage {
  readonly name: string;
  readonly root: string;
  /** A command that finds `node` of the base image, and a shell. Undefined in an image without one. */
  readonly run?: (command: string, options: { cwd: string; env: Stage["env"] }) => Promise<unknown>;
  readonly env: { [name: string]: string };
  readonly base: ReadonlySet<string>;
  workdir: string;
  user: string;
  entrypoint: readonly string[];
}

/** Executes the Dockerfile of a project. */
export async function buildImage({ context, folder, node }: ImageOptions): Promise<Image> {
  const dockerfile = DockerfileParser.parse(await readFile(join(context, "Dockerfile"), "utf8"));
  const ignored = dockerignore.default().add(await readFile(join(context, ".dockerignore"), "utf8"));
  const stages: Stage[] = [];
  for (const instruction of dockerfile.getInstructions()) {
    if (instruction instanceof From) {
      stages.push(await createStage(instruction, { root: join(folder, `stage-${stages.length}`), node }));
      continue;
    }
    const stage = stages.at(-1);
    if (stage === undefined) throw new Error(`${instruction.getKeyword()} before FROM`);
    if (instruction instanceof Copy) {
      const from = instruction.getFromFlag()?.getValue();
      const source = from === undefined ? undefined : stages.find(({ name }) => name === from);
      if (from !== undefined && source === undefined) throw new Error(`there is no stage ${from}`);
      const isWanted = (path: string) => source !== undefined || path === "" || !ignored.ignores(path);
      await copy(instruction, stage, { folder: source?.root ?? context, isWanted });
    } else await execute(instruction, stage);
  }
  const { root, workdir, env, user, entrypoint, base } = stages.at(-1)!;
  const files = (await filesBelow(root)).filter((file) => !base.has(file));
  return { root, workdir, env, user, entrypoint, files, stages: new Map(stages.map(({ name, root }) => [name, root])) };
}

async function createStage(from: From, { root, node }: { root: string; node: string }): Promise<Stage> {
  const create = baseImages[from.getImage() ?? ""];
  if (create === undefined) throw new Error(`${from.getImage()} is no base image that is known here`);
  if (from.getFlags().length > 0) throw new Error("flags of FROM are not known here");
  await mkdir(root);
  const run = await create(root, node);
  const base = new Set(await filesBelow(root));
  const state = { env: {}, base, workdir: "/", user: "", entrypoint: [] };
  return { name: from.getBuildStage() ?? "", root, ...(run && { run }), ...state };
}

type CreateBase = (root: string, node: string) => Promise<Stage["run"]>;

/** What is taken from base images: Node, with npm and a shell, or with the libraries of the system only. */
const baseImages: { readonly [image: string]: CreateBase } = {
  "node:24-slim": async (_root, node) => (command, options) => runOrThrow(["sh", "-c", command], { ...options, node }),
  "gcr.io/distroless/nodejs24-debian13:nonroot": async (root, node) => {
    const libraries = await runOrThrow(["ldd", node], { cwd: root });
    for (const [library] of libraries.matchAll(/\/\S+/g)) await place(library, join(root, library));
    await place(node, join(root, "nodejs/bin/node"));
    return undefined;
  },
};

async function place(file: string, target: string): Promise<void> {
  await mkdir(dirname(target), { recursive: true });
  await copyFile(file, target);
}

async function execute(instruction: Instruction, stage: Stage): Promise<void> {
  const keyword = instruction.getKeyword();
  const content = instruction.getArgumentsContent() ?? "";
  if (instruction.getVariables().length > 0) throw new Error(`variables of ${keyword} are not known here`);
  if (instruction instanceof Env) {
    for (const property of instruction.getProperties()) stage.env[property.getName()] = property.getValue() ?? "";
  } else if (instruction instanceof Entrypoint) {
    stage.entrypoint = instruction.getJSONStrings().map((each) => each.getJSONValue());
    if (stage.entrypoint.length === 0) throw new Error(`ENTRYPOINT has to be a list: ${content}`);
  } else if (keyword === "WORKDIR") {
    stage.workdir = posix.resolve(stage.workdir, content);
    await mkdir(join(stage.root, stage.workdir), { recursive: true });
  } else if (keyword === "USER") stage.user = content;
  else if (keyword === "RUN") {
    if (stage.run === undefined) throw new Error(`the image has no shell for RUN ${content}`);
    const isList = instruction instanceof JSONInstruction && instruction.getOpeningBracket() !== null;
    if (isList || (instruction as JSONInstruction).getFlags().length > 0)
      throw new Error(`RUN ${content} is not known here`);
    await stage.run(content, { cwd: join(stage.root, stage.workdir), env: stage.env });
  } else throw new Error(`${keyword} is not known here`);
}

interface CopySource {
  readonly folder: string;
  isWanted(path: string): boolean;
}

// https://docs.docker.com/reference/dockerfile/#copy: of a folder its content is copied.
async function copy(instruction: Copy, stage: Stage, { folder, isWanted }: CopySource): Promise<void> {
  const unknown = instruction.getFlags().filter((flag) => flag.getName() !== "from");
  if (unknown.length > 0) throw new Error(`COPY ${unknown.join(" ")} is not known here`);
  const paths = instruction.getArguments().map((argument) => argument.getValue());
  const target = paths.pop() ?? "";
  const isFolder = target.endsWith("/") || target === ".";
  if (paths.length > 1 && !isFolder) throw new Error(`COPY of several needs a folder, not ${target}`);
  for (const path of paths) {
    if (/[*?[\]$]/.test(path)) throw new Error(`COPY ${path} is not known here`);
    const source = join(folder, path);
    const isFile = (await stat(source)).isFile();
    if (!isWanted(relative(folder, source))) throw new Error(`COPY ${path} is left out by .dockerignore`);
    const destination = join(
      stage.root,
      posix.resolve(stage.workdir, target),
      isFile && isFolder ? basename(path) : "",
    );
    await mkdir(dirname(destination), { recursive: true });
    await cp(source, destination, { recursive: true, filter: (each) => isWanted(relative(folder, each)) });
  }
}

async function filesBelow(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => !entry.isDirectory())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
    .sort();
}

/** Returns the command that starts a container: its root is the folder of the image, and its user that of the image. */
export function containerCommand(image: Image, args: readonly string[]): string[] {
  const [uid, gid] = image.user.split(":");
  // Somebody who is not root may only be root of a namespace of users.
  const user = process.getuid?.() === 0 ? [`--setgid=${gid}`, `--setuid=${uid}`] : ["--map-root-user"];
  const root = ["unshare", ...user, `--root=${image.root}`, `--wd=${image.workdir}`];
  return [...root, ...image.entrypoint, ...args];
}

/** The environment of a container, for `env`: only what its image and its pod state. */
export function containerEnvironment(image: Image, pod: { readonly [name: string]: string }): string[] {
  return [
    "-i",
    "PATH=/usr/bin:/bin",
    ...Object.entries({ ...image.env, ...pod }).map(([name, value]) => `${name}=${value}`),
  ];
}
