// Normalizes outcomes so that those of two runs can be compared: identities, versions, times, and generated names are replaced by their roles in the
// scenario, and lists that are built from Go maps in random order are sorted.
import type { StepOutcome } from "./conformance-play.js";

interface Names {
  namespace: string;
  uids: Map<string, string>;
  /** The resourceVersions of objects, in ascending order. */
  versions: number[];
}

const UID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;

/** Replaces everything that differs between runs of a scenario. */
export function normaliseOutcomes(outcomes: StepOutcome[], namespace: string): StepOutcome[] {
  const names: Names = { namespace, uids: new Map(), versions: versionsOf(outcomes) };
  return outcomes.map((outcome) => normaliseOutcome(outcome, names));
}

/** Marks a page whose version differs from that of the first page of the list. Their ranks may be equal. */
function normaliseOutcome({ firstPageVersion, ...outcome }: StepOutcome, names: Names): StepOutcome {
  const version = pageVersionOf(outcome);
  const normalised = normalise(outcome, names) as StepOutcome & { body: Page };
  if (firstPageVersion !== undefined && version !== undefined && version !== firstPageVersion)
    normalised.body.metadata.resourceVersion += ", unlike the first page";
  return normalised;
}

interface Page {
  metadata: { resourceVersion?: string };
}

function pageVersionOf({ body }: StepOutcome): string | undefined {
  return (body as Partial<Page> | undefined)?.metadata?.resourceVersion;
}

/** Returns the versions of objects, which are replaced by their ranks. Those of lists and bookmarks also depend on other writes. */
function versionsOf(outcomes: StepOutcome[]): number[] {
  const versions = new Set<number>();
  const visit = (value: unknown): void => {
    if (value === null || typeof value !== "object") return;
    const { metadata } = value as { metadata?: { resourceVersion?: string; uid?: string } };
    if (metadata?.resourceVersion !== undefined && metadata.uid !== undefined)
      versions.add(Number(metadata.resourceVersion));
    Object.values(value).forEach(visit);
  };
  visit(outcomes);
  return [...versions].sort((one, other) => one - other);
}

function normalise(value: unknown, names: Names, key = ""): unknown {
  if (typeof value === "string") return normaliseText(value, names, key);
  if (Array.isArray(value))
    return sortedIf(
      key,
      value.map((item) => normalise(item, names)),
    );
  if (value === null || typeof value !== "object") return value;
  const members = Object.entries(value).map(([name, member]) => [
    normaliseText(name, names, ""),
    normaliseMember(name, member, names),
  ]);
  return Object.fromEntries(members);
}

function normaliseMember(name: string, member: unknown, names: Names): unknown {
  if (name === "resourceVersion" && typeof member === "string") return rankOf(member, names);
  if (name === "continue" && typeof member === "string" && member !== "") return "CONTINUE";
  if (name === "serverAddress" || name === "serverAddressByClientCIDRs") return "ADDRESS";
  if (/^(nodePort|healthCheckNodePort)$/.test(name) && isAllocatedPort(member)) return "PORT";
  if (name === "hash" || name === "storageVersionHash") return "HASH";
  if (name === "cells" && Array.isArray(member)) return member.map((cell) => normalise(stableAge(cell), names));
  return normalise(member, names, name);
}

/** Node ports are allocated at random, those of a dry run beyond the others. No scenario sets a port in this range. */
function isAllocatedPort(value: unknown): boolean {
  return typeof value === "number" && value >= 30_000 && value < 32_800;
}

/** The age of an object in a Table depends on the speed of the machine, and that of a fixed date on the current date. */
function stableAge(cell: unknown): unknown {
  if (typeof cell !== "string") return cell;
  return cell.replace(/^\d+s$/, "0s").replace(/^\d+y(\d+d)?$/, "YEARS");
}

function rankOf(version: string, { versions }: Names): string {
  if (!/^\d+$/.test(version)) return version;
  const rank = versions.indexOf(Number(version));
  if (rank >= 0) return `R${rank + 1}`;
  // Versions of lists and bookmarks, and invented ones of clients.
  const before = versions.filter((other) => other < Number(version)).length;
  return Number(version) < 10 ? version : `after R${before}`;
}

