// Runs the tests of a Go module with code of ours in it, which prints a line of JSON at every call of the functions that matter.
import { execFileSync } from "node:child_process";
import { chmodSync, cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { repositoryRoot } from "../../support/repository.js";

/** The tests of a module, and what is put into it. */
export interface GoRecording {
  readonly module: string;
  /** Files of `test/control-plane`, by where they are copied to. */
  readonly files: { readonly [path: string]: string };
  /** The beginning of each function that is recorded, and what takes its place, by file. */
  readonly hooks: { readonly [file: string]: readonly (readonly [from: string, to: string])[] };
  /** Packages and flags for `go test`. */
  readonly args: readonly string[];
}

/** Returns what each test has recorded, by its name. */
export function recordGoTests<Entry>({ module, files, hooks, args }: GoRecording): Map<string, Entry[]> {
  const sources = join(repositoryRoot, "test/control-plane");
  const folder = mkdtempSync(join(tmpdir(), "gen-operator-go-tests-"));
  try {
    const options = { cwd: sources, encoding: "utf8" } as const;
    cpSync(execFileSync("go", ["list", "-m", "-f", "{{.Dir}}", module], options).trim(), folder, { recursive: true });
    // What the cache of Go holds cannot be written to.
    for (const path of ["", ...readdirSync(folder, { recursive: true, encoding: "utf8" })])
      chmodSync(join(folder, path), 0o755);
    for (const [to, from] of Object.entries(files)) cpSync(join(sources, from), join(folder, to));
    for (const [file, changes] of Object.entries(hooks)) {
      let source = readFileSync(join(folder, file), "utf8");
      for (const [from, to] of changes) {
        if (!source.includes(from)) throw new Error(`${file} of ${module} has no ${from}`);
        source = source.replace(from, to);
      }
      writeFileSync(join(folder, file), source);
    }
    const output = execFileSync("go", ["test", "-count=1", "-parallel=1", "-json", ...args], {
      cwd: folder,
      encoding: "utf8",
      env: { ...process.env, GOFLAGS: "-mod=mod" },
      maxBuffer: 1 << 30,
    });
    return entriesIn(output);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function entriesIn<Entry>(output: string): Map<string, Entry[]> {
  // A long line comes in parts.
  const printed = new Map<string, string>();
  for (const line of output.trim().split("\n")) {
    const { Test: test, Output: text = "" } = JSON.parse(line) as { Test?: string; Output?: string };
    if (test !== undefined) printed.set(test, (printed.get(test) ?? "") + text);
  }
  const tests = new Map<string, Entry[]>();
  for (const [test, text] of printed) {
    const lines = text.split("\n").filter((line) => line.startsWith("RECORD "));
    const entries = lines.map((line) => JSON.parse(line.slice("RECORD ".length)) as Entry);
    if (entries.length > 0) tests.set(test, entries);
  }
  return tests;
}
