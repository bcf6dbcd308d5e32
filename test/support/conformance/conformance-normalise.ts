// Makes the outcomes of two runs comparable: identities, versions, times and generated names become what they mean within the
// scenario, and what a Go map orders by chance is sorted.
import type { StepOutcome } from "./conformance-play.js";

interface Names {
  namespace: string;
  uids: Map<string, string>;
  /** The versions of objects, in order. */
  versions: number[];
}

const UID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;

/** Gives the outcomes with all that differs from run to run named after its part in the scenario. */
export function normaliseOutcomes(outcomes: StepOutcome[], namespace: string): StepOutcome[] {
  const names: Names = { namespace, uids: new Map(), versions: versionsOf(outcomes) };
  return outcomes.map((outcome) => normaliseOutcome(outcome, names));
}

/** A page with another version than the first page of its list says so: its rank alone may be the same. */
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

/** Versions of objects are ranked; those of lists and bookmarks move with writes elsewhere and are not. */
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

/** Node ports are allocated by chance, those of a dry run beyond the others; no scenario asks for one of that range. */
function isAllocatedPort(value: unknown): boolean {
  return typeof value === "number" && value >= 30_000 && value < 32_800;
}

/** The age of an object in a table depends on how busy the machine is, that of a written date on the day of the test. */
function stableAge(cell: unknown): unknown {
  if (typeof cell !== "string") return cell;
  return cell.replace(/^\d+s$/, "0s").replace(/^\d+y(\d+d)?$/, "YEARS");
}

function rankOf(version: string, { versions }: Names): string {
  if (!/^\d+$/.test(version)) return version;
  const rank = versions.indexOf(Number(version));
  if (rank >= 0) return `R${rank + 1}`;
  // What lists and bookmarks carry, and what a client made up.
  const before = versions.filter((other) => other < Number(version)).length;
  return Number(version) < 10 ? version : `after R${before}`;
}

function sortedIf(key: string, items: unknown[]): unknown[] {
  // Entries of the same second are sorted by manager, others by time.
  const isUnordered = ["managedFields", "causes", "resources"].includes(key);
  return isUnordered ? sortedByText(items) : items;
}

function sortedByText<T>(items: T[]): T[] {
  const textOf = (item: T) => (typeof item === "string" ? item : sortKeyOf(item));
  return [...items].sort((one, other) => (textOf(one) < textOf(other) ? -1 : 1));
}

/** Members in an order of our own: servers write the same entry in different orders. */
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
    // The suffix of a generated name is random.
    .replace(/\b(\w+-)[bcdfghjklmnpqrstvwxz2456789]{5}\b/g, "$1xxxxx")
    // Times that the server chose; scenarios send times of 2024 and before.
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
      // A difference of two Go structs.
      .replace(/(\n@@ [^\n]*(\n[-+ ][^\n]*)+)+\n?/g, "")
      .replace(/in scheme "[^"]*"/g, 'in scheme "…"')
      .replace(
        /is invalid: \[([^]*)\]$/,
        (_, list: string) => `is invalid: [${sortedByText(list.split(FIELD_ERROR)).join(", ")}]`,
      )
      .replace(/errors:\n([^]*)$/, (_, list: string) => `errors:\n${sortedByText(list.split("\n")).join("\n")}`)
  );
}
