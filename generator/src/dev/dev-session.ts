import { join, relative } from "node:path";
import { formatDiagnostic, hasErrors, shellWord } from "../diagnostic.js";
import { generate } from "../generate.js";
import type { Crd } from "../read/crd/read-crds.js";
import { readProject } from "../read/read-project.js";
import { describeSystemError, isSystemError } from "../system-error.js";
import { Transpiler } from "./code/transpile.js";
import { type CodeProblem, type TypeChecker, createTypeChecker, formatProblem } from "./code/type-check.js";
import { DevCluster } from "./dev-cluster.js";
import { DevFolder } from "./dev-folder.js";
import { LiveTable, type LiveTableOptions } from "./live-table.js";
import type { HostMessage } from "./operator/operator-host.js";
import { OperatorProcess, formatLogLine } from "./operator/operator-process.js";
import { findPackages } from "./project-packages.js";
import { isSpecFile, watchProject } from "./watch-project.js";

/** Options of {@link runDev}. */
export interface DevOptions extends LiveTableOptions {
  /** Absolute path of the project. */
  readonly project: string;
  /** Kubeconfig of a cluster to use instead of an embedded API server. */
  readonly kubeconfig?: string;
  /** Flags of the operator. */
  readonly args: readonly string[];
  /** Ends the session. */
  readonly signal: AbortSignal;
}

/**
 * Runs the operator of a project. After each change of a CRD, the spec, or code, generates, compiles, checks types, and restarts the operator.
 *
 * While there are errors, the operator keeps running with the last valid code. Resolves when the signal is aborted.
 */
export async function runDev(options: DevOptions): Promise<void> {
  const { project, kubeconfig, signal } = options;
  const table = new LiveTable(options);
  const packages = await findPackages(project);
  const folder = await DevFolder.open(project);
  const opened: AsyncDisposable[] = [folder];
  const use = <Resource extends AsyncDisposable>(resource: Resource): Resource => {
    opened.push(resource);
    return resource;
  };
  try {
    // The first check is the slowest, so start it early.
    const checker = use(await createTypeChecker(project, packages.typescriptFolder));
    void checker.check().catch(() => {});
    const given = kubeconfig === undefined ? {} : { kubeconfig };
    const cluster = use(await DevCluster.open({ packages, ...given, kubeconfigFile: folder.kubeconfig }));
    table.step(`${cluster.isEmbedded ? "embedded API server" : "cluster"} at ${cluster.address}`);
    table.note(`export KUBECONFIG=${shellWord(relative(process.cwd(), cluster.kubeconfig) || cluster.kubeconfig)}`);
    const operator: OperatorProcess = use(
      new OperatorProcess({
        ...{ project, args: options.args, kubeconfig: cluster.kubeconfig, runtime: packages.runtimeFile },
        entry: join(folder.path, "src/main.js"),
        onMessage: (message) => session.onMessage(message),
        onLine: (line) => table.print(formatLogLine(line)),
        onCrash: (description) => table.step(`operator exited (${description}); it restarts after the next change`),
      }),
    );
    const transpiler = new Transpiler({ project, outFolder: folder.path, esbuild: packages.esbuild });
    const session = new DevSession({ project, folder, table, cluster, checker, operator, transpiler });
    const watch = use(watchProject(project, (paths) => session.onChange(paths)));
    await watch.ready;
    folder.watch(() => session.onChange(new Set()));
    session.onChange(new Set(["workflow.yaml", "examples/"]));
    await new Promise<void>((resolve) => {
      if (signal.aborted) resolve();
      else signal.addEventListener("abort", () => resolve(), { once: true });
    });
    await session.close();
  } finally {
    for (const resource of opened.reverse()) await resource[Symbol.asyncDispose]();
  }
}

interface SessionParts {
  readonly project: string;
  readonly folder: DevFolder;
  readonly table: LiveTable;
  readonly cluster: DevCluster;
  readonly checker: TypeChecker;
  readonly operator: OperatorProcess;
  readonly transpiler: Transpiler;
}

/** Updates the operator, one change at a time. A step that fails is repeated with the next change. */
class DevSession {
  readonly #parts: SessionParts;
  #crds: readonly Crd[] = [];
  #needsGenerate = false;
  #needsExamples = false;
  /** True if the compiled code is newer than the running operator. */
  #needsRestart = false;
  #needsCheck = false;
  #changedAt: number | undefined;
  /** When the change that caused the current start was detected. */
  #startedFor: number | undefined;
  #running: Promise<void> = Promise.resolve();
  #isClosed = false;

