import {
  type Document,
  type LineCounter,
  type Node,
  type Pair,
  type Scalar,
  isAlias,
  isMap,
  isScalar,
  isSeq,
} from "yaml";
import { type SourcePosition, shorten } from "../../diagnostic.js";

/** Path of a value from the root of a document. */
export type YamlPath = readonly (string | number)[];

/** The position and path of a diagnostic. */
export interface Place {
  readonly position: SourcePosition;
  readonly path?: string;
}

/** One document of a YAML file: its plain value, and the positions of its parts. */
export interface YamlDocument {
  readonly file: string;
  readonly value: unknown;
  /** Returns the position of a value, or of its nearest existing ancestor. */
  valueAt(path: YamlPath): Place;
  /** Returns the position of the key of a value. */
  keyAt(path: YamlPath): Place;
  /** Returns the source text of a plain scalar; undefined for other values. */
  plainTextAt(path: YamlPath): string | undefined;
  /** Returns the position of the character at `offset` of the string at `path`. */
  characterAt(path: YamlPath, offset: number): SourcePosition;
}

/** The source of a document. */
export interface YamlSource {
  readonly file: string;
  readonly text: string;
  readonly document: Document;
  readonly lines: LineCounter;
  /** Number of the document in the file, starting at 1. Absent if it is the only one. */
  readonly number?: number;
}

/** Creates the document of a checked value. `sourceOf` is only called if a position is needed. */
export function createYamlDocument(
  { file, value }: Pick<YamlDocument, "file" | "value">,
  sourceOf: () => YamlSource,
): YamlDocument {
  const positionAt = (offset: number) => positionOf(file, sourceOf().lines, offset);
  const place = (path: YamlPath, node: unknown): Place => {
    const { number } = sourceOf();
    const steps = [
      ...(number === undefined ? [] : [`document ${number}`]),
      ...(path.length === 0 ? [] : [formatPath(path)]),
    ];
    return { position: positionAt(startOf(node) ?? 0), ...(steps.length === 0 ? {} : { path: steps.join(", ") }) };
  };
  return Object.freeze({
    file,
    value,
    valueAt: (path: YamlPath) => place(path, find(sourceOf().document, path).value),
    keyAt: (path: YamlPath) => {
      const { key, value } = find(sourceOf().document, path);
      return place(path, key ?? value);
    },
    plainTextAt: (path: YamlPath) => {
      const { value } = find(sourceOf().document, path);
      return isScalar(value) && value.type === "PLAIN" ? value.source : undefined;
    },
    characterAt: (path: YamlPath, offset: number) => {
      const { document, text } = sourceOf();
      const { value } = find(document, path);
      if (!isScalar(value) || typeof value.value !== "string") return positionAt(startOf(value) ?? 0);
      return positionAt(sourceOffsets(value, text).at(offset));
    },
  });
}

/** Converts an offset to a position. */
export function positionOf(file: string, lines: LineCounter, offset: number): SourcePosition {
  const { line, col } = lines.linePos(offset);
  return { file, line: Math.max(line, 1), column: Math.max(col, 1) };
}

/** Formats a path for a message, for example `spec.dependents.web.dependsOn[0]`. Long steps are truncated. */
export function formatPath(path: YamlPath): string {
  return path
    .map((step, index) => {
      if (typeof step === "number") return `[${step}]`;
      const short = shorten(step);
      if (!/^[\w$-]+…?$/.test(short)) return `[${JSON.stringify(short)}]`;
      return index === 0 ? short : `.${short}`;
    })
    .join("");
}

/** Returns a key as a string; YAML allows any value as a key. */
export function keyTextOf({ key }: Pair): string {
  return isScalar(key) ? String(key.value) : String(key);
}

interface Found {
  readonly value: unknown;
  readonly key?: unknown;
}

function find(document: Document, path: YamlPath): Found {
  let found: Found = { value: resolve(document, document.contents) };
  for (const step of path) {
    const next = stepInto(document, found.value, step);
    if (next === undefined) return found;
    found = next;
  }
  return found;
}

