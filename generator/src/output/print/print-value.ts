import { WIDTH } from "./layout.js";

const CONSTANT = Symbol("constant");

/** The name of a constant in the place of its value. */
interface ConstantName {
  readonly [CONSTANT]: string;
}

/** Returns what is printed as the name of a constant, without quotes. */
export function constantName(name: string): ConstantName {
  return { [CONSTANT]: name };
}

/**
 * Prints JSON, and names of constants, as a TypeScript literal, laid out as prettier would lay it out.
 *
 * Schemas are too large for prettier, which takes seconds for the largest.
 */
export function printValue(value: unknown, indent = 0, before = 0): string {
  return printWithin(value, { indent, before, lines: new Lines(WIDTH) });
}

/** Where a value is printed. */
interface Margins {
  readonly indent: number;
  readonly before: number;
  readonly lines: Lines;
}

function printWithin(value: unknown, { indent, before, lines }: Margins): string {
  if (typeof value !== "object" || value === null || CONSTANT in value) return printScalar(value);
  // One column for the comma or semicolon that follows.
  const line = lines.of(value);
  if (line !== undefined && line.length <= WIDTH - before - 1) return line;
  const pad = " ".repeat(indent + 2);
  const end = " ".repeat(indent);
  if (Array.isArray(value)) {
    const items = value.map(
      (item) => `${pad}${printWithin(item, { indent: indent + 2, before: indent + 2, lines })},\n`,
    );
    return `[\n${items.join("")}${end}]`;
  }
  const fields = Object.entries(value).map(([name, child]) => {
    if (isShorthand(name, child)) return `${pad}${name},\n`;
    const start = `${pad}${keyOf(name)}: `;
    const text = printWithin(child, { indent: indent + 2, before: start.length, lines }) + assertionOf(name, child);
    // Long text starts on a line of its own, unless the name is so short that little would be gained.
    const isLong = typeof child === "string" && start.length + text.length + 1 > WIDTH && keyOf(name).length > 4;
    return isLong ? `${pad}${keyOf(name)}:\n${pad}  ${text},\n` : `${start}${text},\n`;
  });
  return `{\n${fields.join("")}${end}}`;
}

/** Prints JSON as a TypeScript literal on one line. */
export function printLine(value: unknown): string {
  return new Lines(Infinity).of(value) ?? "";
}

/** The values that fit on a line. Whoever prints a schema asks this at every level of it, so each answer is kept. */
class Lines {
  readonly #width: number;
  readonly #known = new Map<object, string | undefined>();

  constructor(width: number) {
    this.#width = width;
  }

  /** Returns a value on one line; undefined if that is too long. */
  of(value: unknown): string | undefined {
    if (typeof value !== "object" || value === null || CONSTANT in value) return this.#unlessLong(printScalar(value));
    if (!this.#known.has(value)) this.#known.set(value, this.#unlessLong(this.#join(value)));
    return this.#known.get(value);
  }

  #unlessLong(line: string | undefined): string | undefined {
    return line === undefined || line.length > this.#width ? undefined : line;
  }

  // Gives up as soon as it is too long.
  #join(value: object): string | undefined {
    const isList = Array.isArray(value);
    let line = isList ? "[" : "{";
    for (const [name, child] of Object.entries(value)) {
      const text = this.of(child);
      if (text === undefined || line.length > this.#width) return undefined;
      line += line.length > 1 ? ", " : isList ? "" : " ";
      line += isList || isShorthand(name, child) ? text : `${keyOf(name)}: ${text}${assertionOf(name, child)}`;
    }
    return line + (isList ? "]" : line.length > 1 ? " }" : "}");
  }
}

// TypeScript expects under a name that every object has, such as "constructor", what objects have there, whatever the type of the
// other fields is; so it would take the texts below it for any text.
function assertionOf(name: string, child: unknown): string {
  return name !== "__proto__" && Object.hasOwn(Object.prototype, name) && typeof child === "object" && child !== null
    ? " as never"
    : "";
}

function isShorthand(name: string, child: unknown): boolean {
  return typeof child === "object" && child !== null && CONSTANT in child && child[CONSTANT] === name;
}

function printScalar(value: unknown): string {
  if (typeof value === "object" && value !== null && CONSTANT in value) return String(value[CONSTANT]);
  return typeof value === "string" ? printText(value) : JSON.stringify(value);
}

/** Prints a text as a literal. Fewer escapes win, double quotes on a tie, as in prettier. */
export function printText(text: string): string {
  if (PLAIN.test(text)) return `"${text}"`;
  const json = escapeDirections(JSON.stringify(text).replace(/[\u007f-\u009f\u2028\u2029]/g, escapeOf));
  const doubles = text.split('"').length;
  if (doubles <= text.split("'").length) return json;
  return `'${json.slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`;
}

// Printable ASCII but for quotes and backslashes.
const PLAIN = /^[ !#-&(-[\]-~]*$/;

/** Escapes the invisible marks that change the direction of text: with them, code reads otherwise than it runs. */
export function escapeDirections(text: string): string {
  return text.replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, escapeOf);
}

function escapeOf(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

/** Prints the name of a field in an object. One called __proto__ has to be computed: otherwise it sets the prototype. */
export function keyOf(name: string): string {
  return name === "__proto__" ? '["__proto__"]' : propertyNameOf(name);
}

/** Prints the name of a field in a type: quoted where it has to be. */
export function propertyNameOf(name: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(name) ? name : printText(name);
}
