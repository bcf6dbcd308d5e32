import { isDeepStrictEqual } from "node:util";
import { type Document, type Node, type Pair, type YAMLMap, isMap, isScalar, parseAllDocuments, stringify } from "yaml";
import { isRecord } from "./values.js";
import { type YamlPath, keyTextOf } from "./yaml-document.js";

/** A field to set in the document with `metadata.name` equal to `document`. */
interface YamlEdit {
  readonly document: string;
  /** Path of the mapping that contains the field. */
  readonly path: YamlPath;
  readonly key: string;
  readonly value: unknown;
}

/**
 * Sets a field in the text of a YAML file, preserving everything else, including comments, quotes, and empty lines.
 *
 * Returns undefined if the field cannot be set in place, because the mapping is an alias or has an unusual form.
 */
export function setYamlField(text: string, edit: YamlEdit): string | undefined {
  const document = documentsOf(text).find((each) => each.getIn(["metadata", "name"]) === edit.document);
  const target = document?.getIn(edit.path, true);
  if (!isMap(target) || target.range == null) return undefined;
  // A JSON file is valid YAML, but must remain JSON.
  const isJson = isJsonText(text);
  const written = isJson ? JSON.stringify(edit.value) : writeInline(edit.value);
  const changed = splice(text, target, { key: isJson ? JSON.stringify(edit.key) : edit.key, written });
  return changed !== undefined && isEditAsWanted(changed, edit) ? changed : undefined;
}

