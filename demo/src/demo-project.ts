import { execFile } from "node:child_process";
import { cp, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative, sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import type { ControllerDefinition, KubernetesObject, ResourceClass } from "@gen-operator/runtime";

const run = promisify(execFile);
const repository = fileURLToPath(new URL("../..", import.meta.url));
const sample = join(repository, "fixtures/samples/webpage");

/** The operator's module as it is compiled: its controllers and the classes of its kinds. */
export interface OperatorModule {
  readonly controllers: readonly ControllerDefinition[];
  readonly [kind: string]: unknown;
}

/** The sample as a user has it before the first `gen-operator generate`, in a folder that is removed at the end. */
export class DemoProject implements AsyncDisposable {
  readonly folder: string;

  private constructor(folder: string) {
    this.folder = folder;
  }

  /** Copies what the user writes: the CRD, the spec, and the functions to fill in. */
  static async create(): Promise<DemoProject> {
    const project = new DemoProject(await mkdtemp(join(tmpdir(), "gen-operator-demo-")));
    await cp(sample, project.folder, { recursive: true, filter: (file) => isUserOwned(relative(sample, file)) });
    await symlink(join(repository, "node_modules"), join(project.folder, "node_modules"), "dir");
    await writeFile(
      join(project.folder, "package.json"),
      JSON.stringify({ name: "webpage", private: true, type: "module" }),
    );
    await writeFile(join(project.folder, "tsconfig.json"), JSON.stringify(TSCONFIG));
    return project;
  }

  /** The CRD of the sample. */
  get crdFile(): string {
    return join(this.folder, "crds/webpages.example.com.yaml");
  }

  /** Runs the generator's command and returns what it printed. */
  generate(): Promise<string> {
    return this.#node(join(repository, "generator/bin/gen-operator.js"), "generate", "--project", this.folder);
  }

  /** Type-checks and compiles the project. */
  async compile(): Promise<void> {
    await this.#node(join(repository, "node_modules/typescript-7/bin/tsc"), "--project", this.folder);
  }

  /** Loads the compiled operator. */
  async load(): Promise<OperatorModule> {
    return (await import(pathToFileURL(join(this.folder, "dist/generated/index.js")).href)) as OperatorModule;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
  }

  async #node(...args: string[]): Promise<string> {
    try {
      const { stdout, stderr } = await run(process.execPath, args, { cwd: this.folder });
      return stdout + stderr;
    } catch (error) {
      const { stdout = "", stderr = "" } = error as { stdout?: string; stderr?: string };
      throw new Error(`${relative(repository, args[0] ?? "")} failed:\n${stdout}${stderr}`, { cause: error });
    }
  }
}

/** Returns a generated class by the name of its kind. */
export function kindOf<Resource extends KubernetesObject>(
  operator: OperatorModule,
  kind: string,
): ResourceClass<Resource> {
  const found = operator[kind];
  if (found === undefined) throw new Error(`the generated operator exports no ${kind}`);
  return found as ResourceClass<Resource>;
}

const TSCONFIG = {
  compilerOptions: {
    target: "ES2022",
    lib: ["ES2023", "ESNext.Disposable"],
    module: "NodeNext",
    types: ["node"],
    rootDir: "src",
    outDir: "dist",
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    verbatimModuleSyntax: true,
    skipLibCheck: true,
  },
  include: ["src"],
};

function isUserOwned(path: string): boolean {
  const [first, second] = path.split(sep);
  return !["dist", "node_modules", "tsconfig.json", "test"].includes(first ?? "") && second !== "generated";
}
