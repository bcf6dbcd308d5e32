import { existsSync, readFileSync } from "node:fs";
import { dirname, relative, resolve, sep } from "node:path";

// A process, a file, a clock that runs, or what all code of a process has in common.
const OUTSIDE = /"node:|\bprocess\b|globalThis|\b(?:set|clear)(?:Timeout|Interval|Immediate)\b/;

// What a test starts and ends itself.
const SERVER = /#apiserver\/index\.js|\bshared\(/;

// What computes, and what only reads files.
const INSIDE =
  /from "node:(?:buffer|crypto|path|url|util|zlib)"|import \{(?: (?:existsSync|readFileSync|readdirSync),?)+ \} from "node:fs"/g;

// They look at the process, or at files, for everybody, and change nothing.
const HARMLESS = /\/support\/(?:suite|assert|fast-check|runs|repository)\.js$/;

// They open what the tests close: servers, connections and watches.
const OPENING =
  /\/(?:support\/(?:runtime\/recorded-operator|api\/(?:api-server|api-request|watch-client))|integration\/(?:josdk\/dependents\/account-service|runtime\/watches\/followed-cache))\.js$/;

/** How many files of a kind share a process at most, and what they may reach: a test that waits for servers takes its time. */
const KINDS: {
  readonly [kind: string]: { readonly most: number; readonly outside: RegExp; readonly harmless: RegExp };
} = {
  unit: { most: 12, outside: new RegExp(`${OUTSIDE.source}|${SERVER.source}`), harmless: HARMLESS },
  integration: { most: 4, outside: OUTSIDE, harmless: new RegExp(`${HARMLESS.source}|${OPENING.source}`) },
};

type Kind = (typeof KINDS)[string];

/**
 * Puts test files into groups that share a process, in their order: to start one for each costs more than what most unit tests do, and half of
 * what a test on a server does.
 *
 * Only files that touch nothing outside of what they test share one, by themselves or by a helper: they leave nothing that another one could
 * meet. Tests on servers close what they open.
 */
export function groupFiles(files: readonly string[], root: string): string[][] {
  const groups = new Map<string, string[]>();
  const known = new Map<string, boolean>();
  return files.flatMap((file) => {
    const [name = "", ...rooms] = relative(root, dirname(file)).split(sep);
    const kind = KINDS[name];
    if (kind === undefined || reachesOutside(file, kind, known)) return [[file]];
    // Files of one package load the same code.
    const place = `${name}/${rooms[0] ?? ""}`;
    const open = groups.get(place);
    if (open !== undefined && open.length < kind.most) {
      open.push(file);
      return [];
    }
    const group = [file];
    groups.set(place, group);
    return [group];
  });
}

function reachesOutside(file: string, kind: Kind, known: Map<string, boolean>): boolean {
  if (kind.harmless.test(file)) return false;
  const key = `${kind.most} ${file}`;
  const found = known.get(key);
  if (found !== undefined) return found;
  // A text of a test may look like an import.
  if (!existsSync(file)) return false;
  // Helpers that import each other tell nothing of themselves until they are read.
  known.set(key, false);
  const text = readFileSync(file, "utf8");
  const helpers = [...text.matchAll(/(?:from|import) ?\(?"(\.[^"]+)"/g)].map(([, path = ""]) =>
    resolve(dirname(file), path),
  );
  const reaches =
    kind.outside.test(text.replace(INSIDE, "")) || helpers.some((helper) => reachesOutside(helper, kind, known));
  known.set(key, reaches);
  return reaches;
}
