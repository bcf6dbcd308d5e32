import { existsSync, readFileSync } from "node:fs";
import { dirname, relative, resolve, sep } from "node:path";

/** How many files share a process at most. */
const MOST_TOGETHER = 12;

// A process, a file, a server, a clock that runs, or what all code of a process has in common.
const OUTSIDE =
  /"node:|\bprocess\b|globalThis|\b(?:set|clear)(?:Timeout|Interval|Immediate)\b|#apiserver\/index\.js|\bshared\(/;

// What computes, and what only reads files.
const INSIDE =
  /from "node:(?:buffer|crypto|path|url|util|zlib)"|import \{(?: (?:existsSync|readFileSync|readdirSync),?)+ \} from "node:fs"/g;

// They look at the process, or at files, for everybody, and change nothing.
const HARMLESS = /\/support\/(?:suite|assert|fast-check|runs|repository)\.js$/;

/**
 * Puts test files into groups that share a process, in their order: to start one for each costs more than what most unit tests do.
 *
 * Only files of unit tests share one, and only those that touch nothing outside of what they test, by themselves or by a helper: they leave
 * nothing that another one could meet.
 */
export function groupFiles(files: readonly string[], root: string): string[][] {
  const groups = new Map<string, string[]>();
  const known = new Map<string, boolean>();
  return files.flatMap((file) => {
    const [kind = "", room = ""] = relative(root, file).split(sep);
    if (kind !== "unit" || reachesOutside(file, known)) return [[file]];
    // Files of one package load the same code.
    const open = groups.get(room);
    if (open !== undefined && open.length < MOST_TOGETHER) {
      open.push(file);
      return [];
    }
    const group = [file];
    groups.set(room, group);
    return [group];
  });
}

function reachesOutside(file: string, known: Map<string, boolean>): boolean {
  if (HARMLESS.test(file)) return false;
  const found = known.get(file);
  if (found !== undefined) return found;
  // A text of a test may look like an import.
  if (!existsSync(file)) return false;
  // Helpers that import each other tell nothing of themselves until they are read.
  known.set(file, false);
  const text = readFileSync(file, "utf8");
  const helpers = [...text.matchAll(/(?:from|import) ?\(?"(\.[^"]+)"/g)].map(([, path = ""]) =>
    resolve(dirname(file), path),
  );
  const reaches = OUTSIDE.test(text.replace(INSIDE, "")) || helpers.some((helper) => reachesOutside(helper, known));
  known.set(file, reaches);
  return reaches;
}
