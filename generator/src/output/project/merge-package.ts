import { isRecord } from "../../model/schema/raw-schema.js";

/** What came of adding one package.json to another. */
export interface MergedPackage {
  readonly text: string;
  /** What was missing, such as `scripts.build`. */
  readonly added: readonly string[];
  /** What is there with another value, and stays. */
  readonly different: readonly string[];
}

const MERGED = ["scripts", "dependencies", "devDependencies", "overrides"] as const;
const SINGLE = ["type", "engines"] as const;

/** Adds to a package.json the fields of a new project's that it lacks. */
export function mergePackage(existing: string, wanted: string): MergedPackage {
  const target = JSON.parse(existing) as Record<string, unknown>;
  const source = JSON.parse(wanted) as Record<string, unknown>;
  const added: string[] = [];
  const different: string[] = [];
  for (const name of SINGLE) {
    if (target[name] === undefined) {
      target[name] = source[name];
      added.push(name);
    } else if (name === "type" && target[name] !== source[name]) different.push(name);
  }
  for (const section of MERGED) {
    const entries = isRecord(source[section]) ? source[section] : {};
    const present = isRecord(target[section]) ? target[section] : {};
    const missing = Object.entries(entries).filter(([name]) => !isPresent(target, section, name));
    for (const [name, value] of Object.entries(entries))
      if (Object.hasOwn(present, name) && present[name] !== value) different.push(`${section}.${name}`);
    if (missing.length > 0) target[section] = { ...present, ...Object.fromEntries(missing) };
    added.push(...missing.map(([name]) => `${section}.${name}`));
  }
  return { text: `${JSON.stringify(target, undefined, indentOf(existing))}\n`, added, different };
}

// A package that is a dependency needs not be a development dependency as well, nor the other way round.
function isPresent(target: Record<string, unknown>, section: string, name: string): boolean {
  const sections = section.endsWith("ependencies") ? ["dependencies", "devDependencies"] : [section];
  return sections.some((key) => isRecord(target[key]) && Object.hasOwn(target[key], name));
}

function indentOf(text: string): string {
  return /^([ \t]+)"/m.exec(text)?.[1] ?? "  ";
}
