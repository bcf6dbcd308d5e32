import { isTooDeep } from "@gen-operator/schema";
import type { Tags, YAMLParseError } from "yaml";
import { MEDIA_TYPES } from "../errors/media-types.js";
import { quote } from "../errors/quote.js";
import { unsupportedMediaType } from "../errors/status-error.js";
import { sortedJson, type JsonValue } from "../json.js";
import { parseJsonWithTexts } from "../number-texts.js";
import { yamlLibrary } from "../yaml-library.js";
import { BodySyntaxError } from "./body-syntax-error.js";
import { checkNumbers, tooDeepBracket } from "./check-limits.js";
import { duplicateFieldTexts, mayHaveDuplicates, memberCountOf } from "./duplicate-fields.js";
import { jsonSyntaxError } from "../errors/json-syntax-error.js";
import { parseProtobuf } from "./protobuf.js";

/** A body as a value, with what only its text shows. */
export interface ParsedBody {
  value: JsonValue;
  /** Members that are set twice, in the words of strict decoding. */
  duplicates: () => string[];
  /** The same as a strict request is told of them. */
  duplicateErrors: () => string[];
}

const MAX_QUOTED_BYTES = 30;

/** Parses the body of a request that sends an object; protobuf is understood for a few kinds only. */
export function parseObjectBody(body: Buffer, contentType: string | undefined): ParsedBody {
  const mediaType = mediaTypeOf(contentType);
  if (mediaType === "" || mediaType === "application/json") return parseJson(body);
  if (mediaType === "application/yaml") return parseYaml(body);
  const object = mediaType === "application/vnd.kubernetes.protobuf" ? parseProtobuf(body) : undefined;
  if (object === undefined) throw unsupportedMediaType(MEDIA_TYPES);
  return { value: object, duplicates: () => [], duplicateErrors: () => [] };
}

/** Returns a content type without its parameters, "" for none. */
export function mediaTypeOf(contentType: string | undefined): string {
  return (contentType ?? "").split(";")[0]?.trim().toLowerCase() ?? "";
}

/** Parses JSON. */
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
  // The value may be changed before somebody asks.
  const memberCount = memberCountOf(value);
  const duplicates = () => (mayHaveDuplicates(text, memberCount) ? duplicateFieldTexts(text) : []);
  return { value, duplicates, duplicateErrors: duplicates };
}

/** Parses YAML 1.1, of which JSON is a part; a text that is JSON is parsed as such. */
export function parseYaml(body: Buffer): ParsedBody {
  const text = body.toString();
  if (text.startsWith("{")) {
    try {
      return parseJsonText(text);
    } catch (error) {
      // A flow mapping of YAML looks the same at its start.
      if (!(error instanceof SyntaxError)) throw error;
    }
  }
  const { LineCounter, parseDocument } = yamlLibrary();
  const lineCounter = new LineCounter();
  const document = withinLimits(() =>
    parseDocument(text, { version: "1.1", customTags: plainTags, lineCounter, prettyErrors: false }),
  );
  const repeated: string[] = [];
  for (const error of document.errors) {
    // The first document is the body.
    if (error.code === "MULTIPLE_DOCS") continue;
    const { line } = lineCounter.linePos(error.pos[0]);
    if (error.code !== "DUPLICATE_KEY") throw new BodySyntaxError(yamlErrorText(line, error), "yaml");
    repeated.push(`line ${line}: key ${quote(keyAt(text, error.pos[0]))} already set in map`);
  }
  const given = withinLimits(() => (document.toJS() ?? null) as JsonValue);
  if (isTooDeep(given)) throw new BodySyntaxError(YAML_TOO_DEEP, "yaml");
  // Kubernetes makes JSON of it first, with the keys of maps in their order.
  const value = withinLimits(() => sortedJson(given));
  const errors = repeated.length === 0 ? [] : [["yaml: unmarshal errors:", ...repeated].join("\n  ")];
  return { value, duplicates: () => repeated, duplicateErrors: () => errors };
}

const YAML_TOO_DEEP = "yaml: exceeded max depth of 10000";

/** Parses YAML; what takes the parser all of its stack or of its patience is no YAML. */
function withinLimits<Parsed>(parse: () => Parsed): Parsed {
  try {
    return parse();
  } catch (error) {
    if (error instanceof RangeError) throw new BodySyntaxError(YAML_TOO_DEEP, "yaml");
    if (error instanceof ReferenceError)
      throw new BodySyntaxError("yaml: document contains excessive aliasing", "yaml");
    // For example the source of a merge (<<) that is no map.
    throw new BodySyntaxError(`yaml: ${error instanceof Error ? error.message : String(error)}`, "yaml");
  }
}

// Kubernetes' parser leaves times and numbers in base 60 as text.
function plainTags(tags: Tags): Tags {
  return tags.filter((tag) => typeof tag === "string" || (!tag.tag.endsWith(":timestamp") && tag.format !== "TIME"));
}

// What go-yaml says of the same faults.
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

/** Returns the start of a body as failures quote it: as it is when it looks like JSON, else in hexadecimal digits. */
export function bodyStart(body: Buffer): string {
  if (body.length === 0) return "<empty>";
  const start = body.subarray(0, MAX_QUOTED_BYTES).toString(body[0] === 0x7b ? "utf8" : "hex");
  return body.length > MAX_QUOTED_BYTES ? `${start} ...` : start;
}
