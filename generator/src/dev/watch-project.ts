import { relative } from "node:path";
import { watch } from "chokidar";
import { slashed } from "../diagnostic.js";

/** Watches the files of a project that its author may change. */
export interface ProjectWatch extends AsyncDisposable {
  /** Resolves when the watch is established and every later change is reported. */
  readonly ready: Promise<void>;
}

/** Editors write several files at once, or one file in several steps. Must exceed 50 ms, within which chokidar drops a second change of a file. */
const QUIET_MS = 60;
/** Fires at least this often while files keep changing. */
const MOST_MS = 250;
const IGNORED = /^(?:node_modules|dist|deploy|coverage|\.[^/]+)(?:\/|$)|(?:^|\/)\.[^/]*$|~$|\.(?:swp|tmp)$/;

/** Returns whether a change of a file may change the generated code. Code files only affect compilation. */
export function isSpecFile(path: string): boolean {
  return /\.(?:yaml|yml|json)$/.test(path) && !/^(?:examples|test|src)\//.test(path);
}

/** Calls `onChange` with the changed paths, relative to the project and with forward slashes, after changes have settled. */
export function watchProject(project: string, onChange: (paths: ReadonlySet<string>) => void): ProjectWatch {
  const pathOf = (path: string) => slashed(relative(project, path));
  let changed = new Set<string>();
  let since = 0;
  let timer: NodeJS.Timeout | undefined;
  const flush = () => {
    const paths = changed;
    changed = new Set();
    timer = undefined;
    onChange(paths);
  };
  const watcher = watch(project, { ignoreInitial: true, ignored: (path) => IGNORED.test(pathOf(path)) });
  watcher.on("all", (event, path) => {
    if (event === "addDir") return;
    const now = performance.now();
    if (timer === undefined) since = now;
    changed.add(pathOf(path));
    clearTimeout(timer);
    timer = setTimeout(flush, Math.max(0, Math.min(QUIET_MS, since + MOST_MS - now)));
  });
  // A folder that is deleted during a scan must not stop the watch.
  watcher.on("error", () => {});
  return {
    ready: new Promise((resolve) => watcher.once("ready", () => resolve())),
    async [Symbol.asyncDispose]() {
      clearTimeout(timer);
      await watcher.close();
    },
  };
}
