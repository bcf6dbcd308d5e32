import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Worker } from "node:worker_threads";
import { packageFile } from "../../package-file.js";

/** Checks the types of a project repeatedly. */
export interface TypeChecker extends AsyncDisposable {
  /** Returns the problems of the code on disk. */
  check(): Promise<readonly CodeProblem[]>;
}

/**
 * Creates a checker that uses the TypeScript version of the project: its API in a worker thread up to version 6, the native compiler from version 7.
 */
export async function createTypeChecker(project: string, typescriptFolder: string): Promise<TypeChecker> {
  const text = await readFile(join(typescriptFolder, "package.json"), "utf8");
  const { version } = JSON.parse(text) as { version: string };
  return Number(version.split(".")[0]) < 7
    ? new ApiChecker(project, join(typescriptFolder, "lib/typescript.js"))
    : nativeChecker(project, join(typescriptFolder, "bin/tsc"));
}

class ApiChecker implements TypeChecker {
  readonly #start: () => Worker;
  /** Undefined after the worker thread has exited, for example out of memory. */
  #worker: Worker | undefined;
  /** Responses have no id, so requests are sent one at a time. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(project: string, typescript: string) {
    this.#start = () => {
      const worker = new Worker(packageFile("dist/dev/code/type-check-worker.js"), {
        workerData: { project, typescript },
      });
      worker.on("exit", () => {
        if (this.#worker === worker) this.#worker = undefined;
      });
      // The pending request rejects with the error.
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

/** Parses the output of `tsc --pretty false`. Indented lines continue the previous message. */
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

/** A compiler error in user code. */
export interface CodeProblem {
  /** Path relative to the project; absent if the error has no file. */
  readonly file?: string;
  readonly line?: number;
  readonly column?: number;
  /** Message with the error code, for example `TS2551: …`. */
  readonly message: string;
}

/** Formats a problem like tsc: `src/main.ts:3:7 - error TS2551: …`. */
export function formatProblem({ file, line, column, message }: CodeProblem): string {
  return `${file === undefined ? "" : `${file}:${line}:${column} - `}error ${message}`;
}