  constructor(parts: SessionParts) {
    this.#parts = parts;
  }

  onChange(paths: ReadonlySet<string>): void {
    const all = [...paths];
    this.#needsGenerate ||= all.some(isSpecFile);
    this.#needsExamples ||= all.some((path) => path.startsWith("examples"));
    this.#needsCheck ||= all.includes("tsconfig.json");
    // Restart an operator that has exited on any change.
    this.#needsRestart ||= !this.#parts.operator.isRunning;
    this.#changedAt ??= performance.now();
    this.#running = this.#running.then(() => this.#update());
  }

  onMessage(message: HostMessage): void {
    const { table } = this.#parts;
    switch (message.kind) {
      case "started":
        return table.step(`operator ready${this.#sinceChange()}`);
      case "reconciled":
        return table.update(message.report);
      case "deleted":
        return table.remove(message.primary);
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#running;
  }

  async #update(): Promise<void> {
    if (this.#isClosed) return;
    const changedAt = this.#changedAt;
    this.#changedAt = undefined;
    try {
      await this.#restoreFolder();
      const isRight = (await this.#generate()) && (await this.#compile());
      // Apply examples even if the code has errors, but not before their kinds are served.
      await this.#applyExamples();
      if (isRight && this.#needsRestart) {
        this.#needsRestart = false;
        this.#startedFor = changedAt;
        await this.#parts.operator.restart();
      }
    } catch (error) {
      this.#parts.table.note(isSystemError(error) ? describeSystemError(error) : (error as Error).message);
    }
  }

  async #restoreFolder(): Promise<void> {
    const { folder, cluster, table } = this.#parts;
    if (await folder.restore()) table.step("dist/dev was deleted; restoring it");
    await cluster.restoreKubeconfig();
  }

  async #generate(): Promise<boolean> {
    if (!this.#needsGenerate) return true;
    const { project, table, cluster } = this.#parts;
    const { diagnostics, report } = await generate({ project });
    for (const diagnostic of diagnostics) table.print(formatDiagnostic(diagnostic));
    if (hasErrors(diagnostics)) return this.#fail("nothing was generated");
    for (const change of ["created", "updated", "deleted"] as const) {
      const paths = report?.[change] ?? [];
      if (paths.length > MOST_PATHS) table.note(`${change} ${paths.length} files`);
      else for (const path of paths) table.note(`${change} ${path}`);
    }
    this.#crds = (await readProject(project)).crds;
    for (const name of await cluster.applyCrds(this.#crds)) table.note(`applied CustomResourceDefinition ${name}`);
    this.#needsGenerate = false;
    return true;
  }

  async #compile(): Promise<boolean> {
    const { transpiler, checker } = this.#parts;
    const { isChanged, problems } = await transpiler.update();
    if (problems.length > 0) return this.#failWith(problems);
    this.#needsCheck ||= isChanged;
    if (!this.#needsCheck) return true;
    this.#needsRestart = true;
    const wrong = await checker.check();
    if (wrong.length > 0) return this.#failWith(wrong);
    this.#needsCheck = false;
    return true;
  }

  async #applyExamples(): Promise<void> {
    if (!this.#needsExamples || this.#needsGenerate) return;
    const { project, table, cluster } = this.#parts;
    this.#needsExamples = false;
    // On a shared cluster, only the CRDs are applied.
    if (!cluster.isEmbedded) return;
    const { applied, problems } = await cluster.applyExamples(project, this.#crds);
    for (const name of applied) table.note(`applied ${name}`);
    for (const problem of problems) table.note(problem);
  }

  #failWith(problems: readonly CodeProblem[]): false {
    for (const problem of problems) this.#parts.table.print(formatProblem(problem));
    return this.#fail(`${problems.length} ${problems.length === 1 ? "error" : "errors"}`);
  }

  #fail(what: string): false {
    const { table, operator } = this.#parts;
    table.step(`${what}${operator.isRunning ? "; the operator keeps running with the previous code" : ""}`);
    return false;
  }

  #sinceChange(): string {
    if (this.#startedFor === undefined) return "";
    const elapsed = performance.now() - this.#startedFor;
    this.#startedFor = undefined;
    return ` in ${elapsed < 995 ? `${Math.round(elapsed / 10) * 10} ms` : `${(elapsed / 1000).toFixed(1)} s`}`;
  }
}

const MOST_PATHS = 8;