function stepInto(document: Document, node: unknown, step: string | number): Found | undefined {
  if (isSeq(node)) return typeof step === "number" ? { value: resolve(document, node.items[step]) } : undefined;
  if (!isMap(node)) return undefined;
  const pair = node.items.find((item) => keyTextOf(item) === step);
  // An omitted value (`key:`) has no position of its own.
  if (pair !== undefined) return { key: pair.key, value: resolve(document, pair.value) ?? pair.key };
  for (const merged of node.items.filter((item) => keyTextOf(item) === MERGE_KEY)) {
    const value = resolve(document, merged.value);
    const sources = isSeq(value) ? value.items.map((item) => resolve(document, item)) : [value];
    for (const source of sources) {
      const found = stepInto(document, source, step);
      if (found !== undefined) return found;
    }
  }
  return undefined;
}

/** Text of the key `<<`, which the library represents as a symbol. */
export const MERGE_KEY = String(Symbol("<<"));

function resolve(document: Document, node: unknown): unknown {
  return isAlias(node) ? node.resolve(document) : node;
}

function startOf(node: unknown): number | undefined {
  return (node as Node | null | undefined)?.range?.[0];
}

/** Maps characters of a string to their offsets in the file. */
interface SourceOffsets {
  /** Returns the offset in the file of the character at `offset`. The end of the string is allowed. */
  at(offset: number): number;
}

/**
 * Finds the characters of a scalar in its source.
 *
 * YAML folds lines, removes indentation, and resolves escapes, but in every style it preserves the order of the non-whitespace characters. The n-th
 * of them in the string is therefore the n-th in the source.
 */
function sourceOffsets(scalar: Scalar, source: string): SourceOffsets {
  const text = String(scalar.value);
  const [start, end] = scalar.range ?? [0, 0];
  const visible = visibleOffsets(source.slice(start, end), String(scalar.type)).map((offset) => start + offset);
  return {
    at(offset) {
      const before = text.slice(0, offset).replace(/\s/g, "").length;
      // Whitespace, and the end of the string, are located directly after the preceding non-whitespace character.
      if (offset < text.length && !/\s/.test(text.charAt(offset))) return visible[before] ?? start;
      const previous = visible[before - 1];
      return previous === undefined ? start : previous + 1;
    },
  };
}

/** Returns the offsets in a scalar's source that represent non-whitespace characters. */
function visibleOffsets(raw: string, style: string): number[] {
  if (style.startsWith("BLOCK")) {
    // The first line contains the header of the block scalar, and possibly a comment.
    const header = raw.indexOf("\n") + 1;
    return matchOffsets(raw.slice(header), /\S/g).map((offset) => header + offset);
  }
  if (style === "QUOTE_SINGLE") return matchOffsets(raw.slice(1, -1), /''|\S/g).map((offset) => offset + 1);
  if (style === "QUOTE_DOUBLE") return escapedOffsets(raw);
  return matchOffsets(raw, /\S/g);
}

function escapedOffsets(raw: string): number[] {
  const offsets: number[] = [];
  for (const { 0: token, index } of raw.slice(1, -1).matchAll(ESCAPE_OR_VISIBLE)) {
    if (WHITE_ESCAPE.test(token)) continue;
    // An escape beyond the basic multilingual plane represents two UTF-16 code units.
    const code = /^\\U/.test(token) ? Number.parseInt(token.slice(2), 16) : 0;
    for (let unit = 0; unit < (code > 0xffff ? 2 : 1); unit++) offsets.push(index + 1);
  }
  return offsets;
}

const ESCAPE_OR_VISIBLE = /\\(?:x[\da-fA-F]{2}|u[\da-fA-F]{4}|U[\da-fA-F]{8}|\r?\n|[^])|\S/g;
// Tab, line feed, vertical tab, form feed, carriage return, space, no-break space, line and paragraph separators, and line continuation.
const WHITE_ESCAPE = /^\\(?:[tnvfr \t_LP]|x(?:0[9a-dA-D]|20|[aA]0)|u(?:00(?:0[9a-dA-D]|20|[aA]0)|2028|2029)|\r?\n)$/;

function matchOffsets(raw: string, pattern: RegExp): number[] {
  return [...raw.matchAll(pattern)].map(({ index }) => index);
}
