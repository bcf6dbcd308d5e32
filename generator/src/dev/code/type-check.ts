import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Worker } from "node:worker_threads";
import { packageFile } from "../../package-file.js";

/** Checks the types of a project over and over. */
export interface TypeChecker extends AsyncDisposable {
  /** Returns what is wrong with the code that is on disk now. */
  check(): Promise<readonly CodeProblem[]>;
}

/** Creates a checker that uses the project's own TypeScript: its API up to version 6, in a thread; the native compiler since. */
export async function createTypeChecker(project: string, typescriptFolder: string): Promise<TypeChecker> {
  const text = await readFile(join(typescriptFolder, "package.json"), "utf8");
  const { version } = JSON.parse(text) as { version: string };
  return Number(version.split(".")[0]) < 7
    ? new ApiChecker(project, join(typescriptFolder, "lib/typescript.js"))
    : nativeChecker(project, join(typescriptFolder, "bin/tsc"));
}

class ApiChecker implements TypeChecker {
  readonly #start: () => Worker;
  /** Absent after its thread has ended, as it does when it runs out of memory. */
  #worker: Worker | undefined;
  /** The answers carry no name, so there is one question at a time. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(project: string, typescript: string) {
    this.#start = () => {
      const worker = new Worker(packageFile("dist/dev/code/type-check-worker.js"), {
        workerData: { project, typescript },
      });
      worker.on("exit", () => {
        if (this.#worker === worker) this.#worker = undefined;
      });
      // Whoever waits for an answer is told.
      return worker.on("error", () => {});
    };
    this.#worker = this.#start();
  }

  check(): Promise<readonly CodeProblem[]> {
    const answer = this.#last.then(() => this.#ask());
    this.#last = answer.catch(() => {});
    return answer;
  }

  #ask(): Promise<readonly CodeProblem[]> {
    const worker = (this.#worker ??= this.#start());
    return new Promise((resolve, reject) => {
      const settle = () => worker.off("message", onMessage).off("error", onError).off("exit", onExit);
      const onMessage = (problems: readonly CodeProblem[]) => {
        settle();
        resolve(problems);
      };
      const onError = (error: Error) => {
        settle();
        reject(error);
      };
      const onExit = () => onError(new Error("the thread that checks types has ended"));
      worker.on("message", onMessage).on("error", onError).on("exit", onExit);
      worker.postMessage("check");
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#worker?.terminate();
  }
}

function nativeChecker(project: string, tsc: string): TypeChecker {
  const stop = new AbortController();
  const args = [tsc, "--project", project, "--noEmit", "--pretty", "false"];
  const options = { cwd: project, signal: stop.signal, maxBuffer: 64 * 1024 * 1024 };
  return {
    check: () =>
      new Promise((resolve, reject) => {
        execFile(process.execPath, args, options, (error, stdout, stderr) => {
          if (error === null) return resolve([]);
          const problems = parseMessages(stdout);
          if (problems.length > 0) resolve(problems);
          else reject(new Error(`${join(dirname(tsc), "tsc")} failed: ${stdout}${stderr}`, { cause: error }));
        });
      }),
    async [Symbol.asyncDispose]() {
      stop.abort();
    },
  };
}

/** Parses what `tsc --pretty false` prints; lines that are indented belong to the message before. */
export function parseMessages(output: string): CodeProblem[] {
  const problems: CodeProblem[] = [];
  for (const line of output.split(/\r?\n/)) {
    const last = problems.at(-1);
    const [, file, row, column, message] = /^(?:(.+)\((\d+),(\d+)\): )?error (TS\d+: .*)$/.exec(line) ?? [];
    if (message !== undefined)
      problems.push({ ...(file === undefined ? {} : { file, line: Number(row), column: Number(column) }), message });
    else if (last !== undefined && line.startsWith(" "))
      problems.splice(-1, 1, { ...last, message: `${last.message}\n${line}` });
  }
  return problems;
}

/** What a compiler says is wrong with the user's code. */
export interface CodeProblem {
  /** Relative to the project; absent where the message is about no file. */
  readonly file?: string;
  readonly line?: number;
  readonly column?: number;
  /** With the code of the compiler, such as `TS2551`. */
  readonly message: string;
}

/** Formats a problem as tsc does: `src/main.ts:3:7 - error TS2551: …`. */
export function formatProblem({ file, line, column, message }: CodeProblem): string {
  return `${file === undefined ? "" : `${file}:${line}:${column} - `}error ${message}`;
}
