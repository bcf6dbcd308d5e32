import { quote, type Diagnostic } from "../diagnostic.js";
import { isRecord } from "./yaml/json.js";
import { CONDITION_NAMES } from "./workflow-spec.js";
import type { YamlDocument, YamlPath } from "./yaml/yaml-document.js";

/** The fields that take the place of an old one, with their values. */
type Spelling = { readonly [field: string]: unknown };

/** A spelling of an earlier version of the format. */
interface OldSpelling {
  /** The path of the field; `*` stands for any name. */
  readonly at: string;
  /** Returns what takes the place of the field, which is one of `fields`; undefined if its value is not of an earlier version. */
  readonly now: (value: unknown, fields: Spelling) => Spelling | undefined;
  /** What to write, where the spec alone does not tell. */
  readonly hint?: (value: unknown) => string | undefined;
}

const REMOVED_DELETIONS: ReadonlyMap<unknown, string> = new Map([
  ["keep", "garbageCollected"],
  ["delete", "ordered"],
  ["orphan", "orphan"],
]);

const maxRetries = (value: unknown) => ({ maxRetries: value });

// Two fields have become one.
function deletion(_: unknown, { onDelete, garbageCollected }: Spelling): Spelling {
  if (onDelete === "orphan") return { deletion: "orphan" };
  return { deletion: garbageCollected === false ? "ordered" : "garbageCollected" };
}

function fieldOf(name: string, value: unknown): Spelling | undefined {
  return value === undefined ? undefined : { [name]: value };
}

/** Returns the condition that `builtin` and its arguments stood for: a word, or one key. */
function conditionOf(value: unknown): unknown {
  if (!isRecord(value) || typeof value["builtin"] !== "string") return undefined;
  const { builtin, ...args } = value;
  return Object.keys(args).length === 0 ? builtin : { [builtin]: args };
}

/** Returns the kind of a primary that was a CRD file or a kind. */
function primary(value: unknown): Spelling | undefined {
  if (!isRecord(value)) return undefined;
  const { crd, version = "v1", resource } = value;
  return crd === undefined ? fieldOf("primary", resource) : { primary: `example.com/${String(version)}/Kind` };
}

function primaryHint(value: unknown): string | undefined {
  const crd = isRecord(value) ? value["crd"] : undefined;
  if (typeof crd !== "string") return undefined;
  return `write primary: group/version/Kind, as ${quote(crd)} defines it: example.com/v1/WebPage`;
}

function namespaces(value: unknown): Spelling | undefined {
  return Array.isArray(value) && value.includes("*") ? { namespaces: "all" } : undefined;
}

/** Returns what took the place of a flag that was only ever true. */
function stateIn(place: string) {
  return (value: unknown) => (value === true ? { in: place } : undefined);
}

const OLD_SPELLINGS: readonly OldSpelling[] = [
  { at: "spec.controller.namespaces", now: namespaces },
  {
    at: "spec.status",
    now: (value) => (value === "conditions" ? { statusConditions: "managed" } : undefined),
  },
  { at: "spec.dependents.*.external.state.configMap", now: stateIn("configMap") },
  { at: "spec.dependents.*.external.state.secret", now: stateIn("secret") },
  { at: "spec.primary", now: primary, hint: primaryHint },
  { at: "spec.controller.retry.maxAttempts", now: maxRetries },
  { at: "spec.dependents.*.retry.maxAttempts", now: maxRetries },
  { at: "spec.dependents.*.onDelete", now: deletion },
  { at: "spec.dependents.*.garbageCollected", now: deletion },
  { at: "spec.removed.*.policy", now: (value) => fieldOf("deletion", REMOVED_DELETIONS.get(value)) },
  ...CONDITION_NAMES.map((name) => ({
    at: `spec.dependents.*.${name}`,
    now: (value: unknown) => fieldOf(name, conditionOf(value)),
  })),
];

/** A document in the spelling of today. */
export interface CurrentSpelling {
  readonly value: unknown;
  /** What is spelled in an earlier way, with what to write. */
  readonly diagnostics: readonly Diagnostic[];
  /** Returns the path in the text of the user's. */
  readonly pathInText: (path: YamlPath) => YamlPath;
}

/** Finds the spellings of earlier versions in a document. What is returned in place of its value has none of them. */
export function replaceOldSpellings(document: YamlDocument): CurrentSpelling {
  const diagnostics: Diagnostic[] = [];
  const origins = new Map<string, YamlPath>();
  let value = document.value;
  for (const { at, now, hint } of OLD_SPELLINGS)
    for (const path of pathsOf(at.split("."), value)) {
      const field = path.at(-1)!;
      const parent = path.slice(0, -1);
      const old = find(value, path);
      const spelling = now(old, find(document.value, parent) as Spelling);
      if (spelling === undefined) continue;
      // The value of the document is the user's, and stays as it is.
      if (value === document.value) value = structuredClone(value);
      const fields = find(value, parent) as Record<string, unknown>;
      delete fields[field];
      for (const name of Object.keys(spelling)) origins.set(JSON.stringify([...parent, name]), path);
      // What is stated in both ways is as the new one says.
      Object.assign(fields, { ...spelling, ...fields });
      diagnostics.push({
        severity: "error",
        rule: "old-spelling",
        message: `${quote(field)} is spelled as in an earlier version`,
        ...document.keyAt(path),
        hint: hint?.(old) ?? `write ${textOf(spelling)}`,
      });
    }
  return { value, diagnostics, pathInText: (path) => originOf(path, origins) };
}

function originOf(path: YamlPath, origins: ReadonlyMap<string, YamlPath>): YamlPath {
  for (let length = path.length; length > 0; length--) {
    const origin = origins.get(JSON.stringify(path.slice(0, length)));
    if (origin !== undefined) return [...origin, ...path.slice(length)];
  }
  return path;
}

/** Returns the paths of a document that a pattern describes. */
function pathsOf([step, ...rest]: readonly string[], value: unknown): string[][] {
  if (step === undefined) return [[]];
  if (!isRecord(value)) return [];
  const fields = step === "*" ? Object.keys(value) : Object.hasOwn(value, step) ? [step] : [];
  return fields.flatMap((field) => pathsOf(rest, value[field]).map((path) => [field, ...path]));
}

function find(value: unknown, path: readonly string[]): unknown {
  return path.reduce((around, step) => (around as Spelling)[step], value);
}

/** Formats fields as a line of YAML: `deletion: ordered`. */
function textOf(fields: Spelling): string {
  return Object.entries(fields)
    .map(([name, value]) => `${scalarText(name)}: ${flowText(value)}`)
    .join(", ");
}

function flowText(value: unknown): string {
  if (Array.isArray(value)) return value.length === 0 ? "[]" : `[${value.map(flowText).join(", ")}]`;
  if (isRecord(value)) return Object.keys(value).length === 0 ? "{}" : `{ ${textOf(value)} }`;
  return typeof value === "string" ? scalarText(value) : JSON.stringify(value);
}

// A text that YAML reads as something else needs quotes.
function scalarText(text: string): string {
  const isPlain = /^[A-Za-z][\w./-]*$/.test(text) && !/^(true|false|null|yes|no|on|off|y|n)$/i.test(text);
  return isPlain ? text : quote(text);
}
