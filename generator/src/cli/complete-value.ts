// Completes values that yargs does not know: names in the project, kinds, and rules. Completion only reads and prints no errors; a file that cannot
// be read contributes no candidates.
import { resolve } from "node:path";
import type { BuiltinKind } from "../read/kinds.js";
import type { ProjectFile } from "../read/project-files.js";
import { isRecord } from "../read/yaml/values.js";

/** An incomplete command line. */
interface Line {
  /** Words before the one that is completed. */
  readonly before: readonly string[];
  readonly project: string;
}

type Complete = (line: Line) => Promise<readonly string[]>;

/** Options with known values, by command. */
const OPTIONS: { readonly [command: string]: { readonly [option: string]: Complete } } = {
  "add dependent": { resource: watchedKinds, "depends-on": dependents, controller: controllers },
  "add external": { "depends-on": dependents, "event-source": eventSources, controller: controllers },
  "add source": { resource: watchedKinds, controller: controllers },
  "add controller": { primary: watchedKinds },
  graph: { controller: controllers },
};

/** Commands whose first argument has known values. */
const ARGUMENTS: { readonly [command: string]: Complete } = { explain: rulesAndFields, schema: allKinds };

// Other characters would be expanded or split by the shell.
const PLAIN = /^[\w./-]+$/;

/**
 * Returns the candidates for the last of the words that follow the program name; undefined if completion is left to yargs. A candidate is a whole
 * word: `--resource=v1/Pod` for `--resource=v1/P`.
 */
export async function completeValue(words: readonly string[]): Promise<readonly string[] | undefined> {
  const { before, option, typed, prefix } = split(words);
  const complete = option === undefined ? argumentOf(before, typed) : optionOf(before, option);
  if (complete === undefined) return undefined;
  const project = resolve(lastValue(before, "project") ?? ".");
  const found = await complete({ before, project }).catch(() => []);
  const isMeant = (each: string) => PLAIN.test(each) && each.startsWith(typed);
  return [...new Set(found)].filter(isMeant).map((each) => prefix + each);
}

interface SplitLine {
  readonly before: readonly string[];
  /** Name of the option whose value is completed, in kebab-case. */
  readonly option?: string;
  /** The part of the value that is already typed. */
  readonly typed: string;
  /** The part of the word before the value. */
  readonly prefix: string;
}

// bash splits --option=value into three words.
function split(words: readonly string[]): SplitLine {
  const typed = words.at(-1) ?? "";
  const before = words.slice(0, -1).filter((word) => word !== "=");
  const [, prefix = "", name, value = ""] = /^(--([\w-]+)=)(.*)$/s.exec(typed) ?? [];
  if (name !== undefined) return { before, option: optionName(name), typed: value, prefix };
  const last = before.findLastIndex((word) => word.startsWith("-"));
  const stated = before[last];
  // Only options that take lists have more than one value.
  const isOption = last === before.length - 1 || stated === "--depends-on" || stated === "--dependsOn";
  if (stated === undefined || !isOption || !/^--[^=]+$/.test(stated)) return { before, typed, prefix };
  return { before, option: optionName(stated.slice(2)), typed: typed === "=" ? "" : typed, prefix };
}

