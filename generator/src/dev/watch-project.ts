import { relative } from "node:path";
import { watch } from "chokidar";
import { slashed } from "../diagnostic.js";

/** Follows the files of a project that its author may change. */
export interface ProjectWatch extends AsyncDisposable {
  /** Resolves when every change from now on is told. */
  readonly ready: Promise<void>;
}

/** An editor writes several files at once, and one file in several steps. chokidar drops a second change of a file within 50 ms of the first. */
const QUIET_MS = 60;
/** Who writes all the time is told all the same. */
const MOST_MS = 250;
const IGNORED = /^(?:node_modules|dist|deploy|coverage|\.[^/]+)(?:\/|$)|(?:^|\/)\.[^/]*$|~$|\.(?:swp|tmp)$/;

/** Tells whether a change of this file may change what is generated. Code is the compiler's business. */
export function isSpecFile(path: string): boolean {
  return /\.(?:yaml|yml|json)$/.test(path) && !/^(?:examples|test|src)\//.test(path);
}

/** Calls `onChange` with the paths that changed, relative to the project and with forward slashes, once they are quiet. */
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
  // A folder that goes while it is read is no reason to stop watching the others.
  watcher.on("error", () => {});
  return {
    ready: new Promise((resolve) => watcher.once("ready", () => resolve())),
    async [Symbol.asyncDispose]() {
      clearTimeout(timer);
      await watcher.close();
    },
  };
}