function isJsonText(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Formats a value on one line, like prettier. */
export function writeInline(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(writeInline).join(", ")}]`;
  // Format scalars as in a flow collection, where more of them must be quoted.
  if (!isRecord(value)) return stringify([value], { collectionStyle: "flow", lineWidth: 0 }).trim().slice(2, -2);
  const fields = Object.entries(value).map(([key, each]) => `${writeInline(key)}: ${writeInline(each)}`);
  return fields.length === 0 ? "{}" : `{ ${fields.join(", ")} }`;
}

function documentsOf(text: string): Document[] {
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

// Insert after the first field, which always exists, so that comments stay next to the following field.
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

/** Returns the start of a node, the end of its value, and the end including trailing comments. */
function rangeOf(node: unknown): NonNullable<Node["range"]> | undefined {
  return (node as Node | null | undefined)?.range ?? undefined;
}

/** Returns whether the field has the desired value after the edit. */
function isEditAsWanted(changed: string, { document, path, key, value }: YamlEdit): boolean {
  const after = documentsOf(changed).find((each) => each.getIn(["metadata", "name"]) === document);
  if (after === undefined || after.errors.length > 0) return false;
  const found = after.getIn([...path, key], true);
  const plain = isScalar(found) ? found.value : isNode(found) ? found.toJS(after) : found;
  return JSON.stringify(plain) === JSON.stringify(value);
}

function isNode(node: unknown): node is Node {
  return typeof node === "object" && node !== null && "toJS" in node;
}

/** An entry to add to the document with `metadata.name` equal to `document`. */
interface YamlEntry {
  readonly document: string;
  /** The mapping of `spec` that contains the entry. Created if it does not exist. */
  readonly section: string;
  readonly name: string;
  readonly value: { readonly [field: string]: unknown };
}

/**
 * Adds an entry to the text of a YAML file, preserving everything else, including comments, quotes, and empty lines.
 *
 * Returns undefined if the entry cannot be added in place, because the mapping is an alias or has an unusual form.
 */
export function addYamlEntry(text: string, entry: YamlEntry): string | undefined {
  const document = findDocument(text, entry.document);
  const spec = document?.get("spec", true);
  if (!isMap(spec)) return undefined;
  const section = spec.items.find((pair) => keyTextOf(pair) === entry.section);
  const style = { newline: text.includes("\r\n") ? "\r\n" : "\n", isBlock: false };
  const changed =
    section === undefined
      ? addToMap(text, spec, { key: entry.section, value: { [entry.name]: entry.value }, ...style, isBlock: true })
      : addToSection(text, section, { key: entry.name, value: entry.value, ...style });
  return changed !== undefined && isEntryAsWanted(text, changed, entry) ? changed : undefined;
}

function addToSection(text: string, section: Pair, field: Field): string | undefined {
  const { value: node } = section;
  if (isMap(node) && node.items.length > 0) {
    const last = node.items.at(-1)?.value;
    const isBlock = isMap(last) && last.flow !== true;
    return addToMap(text, node, { ...field, isBlock });
  }
  // `dependents:` and `dependents: {}`
  const start = rangeOf(section.key)?.[0];
  const end = rangeOf(section.key)?.[1];
  const isEmpty = node === null || isMap(node) || (isScalar(node) && node.value === null);
  if (start === undefined || end === undefined || !isEmpty) return undefined;
  const indent = indentAt(text, start);
  if (indent === undefined) return undefined;
  const colon = text.indexOf(":", end) + 1;
  const braces = isMap(node) ? (rangeOf(node)?.[1] ?? colon) : colon;
  const lines = linesOf(field, `${indent}  `);
  const rest = text.slice(braces);
  const lineEnd = /\r?\n/.exec(rest)?.index ?? rest.length;
  return `${text.slice(0, colon)}${rest.slice(0, lineEnd)}${field.newline}${lines.join(field.newline)}${rest.slice(lineEnd)}`;
}

/** A field to add to a mapping. */
interface Field {
  readonly key: string;
  readonly value: { readonly [field: string]: unknown };
  readonly newline: string;
  /** True to print each field of the value on its own line. */
  readonly isBlock: boolean;
}

/** Adds a field after the last one, and after the comments that are indented more deeply than the mapping. Other comments stay in place. */
function addToMap(text: string, map: YAMLMap, field: Field): string | undefined {
  const last = map.items.at(-1);
  const start = rangeOf(map.items[0]?.key)?.[0];
  const end = endOf(last);
  if (start === undefined || end === undefined) return undefined;
  if (map.flow === true) return `${text.slice(0, end)}, ${field.key}: ${writeInline(field.value)}${text.slice(end)}`;
  const indent = indentAt(text, start);
  if (indent === undefined) return undefined;
  const trimmed = text.slice(0, end).trimEnd().length;
  // The rest of the last field's line, such as a comment, belongs to that field.
  const lineEnd = /\r?\n/.exec(text.slice(trimmed))?.index;
  let at = lineEnd === undefined ? text.length : trimmed + lineEnd;
  for (const [line, inner = ""] of text.slice(at).matchAll(/\r?\n([ ]*)#.*/gy)) {
    if (inner.length <= indent.length) break;
    at += line.length;
  }
  return `${text.slice(0, at)}${field.newline}${linesOf(field, indent).join(field.newline)}${text.slice(at)}`;
}

/** Returns the end of the last value in a pair, without trailing comments. */
function endOf(pair: Pair | undefined): number | undefined {
  const value = pair?.value;
  if (isMap(value) && value.flow !== true && value.items.length > 0) return endOf(value.items.at(-1));
  return rangeOf(value)?.[1] ?? rangeOf(pair?.key)?.[1];
}

function linesOf({ key, value, isBlock }: Field, indent: string): string[] {
  if (!isBlock) return [`${indent}${writeInline(key)}: ${writeInline(value)}`];
  const fields = Object.entries(value).map(([name, each]) => `${indent}  ${writeInline(name)}: ${writeInline(each)}`);
  return [`${indent}${writeInline(key)}:`, ...fields];
}

function indentAt(text: string, start: number): string | undefined {
  const indent = text.slice(text.lastIndexOf("\n", start - 1) + 1, start);
  return indent.trim() === "" ? indent : undefined;
}

function findDocument(text: string, name: string): Document | undefined {
  return documentsOf(text).find((each) => each.getIn(["metadata", "name"]) === name);
}

/** Returns whether the entry was added and nothing else has changed. */
function isEntryAsWanted(
  before: string,
  after: string,
  { document: wanted, section, name, value }: YamlEntry,
): boolean {
  const [old, changed] = [documentsOf(before), documentsOf(after)];
  if (changed.some(({ errors }) => errors.length > 0)) return false;
  const expected = old.map((document) => {
    const plain = document.toJS() as { spec: { [section: string]: object | null } };
    if (document.getIn(["metadata", "name"]) !== wanted) return plain;
    return { ...plain, spec: { ...plain.spec, [section]: { ...plain.spec[section], [name]: value } } };
  });
  return isDeepStrictEqual(
    changed.map((document) => document.toJS() as unknown),
    expected,
  );
}
