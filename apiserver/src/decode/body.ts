import { MAX_DEPTH, isTooDeep } from "@gen-operator/schema";
import type { Tags, YAMLParseError } from "yaml";
import { BodySyntaxError, jsonSyntaxError } from "../errors/decode-errors.js";
import { quote } from "../errors/go-format.js";
import { MEDIA_TYPES, unsupportedMediaType } from "../errors/status-error.js";
import { LongIntegers, parseJsonWithTexts } from "../exact-numbers.js";
import { type JsonValue, sortedJson } from "../json.js";
import { yamlLibrary } from "../yaml-library.js";
import { parseProtobuf } from "./protobuf.js";

/** A parsed body, with details that the parsed value has lost. */
export interface ParsedBody {
  value: JsonValue;
  /** The integers that the value cannot represent exactly. */
  integers?: LongIntegers | undefined;
  /** Returns the duplicate fields, as warnings report them. */
  duplicates: () => string[];
  /** Returns the same problems as the error of strict field validation reports them. */
  duplicateErrors: () => string[];
}

const MAX_QUOTED_BYTES = 30;

/** Parses a request body with an object. Protobuf is supported for built-in kinds other than CustomResourceDefinition and APIService. */
export function parseObjectBody(body: Buffer, contentType: string | undefined): ParsedBody {
  const mediaType = mediaTypeOf(contentType);
  if (mediaType === "" || mediaType === "application/json") return parseJson(body);
  if (mediaType === "application/yaml") return parseYaml(body);
  const object = mediaType === "application/vnd.kubernetes.protobuf" ? parseProtobuf(body) : undefined;
  if (object === undefined) throw unsupportedMediaType(MEDIA_TYPES);
  return { value: object, duplicates: () => [], duplicateErrors: () => [] };
}

/** Returns a content type without its parameters; "" if there is none. */
export function mediaTypeOf(contentType: string | undefined): string {
  return (contentType ?? "").split(";")[0]?.trim().toLowerCase() ?? "";
}

