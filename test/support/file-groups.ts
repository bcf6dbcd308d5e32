import { existsSync, readFileSync } from "node:fs";
import { dirname, relative, resolve, sep } from "node:path";

// Code that depends on a real clock, runs a program concurrently, or changes the global state of the process.
const OUTSIDE =
  /"node:\w|\bprocess(?:\.\w|[[)}])|= process\b|globalThis|\b(?:set|clear)(?:Timeout|Interval)\b|timers\/promises/;

// Code that only computes, reads files, or reads the state of the process.
const INSIDE =
  /from "node:(?:assert|buffer|crypto|path|url|util|zlib)"|import \{(?: (?:existsSync|readFileSync|readdirSync),?)+ \} from "node:fs"|import \{ builtinModules \} from "node:module"|(?<!delete )\bprocess\.(?:execPath|getuid|env\["\w+"\](?! (?:\?\?|\|\|)?= ))/g;

// Resources that a test opens and closes: files, servers, programs that it waits for, and one-shot timers.
const OPENED =
  /from "node:(?:events|fs|fs\/promises|http|https|net|os|stream|timers\/promises)"|import \{ spawnSync \} from "node:child_process"|\b(?:set|clear)Timeout\b/g;

// Servers that a test starts and stops.
const SERVER = /#apiserver\/index\.js|\bshared\(/;

// Helpers that read files or the state of the process for all tests, and change nothing.
const HARMLESS = /\/support\/(?:suite|assert|fast-check|runs|repository)\.js$/;

// Helpers that open resources which the tests close, and that restore what they change.
const OPENING =
  /\/(?:support\/(?:command-line|hooked|temporary-folder|runtime\/recorded-operator|api\/[a-z-]+|projects\/[a-z-]+)|integration\/(?:josdk\/dependents\/account-service|runtime\/watches\/followed-cache))\.js$/;

/** The restrictions of the files in a group, and the maximum number of files in a process. */
interface Kind {
  readonly most: number;
  readonly isOutside: (text: string) => boolean;
  readonly isHarmless: (file: string) => boolean;
  /** Whether the files read so far violate the restrictions. */
  readonly known: Map<string, boolean>;
}

const computes = (most: number): Kind => ({
  most,
  isOutside: (text) => OUTSIDE.test(text.replace(INSIDE, "")) || SERVER.test(text),
  isHarmless: (file) => HARMLESS.test(file),
  known: new Map(),
});

const opens = (most: number): Kind => ({
  most,
  isOutside: (text) => OUTSIDE.test(text.replace(INSIDE, "").replace(OPENED, "")),
  isHarmless: (file) => HARMLESS.test(file) || OPENING.test(file),
  known: new Map(),
});

/** The maximum number of files in a process unless they only compute. */
export const MOST_THAT_WAIT = 6;

/** Returns the kinds of groups in each folder. */
const kindsOf = (isQuick: boolean): { readonly [folder: string]: readonly Kind[] } => {
  const some = [opens(isQuick ? MOST_THAT_WAIT : 1)];
  return {
    architecture: some,
    conformance: [opens(isQuick ? 3 : 1)],
    golden: some,
    integration: [opens(isQuick ? MOST_THAT_WAIT : 4)],
    // Programs of one process share the parsed libraries.
    types: [opens(isQuick ? MOST_THAT_WAIT : 3)],
    unit: [computes(12), ...some],
  };
};

/**
 * Groups test files, in order, to run in a shared process. Starting a process takes longer than most unit tests, and half as long as a test with a
 * server.
 *
 * Only files that do not affect each other, directly or through a helper, share a process. Tests close the files, servers, and programs that they
 * open.
 */
export function groupFiles(files: readonly string[], root: string, isQuick: boolean): string[][] {
  const groups = new Map<string, string[]>();
  const kinds = kindsOf(isQuick);
  return files.flatMap((file) => {
    const [name = "", ...rooms] = relative(root, dirname(file)).split(sep);
    const kind = kinds[name]?.find((one) => !reachesOutside(file, one));
    if (kind === undefined) return [[file]];
    // Files of the same package load the same code.
    const place = `${name}/${rooms[0] ?? ""} ${kind.most}`;
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

function reachesOutside(file: string, kind: Kind): boolean {
  const { known } = kind;
  if (kind.isHarmless(file)) return false;
  const found = known.get(file);
  if (found !== undefined) return found;
  // A string in a test may look like an import.
  if (!existsSync(file)) return false;
  // Prevents infinite recursion if helpers import each other.
  known.set(file, false);
  const text = readFileSync(file, "utf8");
  const helpers = [...text.matchAll(/(?:from|import) ?\(?"(\.[^"]+)"/g)].map(([, path = ""]) =>
    resolve(dirname(file), path),
  );
  const reaches = kind.isOutside(text) || helpers.some((helper) => reachesOutside(helper, kind));
  known.set(file, reaches);
  return reaches;
}
