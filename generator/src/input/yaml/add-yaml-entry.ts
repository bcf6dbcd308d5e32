import { isDeepStrictEqual } from "node:util";
import { isMap, isScalar, type Document, type Pair, type YAMLMap } from "yaml";
import { documentsOf, rangeOf, writeInline } from "./edit-yaml.js";
import { keyTextOf } from "./yaml-document.js";

/** An entry to add, in the document of a file whose `metadata.name` is `document`. */
export interface YamlEntry {
  readonly document: string;
  /** The mapping of `spec` that gets the entry; it is added if it is missing. */
  readonly section: string;
  readonly name: string;
  readonly value: { readonly [field: string]: unknown };
}

/**
 * Returns the text of a YAML file with an entry more, and everything else as it is written: comments, quotes and empty lines.
 *
 * `undefined` if the entry cannot be added in place: the mapping is an alias, or its form is unusual.
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
  return changed !== undefined && isAsWanted(text, changed, entry) ? changed : undefined;
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
  /** Whether each field of the value gets a line. */
  readonly isBlock: boolean;
}

/** Adds a field after the last one; comments after it stay where they are. */
function addToMap(text: string, map: YAMLMap, field: Field): string | undefined {
  const last = map.items.at(-1);
  const start = rangeOf(map.items[0]?.key)?.[0];
  const end = endOf(last);
  if (start === undefined || end === undefined) return undefined;
  if (map.flow === true) return `${text.slice(0, end)}, ${field.key}: ${writeInline(field.value)}${text.slice(end)}`;
  const indent = indentAt(text, start);
  if (indent === undefined) return undefined;
  const trimmed = text.slice(0, end).trimEnd().length;
  // What is on the line of the last field, such as a comment, belongs to it.
  const lineEnd = /\r?\n/.exec(text.slice(trimmed))?.index;
  const at = lineEnd === undefined ? text.length : trimmed + lineEnd;
  return `${text.slice(0, at)}${field.newline}${linesOf(field, indent).join(field.newline)}${text.slice(at)}`;
}

/** The end of the last value in a pair, without the comments after it. */
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

/** Tells whether the entry is there, and nothing else is different. */
function isAsWanted(before: string, after: string, { document: wanted, section, name, value }: YamlEntry): boolean {
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
