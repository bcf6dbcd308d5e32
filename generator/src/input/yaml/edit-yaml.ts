import { isMap, isScalar, parseAllDocuments, stringify, type Document, type Node, type Pair, type YAMLMap } from "yaml";
import { isRecord } from "./json.js";
import { keyTextOf, type YamlPath } from "./yaml-document.js";

/** A field to set, in the document of a file whose `metadata.name` is `document`. */
export interface YamlEdit {
  readonly document: string;
  /** The mapping that gets the field. */
  readonly path: YamlPath;
  readonly key: string;
  readonly value: unknown;
}

/**
 * Returns the text of a YAML file with a field set, and everything else as it is written: comments, quotes and empty lines.
 *
 * `undefined` if the field cannot be set in place: the mapping is an alias, or its form is unusual.
 */
export function setYamlField(text: string, edit: YamlEdit): string | undefined {
  const document = documentsOf(text).find((each) => each.getIn(["metadata", "name"]) === edit.document);
  const target = document?.getIn(edit.path, true);
  if (!isMap(target) || target.range == null) return undefined;
  // JSON is YAML, too, but it has to stay JSON.
  const isJson = isJsonText(text);
  const written = isJson ? JSON.stringify(edit.value) : writeInline(edit.value);
  const changed = splice(text, target, { key: isJson ? JSON.stringify(edit.key) : edit.key, written });
  return changed !== undefined && isAsWanted(changed, edit) ? changed : undefined;
}

function isJsonText(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Writes a value on one line, as prettier does. */
export function writeInline(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(writeInline).join(", ")}]`;
  // Inside brackets more has to be quoted, and the text may end up there.
  if (!isRecord(value)) return stringify([value], { collectionStyle: "flow", lineWidth: 0 }).trim().slice(2, -2);
  const fields = Object.entries(value).map(([key, each]) => `${writeInline(key)}: ${writeInline(each)}`);
  return fields.length === 0 ? "{}" : `{ ${fields.join(", ")} }`;
}

/** Parses the documents of a text. */
export function documentsOf(text: string): Document[] {
  const documents = parseAllDocuments(text, { merge: true });
  return Array.isArray(documents) ? [...documents] : [];
}

function splice(text: string, target: YAMLMap, field: { key: string; written: string }): string | undefined {
  const present = target.items.find((pair) => keyTextOf(pair) === field.key.replaceAll('"', ""));
  if (present !== undefined) return replaceValue(text, present, field.written);
  return target.flow === true ? appendInline(text, target, field) : insertLine(text, target, field);
}

function replaceValue(text: string, { key, value }: Pair, written: string): string | undefined {
  const keyEnd = rangeOf(key)?.[1];
  const range = rangeOf(value);
  if (keyEnd === undefined || range === undefined) return undefined;
  const end = range[0] + text.slice(range[0], range[1]).trimEnd().length;
  const colon = text.indexOf(":", keyEnd);
  return `${text.slice(0, colon)}: ${written}${text.slice(end)}`;
}

function appendInline(text: string, { items }: YAMLMap, field: { key: string; written: string }): string | undefined {
  const last = items.at(-1);
  const end = rangeOf(last?.value)?.[1] ?? rangeOf(last?.key)?.[1];
  return end === undefined ? undefined : `${text.slice(0, end)}, ${field.key}: ${field.written}${text.slice(end)}`;
}

// After the first field: it is there, and comments of the following field stay beside it.
function insertLine(text: string, { items }: YAMLMap, field: { key: string; written: string }): string | undefined {
  const [first] = items;
  const start = rangeOf(first?.key)?.[0];
  const end = rangeOf(first?.value)?.[1];
  if (start === undefined || end === undefined || !isScalar(first?.value)) return undefined;
  const indent = text.slice(text.lastIndexOf("\n", start - 1) + 1, start);
  if (indent.trim() !== "" || text.slice(start, end).includes("\n")) return undefined;
  const lineEnd = text.indexOf("\n", end);
  const at = lineEnd === -1 ? text.length : lineEnd;
  const [head, tail] = [text.slice(0, at), text.slice(at)];
  const newline = head.endsWith("\r") ? "\r\n" : "\n";
  return `${head.replace(/\r$/, "")}${newline}${indent}${field.key}: ${field.written}${newline === "\r\n" ? "\r" : ""}${tail}`;
}

/** Returns where a node starts, where its value ends, and where it ends with the comments after it. */
export function rangeOf(node: unknown): NonNullable<Node["range"]> | undefined {
  return (node as Node | null | undefined)?.range ?? undefined;
}

/** Tells whether the field is set, and nothing else is different. */
function isAsWanted(changed: string, { document, path, key, value }: YamlEdit): boolean {
  const after = documentsOf(changed).find((each) => each.getIn(["metadata", "name"]) === document);
  if (after === undefined || after.errors.length > 0) return false;
  const found = after.getIn([...path, key], true);
  const plain = isScalar(found) ? found.value : isNode(found) ? found.toJS(after) : found;
  return JSON.stringify(plain) === JSON.stringify(value);
}

function isNode(node: unknown): node is Node {
  return typeof node === "object" && node !== null && "toJS" in node;
}
