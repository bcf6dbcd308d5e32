import {
  conditionalGroup,
  group,
  hardline,
  ifBreak,
  indent,
  join,
  line,
  listOf,
  softline,
  type Doc,
} from "./layout.js";
import { keyOf, printText } from "./print-value.js";

/** Prints an object: on one line if it fits and nothing says otherwise. */
export function objectDoc(fields: readonly Doc[], shouldBreak = false): Doc {
  return listOf(["{", "}"], fields, { space: line, end: ",", shouldBreak });
}

/** Prints a list. */
export function arrayDoc(items: readonly Doc[], shouldBreak = false): Doc {
  return listOf(["[", "]"], items, { space: softline, end: ",", shouldBreak });
}

/** Prints JSON as a literal. */
export function valueDoc(value: unknown): Doc {
  if (typeof value === "string") return printText(value);
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  if (!Array.isArray(value)) return objectDoc(fieldsOf(value as { readonly [name: string]: unknown }));
  const areAllLarge = value.length > 1 && value.every(hasSeveralParts);
  return arrayDoc(value.map(valueDoc), areAllLarge);
}

function hasSeveralParts(value: unknown): boolean {
  return typeof value === "object" && value !== null && Object.keys(value).length > 1;
}

/** Prints the fields of an object that are there. */
export function fieldsOf(value: { readonly [name: string]: unknown }): Doc[] {
  return Object.entries(value).flatMap(([name, child]) => (child === undefined ? [] : [fieldDoc(name, child)]));
}

function fieldDoc(name: string, value: unknown): Doc {
  return typeof value === "string" ? textField(name, printText(value)) : [keyOf(name), ": ", valueDoc(value)];
}

/** Prints a field whose value is a text or a name: too long a line ends behind the colon, unless the name of the field is short. */
export function textField(name: string, value: string): Doc {
  const key = keyOf(name);
  return key.length <= 4 ? `${key}: ${value}` : group([`${key}:`, indent([line, value])]);
}

/** Prints a field with a value that knows how to break. */
export function field(name: string, value: Doc): Doc {
  return [keyOf(name), ": ", value];
}

/** Prints a field whose value is a function with the user's expression, which stays as it was written. */
export function expressionField(name: string, parameters: string, expression: string): Doc {
  const text = expression.trim();
  // A brace would begin a block, and a comment would hide what follows.
  const isPlain = !/^\{|\n|\/\//.test(text);
  const value = isPlain ? text : `(\n${text}\n)`;
  return ["// prettier-ignore", hardline, `${keyOf(name)}: ${parameters} => ${value}`];
}

/** Prints a call. An object as the last argument shares its lines with the brackets; `last` is that object, if it is one. */
export function callDoc(callee: Doc, texts: readonly string[], last?: readonly Doc[]): Doc {
  const apart = (args: readonly Doc[]) =>
    group([callee, "(", indent([softline, join([",", line], [...args])]), ifBreak(","), softline, ")"]);
  if (last === undefined) return texts.length === 0 ? [callee, "()"] : apart(texts);
  const before = texts.map((text) => `${text}, `);
  if (texts.length === 0) return [callee, "(", objectDoc(last), ")"];
  return conditionalGroup([
    [callee, "(", ...before, objectDoc(last), ")"],
    [callee, "(", ...before, objectDoc(last, true), ")"],
    apart([...texts, objectDoc(last)]),
  ]);
}
