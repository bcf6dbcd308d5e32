// Describes YAML syntax errors. The library reports where it stopped, which is often not the line with the mistake.
import { type Document, type Node, type YAMLError, isCollection, visit } from "yaml";
import { type Diagnostic, MOST_FOUND, type SourcePosition, positionAfter } from "../../diagnostic.js";
import { YAML_SYNTAX } from "./rules.js";
import { type YamlSource, positionOf } from "./yaml-document.js";

/** A problem and how to fix it. */
interface Problem {
  readonly message: string;
  readonly hint?: string;
  /** Line of the problem, starting at 1. Default: the line in which the library stopped */
  readonly line?: number;
  /** Position of the problem. Default: the start of `line` */
  readonly position?: SourcePosition;
}

/** An error of the library, with its position in the text. */
interface Stop {
  readonly error: YAMLError;
  readonly source: YamlSource;
  readonly lines: readonly string[];
  readonly start: SourcePosition;
  readonly end: SourcePosition;
}

/**
 * Describes the errors of a document, at most one per line, because later errors in a line usually follow from the first. For JSON, only the first
 * error is described.
 */
export function syntaxErrors(source: YamlSource): Diagnostic[] {
  const { file, text, document, lines: counter } = source;
  const lines = text.split(/\r?\n/);
  const stops = document.errors.slice(0, MOST_FOUND).map((error): Stop => {
    const [start, end] = error.pos;
    return { error, source, lines, start: positionOf(file, counter, start), end: positionOf(file, counter, end - 1) };
  });
  if (/^\s*\{\s*(?:"|$)/.test(text)) return stops.slice(0, 1).map(describeInJson);
  const seen = new Set<number>();
  return stops.flatMap((stop) => {
    const { line, position, ...problem } = yamlProblem(stop, stops);
    const ofLine = line === undefined ? stop.start : { file, line, column: indentOf(lines[line - 1]) + 1 };
    const place = position ?? ofLine;
    if (seen.has(place.line) || seen.has(stop.start.line)) return [];
    seen.add(place.line).add(stop.start.line);
    return [{ ...YAML_SYNTAX.violation, ...problem, position: place }];
  });
}

/** Finds the first conflict marker of an unresolved merge, in YAML and JSON. It makes all other errors irrelevant. */
export function markOfMerge(file: string, text: string): Diagnostic | undefined {
  const line = text.split("\n").findIndex((each) => /^([<|=>])\1{6}/.test(each)) + 1;
  if (line === 0) return undefined;
  const message = "unresolved merge conflict";
  return {
    ...YAML_SYNTAX.violation,
    message,
    position: { file, line, column: 1 },
    hint: "resolve the conflict, and remove its markers",
  };
}

/** Message for a stack overflow of the recursive parser. */
export const TOO_DEEP = "the document is nested too deeply";

const JSON_HINT = "use double quotes for names and strings, and a comma between entries, but not after the last";

/** Converts an error of `JSON.parse` to a diagnostic. */
export function jsonError(file: string, text: string, { message }: SyntaxError): Diagnostic {
  const said = message
    .replace(/(?: in JSON)? at position \d+[^]*$/, "")
    .replace(/^(Unexpected) token '(.+?)', [^]*$/, '$1 "$2"');
  const offset = offsetOf(text, message);
  // A tab in a string is a different error.
  const isUnclosed =
    /^Unterminated string/.test(said) || (/^Bad control/.test(said) && /[\r\n]/.test(text.charAt(offset)));
  const position = positionAfter(file, text.slice(0, isUnclosed ? text.lastIndexOf('"', offset - 1) : offset));
  const problem = isUnclosed ? UNCLOSED_TEXT : lowerCase(said);
  return { ...YAML_SYNTAX.violation, message: `invalid JSON: ${problem}`, position, hint: JSON_HINT };
}

/** Returns the offset at which `JSON.parse` stopped. For an unexpected character, its message only contains the surrounding text. */
function offsetOf(text: string, message: string): number {
  const [, offset] = / at position (\d+)/.exec(message) ?? [];
  if (offset !== undefined) return Number(offset);
  const [, character = "", around = ""] =
    /^Unexpected token '(.+?)', (?:\.\.\.)?"([^]*)"(?:\.\.\.)? is not/.exec(message) ?? [];
  if (character === "") return text.length;
  const start = text.indexOf(around);
  for (let at = text.indexOf(character, start); at !== -1; at = text.indexOf(character, at + 1))
    if (/^Unexpected token/.test(errorOf(text.slice(0, at + 1))?.message ?? "")) return at;
  return 0;
}

function errorOf(text: string): SyntaxError | undefined {
  try {
    JSON.parse(text);
    return undefined;
  } catch (error) {
    return error as SyntaxError;
  }
}

/** Describes the error of a text that looks like JSON. The library knows more about the error, and `JSON.parse` its position. */
function describeInJson(stop: Stop): Diagnostic {
  const { code, message } = stop.error;
  if (/call stack/.test(message)) return { ...YAML_SYNTAX.violation, message: TOO_DEEP, position: stop.start };
  const { file, text } = stop.source;
  const bracket = /end with a [\]}]$/.test(message) ? unclosed(stop) : undefined;
  if (bracket?.position !== undefined)
    return {
      ...YAML_SYNTAX.violation,
      message: `invalid JSON: ${bracket.message}`,
      position: bracket.position,
      hint: JSON_HINT,
    };
  const error = errorOf(text);
  const said = error === undefined ? undefined : jsonError(file, text, error);
  const isComma = code === "MULTILINE_IMPLICIT_KEY" || code === "BLOCK_IN_FLOW" || /^Missing , between/.test(message);
  const position = said?.position ?? (isComma ? stop.end : stop.start);
  if (isComma && said?.message !== `invalid JSON: ${UNCLOSED_TEXT}`)
    return { ...YAML_SYNTAX.violation, message: `invalid JSON: ${MISSING_COMMA}`, position, hint: JSON_HINT };
  return (
    said ?? { ...YAML_SYNTAX.violation, message: `invalid JSON: ${lowerCase(message)}`, position, hint: JSON_HINT }
  );
}

const MISSING_COMMA = "missing comma before this entry";
const UNCLOSED_TEXT = "missing closing quote of a string";

function yamlProblem(stop: Stop, stops: readonly Stop[]): Problem {
  if (/call stack/.test(stop.error.message)) return { message: TOO_DEEP };
  const { message, ...others } = indentProblem(stop, stops) ?? otherProblem(stop);
  return { message: `invalid YAML: ${message}`, ...others };
}

/** Describes an error that is caused by the start of a line, such as its indentation; undefined for other errors. */
function indentProblem({ error, source, lines, start, end }: Stop, stops: readonly Stop[]): Problem | undefined {
  const { code, message, pos } = error;
  const line = lines[start.line - 1] ?? "";
  if (code === "TAB_AS_INDENT")
    return {
      message: "the line is indented with a tab",
      hint: "indent it with spaces: YAML does not allow tabs there",
      line: start.line,
    };
  // For the library, the value continues in the line of the next key, and is part of that key.
  const next = stops.find((each) => each.error.code === "MULTILINE_IMPLICIT_KEY" && each.error.pos[0] === pos[0]);
  if (next !== undefined && next.end.line > start.line)
    return isInBrackets(source.document, pos[0])
      ? { message: MISSING_COMMA, hint: "separate entries in brackets with commas", line: next.end.line }
      : continuedValue(lines, start.line, next.end.line);
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
      hint: "add a space after the colon or the hyphen, or a colon after the key",
      line,
    };
  const column = columnsOf(above).find((each) => each <= indentOf(below)) ?? 0;
  return {
    message: `the line is indented deeper than line ${line}, which already has a value`,
    hint: `indent it by ${column} like line ${line}, or quote the value of line ${line} if it continues here`,
    line: next,
  };
}