function optionName(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

function optionOf(before: readonly string[], option: string): Complete | undefined {
  const command = Object.keys(OPTIONS).find((each) => before.slice(0, each.split(" ").length).join(" ") === each);
  const options = OPTIONS[command ?? ""] ?? {};
  return Object.hasOwn(options, option) ? options[option] : undefined;
}

function argumentOf(before: readonly string[], typed: string): Complete | undefined {
  const [command = ""] = before;
  const isFirst = before.length === 1 && !typed.startsWith("-");
  return isFirst && Object.hasOwn(ARGUMENTS, command) ? ARGUMENTS[command] : undefined;
}

function lastValue(words: readonly string[], option: string): string | undefined {
  const at = words.findLastIndex((word) => word === `--${option}` || word.startsWith(`--${option}=`));
  const word = words[at];
  return word?.includes("=") === true ? word.slice(word.indexOf("=") + 1) : word && words[at + 1];
}

async function rulesAndFields(): Promise<readonly string[]> {
  const [{ RULES }, { listFieldNames }] = await Promise.all([
    import("../explain/rule-registry.js"),
    import("../editor/explain-field.js"),
  ]);
  return [...RULES.map(({ id }) => id), ...(await listFieldNames())];
}

async function allKinds({ project }: Line): Promise<readonly string[]> {
  const { readBuiltinKinds } = await import("../read/kinds.js");
  const { kinds } = await readBuiltinKinds();
  return [...(await customKinds(project)), ...kinds.map(nameOf)];
}

// A kind that cannot be watched is neither a primary nor the kind of a dependent.
async function watchedKinds({ project }: Line): Promise<readonly string[]> {
  const { readBuiltinKinds } = await import("../read/kinds.js");
  const { kinds } = await readBuiltinKinds();
  const watched = kinds.filter(({ verbs }) => verbs.includes("watch"));
  return [...(await customKinds(project)), ...watched.map(nameOf)];
}

async function customKinds(project: string): Promise<string[]> {
  const { listCrdFiles } = await import("../read/project-files.js");
  const documents = await readDocuments(project, await listCrdFiles(project));
  return documents.flatMap((document) => {
    const spec = recordIn(document, "spec");
    const { group } = spec;
    const { kind } = recordIn(spec, "names");
    const versions = Array.isArray(spec["versions"]) ? (spec["versions"] as unknown[]) : [];
    return versions.flatMap((each) => {
      const version = isRecord(each) ? each["name"] : undefined;
      const isNamed = [group, version, kind].every((part) => typeof part === "string" && part !== "");
      return isNamed ? [`${String(group)}/${String(version)}/${String(kind)}`] : [];
    });
  });
}

function nameOf({ group, version, kind }: Pick<BuiltinKind, "group" | "version" | "kind">): string {
  return group === "" ? `${version}/${kind}` : `${group}/${version}/${kind}`;
}

async function controllers({ project }: Line): Promise<readonly string[]> {
  return (await readSpecs(project)).map(({ name }) => name);
}

async function dependents(line: Line): Promise<readonly string[]> {
  const names = await entriesOf(line, "dependents");
  return names.filter((name) => !line.before.includes(name));
}

function eventSources(line: Line): Promise<readonly string[]> {
  return entriesOf(line, "eventSources");
}

async function entriesOf({ before, project }: Line, section: string): Promise<readonly string[]> {
  const controller = lastValue(before, "controller");
  const specs = await readSpecs(project);
  const meant = specs.filter(({ name }) => controller === undefined || name === controller);
  return meant.flatMap(({ spec }) => Object.keys(recordIn(spec, section)));
}

async function readSpecs(project: string) {
  const { listSpecFiles } = await import("../read/project-files.js");
  const documents = await readDocuments(project, await listSpecFiles(project));
  return documents.flatMap((document) => {
    const { name } = recordIn(document, "metadata");
    return typeof name === "string" ? [{ name, spec: recordIn(document, "spec") }] : [];
  });
}

async function readDocuments(project: string, files: readonly string[]): Promise<unknown[]> {
  const [{ readProjectFile }, { parseManifests }] = await Promise.all([
    import("../read/project-files.js"),
    import("../read/yaml/parse-yaml.js"),
  ]);
  const read = await Promise.all(files.map((file) => readProjectFile(project, file)));
  const isRead = (each: (typeof read)[number]): each is ProjectFile => "text" in each;
  return read
    .filter(isRead)
    .flatMap(({ file, text }) => parseManifests(file, text).documents.map(({ value }) => value));
}

function recordIn(value: unknown, member: string): { readonly [key: string]: unknown } {
  const found = isRecord(value) ? value[member] : undefined;
  return isRecord(found) ? found : {};
}
