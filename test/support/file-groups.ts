import { existsSync, readFileSync } from "node:fs";
import { dirname, relative, resolve, sep } from "node:path";

// A clock that runs, a program that runs beside, and a change of what all code of a process has in common.
const OUTSIDE =
  /"node:\w|\bprocess(?:\.\w|[[)}])|= process\b|globalThis|\b(?:set|clear)(?:Timeout|Interval)\b|timers\/promises/;

// What computes, what only reads files, and what only looks at the process.
const INSIDE =
  /from "node:(?:assert|buffer|crypto|path|url|util|zlib)"|import \{(?: (?:existsSync|readFileSync|readdirSync),?)+ \} from "node:fs"|import \{ builtinModules \} from "node:module"|(?<!delete )\bprocess\.(?:execPath|getuid|env\["\w+"\](?! (?:\?\?|\|\|)?= ))/g;

// What a test opens and closes again: files, servers, and programs that it waits for; and a timer that ends by itself.
const OPENED =
  /from "node:(?:events|fs|fs\/promises|http|https|net|os|stream|timers\/promises)"|import \{ spawnSync \} from "node:child_process"|\b(?:set|clear)Timeout\b/g;

// What a test starts and ends itself.
const SERVER = /#apiserver\/index\.js|\bshared\(/;

// They look at the process, or at files, for everybody, and change nothing.
const HARMLESS = /\/support\/(?:suite|assert|fast-check|runs|repository)\.js$/;

// They open what the tests close, and put back what they change.
const OPENING =
  /\/(?:support\/(?:command-line|hooked|temporary-folder|runtime\/recorded-operator|api\/[a-z-]+|projects\/[a-z-]+)|integration\/(?:josdk\/dependents\/account-service|runtime\/watches\/followed-cache))\.js$/;

/** What the files of a group may reach, and how many share a process at most. */
interface Kind {
  readonly most: number;
  readonly isOutside: (text: string) => boolean;
  readonly isHarmless: (file: string) => boolean;
  /** Whether the files that were read reach outside. */
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

/** How many files share a process at most, unless they only compute. */
export const MOST_THAT_WAIT = 6;

/** Which kinds there are in a folder. */
const kindsOf = (isQuick: boolean): { readonly [folder: string]: readonly Kind[] } => {
  const some = [opens(isQuick ? MOST_THAT_WAIT : 1)];
  return {
    architecture: some,
    conformance: [opens(isQuick ? 3 : 1)],
    golden: some,
    integration: [opens(isQuick ? MOST_THAT_WAIT : 4)],
    types: some,
    unit: [computes(12), ...some],
  };
};

/**
 * Puts test files into groups that share a process, in their order: to start one for each costs more than what most unit tests do, and half of
 * what a test on a server does.
 *
 * Only files that touch nothing outside of what they test share one, by themselves or by a helper: they leave nothing that another one could
 * meet. Tests that open files, servers and programs close them.
 */
export function groupFiles(files: readonly string[], root: string, isQuick: boolean): string[][] {
  const groups = new Map<string, string[]>();
  const kinds = kindsOf(isQuick);
  return files.flatMap((file) => {
    const [name = "", ...rooms] = relative(root, dirname(file)).split(sep);
    const kind = kinds[name]?.find((one) => !reachesOutside(file, one));
    if (kind === undefined) return [[file]];
    // Files of one package load the same code.
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
  // A text of a test may look like an import.
  if (!existsSync(file)) return false;
  // Helpers that import each other tell nothing of themselves until they are read.
  known.set(file, false);
  const text = readFileSync(file, "utf8");
  const helpers = [...text.matchAll(/(?:from|import) ?\(?"(\.[^"]+)"/g)].map(([, path = ""]) =>
    resolve(dirname(file), path),
  );
  const reaches = kind.isOutside(text) || helpers.some((helper) => reachesOutside(helper, kind));
  known.set(file, reaches);
  return reaches;
}