function misplacedLine(lines: readonly string[], stopped: number): Problem {
  const isText = (line: string) => !/^\s*(?:#|$)/.test(line);
  const below = lines.slice(stopped - 1).findIndex(isText);
  const line = below === -1 ? stopped : stopped + below;
  const own = indentOf(lines[line - 1]);
  const isItem = /^\s*-(?: |$)/.test(lines[line - 1] ?? "");
  const levels = levelsAbove(lines.slice(0, line - 1));
  if (levels.some(({ column }) => column === own))
    return isItem
      ? { message: "unexpected list item among keys", hint: "indent the list deeper than its key", line }
      : {
          message: "unexpected key among list items",
          hint: 'begin the line with "- ", or indent it as another key',
          line,
        };
  // A key can only follow a key, and an item can only follow an item.
  const ofKind = levels.filter((each) => each.isItem === isItem);
  const near = [ofKind.findLast(({ column }) => column > own), ofKind.find(({ column }) => column < own)];
  const ways = near.flatMap((each) => (each === undefined ? [] : [`by ${each.column} to follow line ${each.line}`]));
  return {
    message: `invalid indentation by ${own}: no line above that it can follow has it`,
    hint: ways.length === 0 ? "indent it like a line above" : `indent it ${ways.join(", or ")}`,
    line,
  };
}

/** Start of a key or a list item. */
interface Level {
  readonly column: number;
  readonly line: number;
  readonly isItem: boolean;
}

/** Returns the levels that an entry can follow: the open keys and list items above it, the innermost first. */
function levelsAbove(lines: readonly string[]): Level[] {
  const levels: Level[] = [];
  for (let line = lines.length; line > 0; line -= 1) {
    const text = lines[line - 1] ?? "";
    if (/^---/.test(text)) break;
    if (/^\s*(?:#|$)/.test(text)) continue;
    for (const column of columnsOf(text))
      if (column < (levels.at(-1)?.column ?? Infinity))
        levels.push({ column, line, isItem: /^-(?: |$)/.test(text.slice(column)) });
  }
  return levels;
}

/** Returns the columns, starting at 0, at which entries start in a line, the last first: that of its key, and those of the list items before it. */
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

function otherProblem(stop: Stop): Problem {
  const { error, lines, start } = stop;
  const { code, message } = error;
  const line = lines[start.line - 1] ?? "";
  if (/[\s{]when:/.test(line)) return { message: lowerCase(message), hint: "quote the expression" };
  if (code === "BLOCK_AS_IMPLICIT_KEY")
    return {
      message: 'the value contains ": "',
      hint: "quote the value",
    };
  return unclosed(stop) ?? { message: lowerCase(message) };
}

/** Describes a bracket or a quote that is not closed. The library stops at the end of the text that it opens. */
function unclosed({ error: { message, pos }, source }: Stop): Problem | undefined {
  const [, bracket] = /end with a ([\]}])$/.exec(message) ?? [];
  const [, quote] = /^Missing closing (["'])/.exec(message) ?? [];
  const opening = bracket === undefined ? quote : bracket === "}" ? "{" : "[";
  if (opening === undefined) return undefined;
  const isOpening = ([start, end]: Range) => source.text[start] === opening && end === pos[0];
  const start = rangesOf(source.document).find(isOpening)?.[0];
  const place = start === undefined ? {} : { position: positionOf(source.file, source.lines, start) };
  if (bracket === undefined) return { message: UNCLOSED_TEXT, hint: `close it with ${opening}`, ...place };
  const hint = `close it with "${bracket}", and indent the lines in it deeper than its key`;
  return { message: `"${opening}" is not closed`, hint, ...place };
}

type Range = readonly [start: number, end: number];

/** Returns the ranges of the matching nodes in a document, outer nodes first. */
function rangesOf(document: Document, isOfKind: (node: Node) => boolean = () => true): Range[] {
  const ranges: Range[] = [];
  visit(document, {
    Node: (_, node) => {
      if (node.range && isOfKind(node)) ranges.push([node.range[0], node.range[1]]);
    },
  });
  return ranges;
}

function isInBrackets(document: Document, offset: number): boolean {
  const isFlow = (node: Node) => isCollection(node) && node.flow === true;
  return rangesOf(document, isFlow).some(([start, end]) => start < offset && offset < end);
}

function lowerCase(message: string): string {
  return message.charAt(0).toLowerCase() + message.slice(1);
}