function sortedIf(key: string, items: unknown[]): unknown[] {
  // managedFields of the same second are sorted by manager, and otherwise by time.
  const isUnordered = ["managedFields", "causes", "resources"].includes(key);
  return isUnordered ? sortedByText(items) : items;
}

function sortedByText<T>(items: T[]): T[] {
  const textOf = (item: T) => (typeof item === "string" ? item : sortKeyOf(item));
  return [...items].sort((one, other) => (textOf(one) < textOf(other) ? -1 : 1));
}

/** Returns a key with sorted members, because servers encode equal entries with different member orders. */
function sortKeyOf(item: unknown): string {
  const members = Object.entries(item as object).sort(([one], [other]) => (one < other ? -1 : 1));
  const { operation, manager, name } = item as Record<string, unknown>;
  return JSON.stringify([operation, manager, name, members]);
}

function normaliseText(text: string, { namespace, uids }: Names, key: string): string {
  const stable = text
    .replaceAll(namespace, "NS")
    .replace(UID, (uid) => {
      if (!uids.has(uid)) uids.set(uid, `U${uids.size + 1}`);
      return uids.get(uid) as string;
    })
    // The random suffixes of generated names.
    .replace(/\b(\w+-)[bcdfghjklmnpqrstvwxz2456789]{5}\b/g, "$1xxxxx")
    // Times set by the server; scenarios use times before 2025.
    .replace(/\b20(2[5-9]|[3-9]\d)-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, "TIME")
    .replace(/(\\?"resourceVersion\\?":\\?")\d+(\\?")/g, "$1N$2")
    .replace(/(\bresourceVersion: ")\d+"/g, '$1N"')
    .replace(/resource version: \d+ \(\d+\)/g, "resource version: N (N)")
    .replace(/(Too large resource version: \d+, current:) \d+/g, "$1 N")
    .replace(/(in record) \(\d+\)/g, "$1 (N)")
    .replace(/\b10\.\d+\.\d+\.\d+\b/g, "ADDRESS");
  return key === "message" ? normaliseMessage(stable) : stable;
}

const FIELD_ERROR =
  /, (?=[^\s,]+: (?:Invalid value|Required value|Unsupported value|Forbidden|Too long|Too many|Duplicate value|Not found|Internal error)\b)/;

function normaliseMessage(message: string): string {
  return (
    message
      // Values that Go prints: pointers, maps, and the whole patched object.
      .replace(/got &.*$/gm, "got &…")
      .replace(/("resourceVersion":")\d+/g, "$1N")
      .replace(/( "" is invalid: patch: Invalid value: )"(?:[^"\\]|\\.)*"/, '$1"…"')
      .replace(/^Invalid value: "\{\\"(?:[^"\\]|\\.)*"/, 'Invalid value: "…"')
      .replace(/(Duplicate value: )3[0-2]\d{3}\b/g, "$1PORT")
      .replace(/map\[[^\n]*\]/g, "map[…]")
      .replace(
        /Invalid value: \{"(?:Spec|spec|metadata|ObjectMeta|Labels)".+?\}: field is immutable/g,
        "Invalid value: {…}: field is immutable",
      )
      .replace(
        /Invalid value: \{(?:(?!: field is immutable).)*"[Cc]ontainers":.+?\}: field is immutable/g,
        "Invalid value: {…}: field is immutable",
      )
      // The diff of two Go structs.
      .replace(/(\n@@ [^\n]*(\n[-+ ][^\n]*)+)+\n?/g, "")
      .replace(/in scheme "[^"]*"/g, 'in scheme "…"')
      .replace(
        /is invalid: \[([^]*)\]$/,
        (_, list: string) => `is invalid: [${sortedByText(list.split(FIELD_ERROR)).join(", ")}]`,
      )
      .replace(/errors:\n([^]*)$/, (_, list: string) => `errors:\n${sortedByText(list.split("\n")).join("\n")}`)
  );
}
