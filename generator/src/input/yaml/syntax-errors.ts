// What is wrong with a text that is not YAML. The library says where it stopped, which is often not the line with the mistake.
import type { YAMLError } from "yaml";
import { MOST_FOUND, type Diagnostic, type SourcePosition } from "../../diagnostic.js";
import { positionOf, type YamlSource } from "./yaml-document.js";

/** What is wrong, and what to do about it. */
interface Problem {
  readonly message: string;
  readonly hint?: string;
  /** The line to correct, from 1. Default: the one in which the library stopped */
  readonly line?: number;
}

/** An error of the library in a text. */
interface Stop {
  readonly error: YAMLError;
  readonly lines: readonly string[];
  readonly start: SourcePosition;
  readonly end: SourcePosition;
}

/** Describes the errors of a document, one for each line: what follows in it comes of the first. In JSON, all that follows does. */
export function syntaxErrors({ file, text, document, lines: counter }: YamlSource): Diagnostic[] {
  if (document.errors.length === 0) return [];
  const lines = text.split(/\r?\n/);
  const isJson = /^\s*\{\s*(?:"|$)/.test(text);
  const stops = document.errors.slice(0, isJson ? 1 : MOST_FOUND).map((error): Stop => {
    const [start, end] = error.pos;
    return { error, lines, start: positionOf(file, counter, start), end: positionOf(file, counter, end - 1) };
  });
  const found = new Map<number, Diagnostic>();
  for (const stop of stops) {
    const { message, hint, line } = isJson ? jsonProblem(stop) : yamlProblem(stop, stops);
    const position = line === undefined ? stop.start : { file, line, column: indentOf(lines[line - 1]) + 1 };
    if (found.has(position.line)) continue;
    const others = hint === undefined ? {} : { hint };
    found.set(position.line, { severity: "error", rule: "yaml-syntax", message, position, ...others });
  }
  return [...found.values()];
}

/** What is wrong if the library, which calls itself for each level of nesting, has run out of room. */
export const TOO_DEEP = "the document is nested too deeply";

const JSON_HINT = "JSON has names and texts in double quotes, a comma between two entries, and none after the last";

/** Describes what `JSON.parse` says of a text. */
export function jsonError(file: string, text: string, { message }: SyntaxError): Diagnostic {
  const [, said = message, , offset] = /^(.*?)( in JSON)? at position (\d+)/.exec(message) ?? [];
  const lines = text.slice(0, Number(offset ?? text.length)).split("\n");
  const position = { file, line: lines.length, column: (lines.at(-1) ?? "").length + 1 };
  const problem = `not JSON: ${lowerCase(said)}`;
  return { severity: "error", rule: "yaml-syntax", message: problem, position, hint: JSON_HINT };
}

function jsonProblem({ error: { code, message }, end }: Stop): Problem {
  if (/call stack/.test(message)) return { message: TOO_DEEP };
  const hint = JSON_HINT;
  const isComma = code === "MULTILINE_IMPLICIT_KEY" || code === "BLOCK_IN_FLOW" || /^Missing , between/.test(message);
  if (isComma) return { message: "not JSON: a comma is missing before this entry", hint, line: end.line };
  return { message: `not JSON: ${unclosed(message)?.message ?? lowerCase(message)}`, hint };
}

function yamlProblem(stop: Stop, stops: readonly Stop[]): Problem {
  if (/call stack/.test(stop.error.message)) return { message: TOO_DEEP };
  const { message, ...others } = indentProblem(stop, stops) ?? otherProblem(stop);
  return { message: `not YAML: ${message}`, ...others };
}

/** Describes an error that comes of what a line begins with, as its indent; `undefined` if the error is another one. */
function indentProblem({ error, lines, start, end }: Stop, stops: readonly Stop[]): Problem | undefined {
  const { code, message, pos } = error;
  const line = lines[start.line - 1] ?? "";
  if (/^(?:<{7}|={7}|>{7})/.test(line))
    return {
      message: "the line is a mark of a merge that is not finished",
      hint: "finish the merge, and delete its marks",
    };
  if (code === "TAB_AS_INDENT")
    return {
      message: "the line is indented with a tab",
      hint: "indent it with blanks: YAML takes no tabs there",
      line: start.line,
    };
  // To the library, the value goes on in the line of the next key, and is a part of that key.
  const next = stops.find((each) => each.error.code === "MULTILINE_IMPLICIT_KEY" && each.error.pos[0] === pos[0]);
  if (next !== undefined && next.end.line > start.line) return continuedValue(lines, start.line, next.end.line);
  const isMisplaced = /must start at the same column$|^Sequence item without|^A block sequence/.test(message);
  const isUnexpected = /at node end$/.test(message) && line.slice(0, start.column - 1).trim() === "";
  return isMisplaced || (isUnexpected && end.line === start.line) ? misplacedLine(lines, start.line) : undefined;
}

function continuedValue(lines: readonly string[], line: number, next: number): Problem {
  const [above = "", below = ""] = [lines[line - 1], lines[next - 1]];
  const isEntry = /^\s*- |:\s/.test(above);
  if (!isEntry || indentOf(below) <= indentOf(above))
    return {
      message: 'the line is neither "key: value" nor "- item"',
      hint: "write a blank after the colon or the hyphen, or a colon after the key",
      line,
    };
  const column = columnsOf(above).find((each) => each <= indentOf(below)) ?? 0;
  return {
    message: `the line is indented deeper than line ${line}, which has a value already`,
    hint: `indent it by ${column} as line ${line}, or put the value of line ${line} into quotes if it goes on here`,
    line: next,
  };
}

function misplacedLine(lines: readonly string[], stopped: number): Problem {
  const isText = (line: string) => !/^\s*(?:#|$)/.test(line);
  const below = lines.slice(stopped - 1).findIndex(isText);
  const line = below === -1 ? stopped : stopped + below;
  const own = indentOf(lines[line - 1]);
  const levels = levelsAbove(lines.slice(0, line - 1));
  if (levels.some(({ column }) => column === own))
    return /^\s*-(?: |$)/.test(lines[line - 1] ?? "")
      ? { message: "a list item stands among keys", hint: "indent the list deeper than its key", line }
      : {
          message: "a key stands among list items",
          hint: 'begin the line with "- ", or indent it as another key',
          line,
        };
  const near = [levels.findLast(({ column }) => column > own), levels.find(({ column }) => column < own)];
  const ways = near.flatMap((each) => (each === undefined ? [] : [`by ${each.column} to follow line ${each.line}`]));
  return {
    message: `the line is indented by ${own}, and nothing above that it could follow is`,
    hint: `indent it ${ways.join(", or ")}`,
    line,
  };
}

/** What an entry may follow: the keys and list items above that are still open, the innermost first. */
function levelsAbove(lines: readonly string[]): { readonly column: number; readonly line: number }[] {
  const levels: { column: number; line: number }[] = [];
  for (let line = lines.length; line > 0; line -= 1) {
    const text = lines[line - 1] ?? "";
    if (/^---/.test(text)) break;
    if (/^\s*(?:#|$)/.test(text)) continue;
    for (const column of columnsOf(text))
      if (column < (levels.at(-1)?.column ?? Infinity)) levels.push({ column, line });
  }
  return levels;
}

/** Returns the columns, from 0, at which entries begin in a line, the last first: that of its key, and those of list items before it. */
function columnsOf(line: string): number[] {
  const columns = [indentOf(line)];
  for (const item = /-(?: +|$)/y; ; columns.push(item.lastIndex)) {
    item.lastIndex = columns.at(-1) ?? 0;
    if (!item.test(line)) return columns.reverse();
  }
}

function indentOf(line = ""): number {
  return /^\s*/.exec(line)?.[0].length ?? 0;
}

function otherProblem({ error: { code, message }, lines, start }: Stop): Problem {
  const line = lines[start.line - 1] ?? "";
  if (/[\s{]when:/.test(line)) return { message: lowerCase(message), hint: "put the expression into quotes" };
  if (code === "BLOCK_AS_IMPLICIT_KEY")
    return {
      message: 'the value has ": " in it',
      hint: "put the value into quotes, or write it into the next line, and indent it deeper",
    };
  return unclosed(message) ?? { message: lowerCase(message) };
}

/** Describes a bracket or a quote that has no partner. */
function unclosed(message: string): Problem | undefined {
  const [, bracket] = /end with a ([\]}])$/.exec(message) ?? [];
  const [, quote] = /^Missing closing (["'])/.exec(message) ?? [];
  if (bracket !== undefined)
    return {
      message: `"${bracket === "}" ? "{" : "["}" is not closed`,
      hint: `close it with "${bracket}", and indent the lines in it deeper than its key`,
    };
  return quote === undefined
    ? undefined
    : { message: "a text in quotes is not closed", hint: `close it with ${quote}` };
}

function lowerCase(message: string): string {
  return message.charAt(0).toLowerCase() + message.slice(1);
}