/** Parses JSON. Throws a BodySyntaxError if it is invalid and a NumberRangeError for a number that does not fit into a float64. */
export function parseJson(body: Buffer): ParsedBody {
  const text = body.toString();
  try {
    return parseJsonText(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new BodySyntaxError(jsonSyntaxError(body));
  }
}

function parseJsonText(text: string): ParsedBody {
  const bracket = tooDeepBracket(text);
  if (bracket !== undefined) throw new BodySyntaxError(`invalid character '${bracket}' exceeded max depth`);
  const value = parseJsonWithTexts(text);
  checkNumbers(text);
  const integers = LongIntegers.inJson(text);
  integers?.settle(value);
  // Counted now, because the value may be changed before `duplicates` is called.
  const memberCount = memberCountOf(value);
  const duplicates = () => (mayHaveDuplicates(text, memberCount) ? duplicateFieldTexts(text) : []);
  return { value, integers, duplicates, duplicateErrors: duplicates };
}

/** Parses YAML 1.1. Valid JSON is parsed as JSON. */
export function parseYaml(body: Buffer): ParsedBody {
  const text = body.toString();
  if (text.startsWith("{")) {
    try {
      return parseJsonText(text);
    } catch (error) {
      // A YAML flow mapping starts like JSON.
      if (!(error instanceof SyntaxError)) throw error;
    }
  }
  const { LineCounter, parseDocument } = yamlLibrary();
  const lineCounter = new LineCounter();
  const options = { version: "1.1", customTags: plainTags, prettyErrors: false } as const;
  const document = withinLimits(() => parseDocument(text, { ...options, lineCounter }));
  const repeated: string[] = [];
  for (const error of document.errors) {
    // As in Kubernetes, only the first document is used.
    if (error.code === "MULTIPLE_DOCS") continue;
    const { line } = lineCounter.linePos(error.pos[0]);
    if (error.code !== "DUPLICATE_KEY") throw new BodySyntaxError(yamlErrorText(line, error), "yaml");
    repeated.push(`line ${line}: key ${quote(keyAt(text, error.pos[0]))} already set in map`);
  }
  const given = withinLimits(() => (document.toJS() ?? null) as JsonValue);
  if (isTooDeep(given)) throw new BodySyntaxError(YAML_TOO_DEEP, "yaml");
  // Kubernetes converts YAML to JSON first, which sorts the keys of maps.
  const value = withinLimits(() => sortedJson(given));
  const integers = MAY_BE_LONG.test(text)
    ? LongIntegers.in(parseDocument(text, { ...options, intAsBigInt: true }).toJS())
    : undefined;
  integers?.settle(value);
  const errors = repeated.length === 0 ? [] : [["yaml: unmarshal errors:", ...repeated].join("\n  ")];
  return { value, integers, duplicates: () => repeated, duplicateErrors: () => errors };
}

// 2^53 has 14 hexadecimal digits, and YAML allows underscores between digits.
const MAY_BE_LONG = /[\da-fA-F_]{14}/;

const YAML_TOO_DEEP = "yaml: exceeded max depth of 10000";

/** Converts errors of the YAML parser to BodySyntaxErrors, including stack overflows and excessive aliasing. */
function withinLimits<Parsed>(parse: () => Parsed): Parsed {
  try {
    return parse();
  } catch (error) {
    if (error instanceof RangeError) throw new BodySyntaxError(YAML_TOO_DEEP, "yaml");
    if (error instanceof ReferenceError)
      throw new BodySyntaxError("yaml: document contains excessive aliasing", "yaml");
    // For example, the source of a merge key (<<) is not a map.
    throw new BodySyntaxError(`yaml: ${error instanceof Error ? error.message : String(error)}`, "yaml");
  }
}

// Kubernetes' YAML parser keeps timestamps and sexagesimal numbers as strings.
function plainTags(tags: Tags): Tags {
  return tags.filter((tag) => typeof tag === "string" || (!tag.tag.endsWith(":timestamp") && tag.format !== "TIME"));
}

// The messages of go-yaml for the same errors.
const GO_TEXTS: { readonly [code: string]: string } = {
  BLOCK_AS_IMPLICIT_KEY: "mapping values are not allowed in this context",
  TAB_AS_INDENT: "found character that cannot start any token",
};

function yamlErrorText(line: number, { code, message }: YAMLParseError): string {
  const text = GO_TEXTS[code] ?? message;
  return line === 1 ? `yaml: ${text}` : `yaml: line ${line}: ${text}`;
}

function keyAt(text: string, start: number): string {
  return /^["']?([^"':\n]*)/.exec(text.slice(start))?.[1]?.trim() ?? "";
}

/** Returns the beginning of a body for error messages: as text if it looks like JSON, otherwise in hexadecimal. */
export function bodyStart(body: Buffer): string {
  if (body.length === 0) return "<empty>";
  const start = body.subarray(0, MAX_QUOTED_BYTES).toString(body[0] === 0x7b ? "utf8" : "hex");
  return body.length > MAX_QUOTED_BYTES ? `${start} ...` : start;
}

interface Level {
  path: string;
  /** The keys seen so far; undefined for a list. */
  names: Set<string> | undefined;
  index: number;
}

/**
 * Returns the paths of duplicate fields, such as `data.a`, which the parsed value no longer shows.
 *
 * The text must be valid JSON.
 */
export function duplicateFields(json: string): string[] {
  const duplicates: string[] = [];
  const levels: Level[] = [];
  let level: Level | undefined;
  let path = "";
  for (let at = 0; at < json.length; at++) {
    switch (json.charCodeAt(at)) {
      case 0x22: {
        const end = endOfString(json, at);
        if (level?.names !== undefined && isName(json, end)) {
          const name = textOf(json.slice(at, end + 1));
          path = level.path === "" ? name : `${level.path}.${name}`;
          if (level.names.has(name)) duplicates.push(path);
          level.names.add(name);
        }
        at = end;
        break;
      }
      case 0x7b: // {
      case 0x5b: // [
        if (level !== undefined && level.names === undefined) path = `${level.path}[${level.index}]`;
        level = { path, names: json[at] === "{" ? new Set() : undefined, index: 0 };
        levels.push(level);
        break;
      case 0x7d: // }
      case 0x5d: // ]
        levels.pop();
        level = levels.at(-1);
        break;
      case 0x2c: // ,
        if (level !== undefined) level.index++;
        break;
    }
  }
  return duplicates;
}

function isName(json: string, end: number): boolean {
  let at = end + 1;
  while (json.charCodeAt(at) <= 0x20) at++;
  return json[at] === ":";
}

function textOf(quoted: string): string {
  return quoted.includes("\\") ? (JSON.parse(quoted) as string) : quoted.slice(1, -1);
}

// The end of a key, or a string whose content looks like one.
const NAME_END = /"[\t\n\r ]*:/g;

/** Returns false if a JSON text certainly has no duplicate fields, because it has no more keys than its parsed value has members. */
export function mayHaveDuplicates(json: string, memberCount: number): boolean {
  NAME_END.lastIndex = 0;
  let names = 0;
  while (NAME_END.test(json)) names++;
  return names !== memberCount;
}

/** Counts the members of all objects in a value, recursively. */
export function memberCountOf(value: JsonValue): number {
  if (typeof value !== "object" || value === null) return 0;
  let count = 0;
  if (Array.isArray(value)) for (const item of value) count += memberCountOf(item);
  else
    for (const key in value) {
      count += 1 + memberCountOf(value[key] as JsonValue);
    }
  return count;
}

/** Formats duplicate fields as strict decoding reports them. */
function duplicateFieldTexts(json: string): string[] {
  return duplicateFields(json).map((path) => `duplicate field ${quote(path)}`);
}

// Limits on every body, checked before it is decoded: the nesting depth, and numbers that do not fit into a float64.

/** The body is valid JSON or YAML but contains a number that does not fit into a float64. */
export class NumberRangeError extends Error {
  override readonly name = "NumberRangeError";

  constructor(number: string) {
    super(`json: cannot unmarshal number ${number} into Go value of type float64`);
  }
}

/** Returns the bracket that exceeds the maximum depth; undefined if there is none. */
function tooDeepBracket(json: string): "{" | "[" | undefined {
  // Each level takes at least two characters.
  if (json.length < 2 * MAX_DEPTH) return undefined;
  let depth = 0;
  for (let at = 0; at < json.length; at++)
    switch (json.charCodeAt(at)) {
      case 0x22: // "
        at = endOfString(json, at);
        break;
      case 0x7b: // {
      case 0x5b: // [
        if (++depth > MAX_DEPTH) return json[at] as "{" | "[";
        break;
      case 0x7d: // }
      case 0x5d: // ]
        depth--;
    }
  return undefined;
}

// A three-digit exponent, or as many digits as the largest float64 has.
const CAN_OVERFLOW = /[eE]\+?0*[1-9]\d\d|\d{309}/;
const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/** Throws a NumberRangeError if a valid JSON text contains a number that is too large. */
function checkNumbers(json: string): void {
  if (!CAN_OVERFLOW.test(json)) return;
  for (const [token] of json.matchAll(TOKEN))
    if (!token.startsWith('"') && !Number.isFinite(Number(token))) throw new NumberRangeError(token);
}

/** Returns the index of the closing quote of the string that starts at `start`; the length of the text if it is not closed. */
function endOfString(json: string, start: number): number {
  for (let at = start + 1; at < json.length; at++) {
    const code = json.charCodeAt(at);
    if (code === 0x22) return at;
    if (code === 0x5c) at++;
  }
  return json.length;
}
