import type { RawSchema } from "../../model/project-model.js";
import { escapeDirections } from "../print/print-value.js";

const WIDTH = 110;

/**
 * Returns the lines of the documentation of a field: the description, then its default and what the schema demands as tags.
 *
 * Descriptions come from anywhere, so nothing in them may end the comment or become a tag of its own.
 */
export function docLinesOf(schema: RawSchema, value: unknown): readonly string[] {
  const description = descriptionLinesOf(schema["description"]);
  const tags = tagsOf(schema, { value, description });
  if (tags.length === 0) return description;
  return description.length > 0 ? [...description, "", ...tags] : tags;
}

// The kinds of a project hold the same parts over and over, and so do the versions of a kind.
const known = new Map<string, readonly string[]>();

/** Returns the lines of a description, safe inside a comment. */
export function descriptionLinesOf(description: unknown): readonly string[] {
  if (typeof description !== "string") return [];
  const before = known.get(description);
  if (before !== undefined) return before;
  const lines = linesOf(description);
  known.set(description, lines);
  return lines;
}

function linesOf(description: string): string[] {
  const text = HARMLESS.test(description) && !description.includes("*/") ? description : withoutHarm(description);
  const lines = text.split("\n").map((line) => line.trimEnd());
  const shown =
    lines.length === 1
      ? lines.map((line) => line.trimStart())
      : lines
          .join("\n")
          .replace(/\n{3,}/g, "\n\n")
          .trim()
          .split("\n");
  return wrap(shown).filter((line, index, all) => line !== "" || (index > 0 && all.length > 1));
}

// Nearly all descriptions are plain English: spaces, letters and signs of ASCII but for "@".
const HARMLESS = /^[\n -?A-~]*$/;

function withoutHarm(description: string): string {
  const text = description
    .replace(/\r\n?|[\u2028\u2029\u0085]/g, "\n")
    // Control characters would make the file unreadable.
    .replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, " ")
    .replace(/\t/g, "  ");
  return escapeComment(text);
}

/** Makes text safe inside a comment: it neither ends the comment nor starts a tag; `name@host` stays as it is. */
function escapeComment(text: string): string {
  return escapeDirections(text.replaceAll("*/", "*\\/").replace(/(?<![\w\\])@/g, "\\@"));
}

/** Returns a JSDoc comment of lines, or nothing if there are none. */
export function renderDoc(lines: readonly string[]): string {
  if (lines.length === 0) return "";
  if (lines.length === 1) return `/** ${lines[0]} */`;
  return ["/**", ...lines.map((line) => (line === "" ? " *" : ` * ${line}`)), " */"].join("\n");
}

// Code fences and indented lines keep their shape; prose is wrapped.
function wrap(lines: readonly string[]): string[] {
  let isFenced = false;
  return lines.flatMap((line) => {
    if (line.trimStart().startsWith("```")) isFenced = !isFenced;
    return isFenced || line.length <= WIDTH || /^\s/.test(line) ? [line] : wrapLine(line);
  });
}

function wrapLine(line: string): string[] {
  const lines: string[] = [];
  let current = "";
  for (const word of line.split(" ")) {
    if (current !== "" && current.length + word.length + 1 > WIDTH) {
      // Two spaces may have stood here.
      lines.push(current.trimEnd());
      current = word;
    } else current = current === "" ? word : `${current} ${word}`;
  }
  return [...lines, current];
}

const SIMPLE_TAGS = [
  ["format", "format"],
  ["minimum", "minimum"],
  ["maximum", "maximum"],
  ["minLength", "minLength"],
  ["maxLength", "maxLength"],
  ["minItems", "minItems"],
  ["maxItems", "maxItems"],
  ["minProperties", "minProperties"],
  ["maxProperties", "maxProperties"],
  ["multipleOf", "multipleOf"],
  ["pattern", "pattern"],
] as const;

const TAGGED: ReadonlySet<string> = new Set([
  ...SIMPLE_TAGS.map(([keyword]) => keyword),
  "deprecated",
  "x-kubernetes-list-type",
  "x-kubernetes-validations",
]);

interface Documented {
  /** The default. */
  readonly value: unknown;
  readonly description: readonly string[];
}

function tagsOf(schema: RawSchema, { value: byDefault, description }: Documented): string[] {
  const tags: string[] = [];
  const add = (tag: string, text = "") => tags.push(text === "" ? `@${tag}` : `@${tag} ${oneLine(text)}`.trimEnd());
  if (description.some((line) => /^Deprecated\b/i.test(line)) || schema["deprecated"] === true) add("deprecated");
  if (byDefault !== undefined) add("default", JSON.stringify(byDefault));
  if (!Object.keys(schema).some((keyword) => TAGGED.has(keyword))) return tags;
  for (const [keyword, tag] of SIMPLE_TAGS) {
    const value = schema[keyword];
    if (typeof value !== "string" && typeof value !== "number") continue;
    const exclusive = schema[keyword === "minimum" ? "exclusiveMinimum" : "exclusiveMaximum"] === true;
    add(tag, /^m(in|ax)imum$/.test(keyword) && exclusive ? `${value} (exclusive)` : String(value));
  }
  const listType = schema["x-kubernetes-list-type"];
  const keys = schema["x-kubernetes-list-map-keys"];
  if (typeof listType === "string")
    add("listType", listType === "map" && Array.isArray(keys) ? `map by ${keys.join(", ")}` : listType);
  const rules = schema["x-kubernetes-validations"];
  for (const rule of Array.isArray(rules) ? (rules as RawSchema[]) : [])
    add("validation", String(rule["message"] ?? rule["rule"]));
  return tags;
}

function oneLine(text: string): string {
  return escapeComment(text.replace(/[\s\u0000-\u001f\u007f\u0085\u2028\u2029]+/g, " ").trim());
}
