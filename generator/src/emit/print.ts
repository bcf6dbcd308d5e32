// Lays out code with the algorithm of prettier, so that formatting the printed code with prettier does not change it.
import { builders, printer } from "prettier/doc";

/** A document of prettier: text with possible line breaks. */
export type Doc = builders.Doc;

/** Document builders of prettier. */
export const { align, group, conditionalGroup, hardline, ifBreak, indent, indentIfBreak, join, line, softline } =
  builders;

/** A name exported by a module. A file that prints the symbol imports it. */
export interface ImportSymbol {
  readonly kind: "symbol";
  /** Exported name; `*` for the whole module. */
  readonly name: string;
  readonly from: string;
  /** Local name, which is printed. */
  readonly alias: string;
  readonly isType: boolean;
  /** True for a separate import statement, as for a whole module. Default: symbols of a module share one */
  readonly isApart?: boolean;
  /** Order of the import in the file. Imports with the same order are in order of first use. Default: 0 */
  readonly place?: number;
}

/** Returns the import of a value. */
export function valueFrom(from: string, name: string, alias = name, place = 0): ImportSymbol {
  return { kind: "symbol", name, from, alias, isType: false, place };
}

/** Returns the import of a type. */
export function typeFrom(from: string, name: string, alias = name, place = 0): ImportSymbol {
  return { kind: "symbol", name, from, alias, isType: true, place };
}

/** Prints the local name of a symbol. */
export function symbolDoc(symbol: ImportSymbol): Doc {
  return builders.label(symbol, symbol.alias);
}

/** Printed text, with the symbols that it uses. */
export type Printed =
  string | readonly Printed[] | { readonly text: string; readonly symbols: readonly ImportSymbol[] };

/** Joins printed parts with line feeds. */
export function joinLines(parts: readonly Printed[]): Printed {
  return parts.flatMap((part, index) => (index === 0 ? [part] : ["\n", part]));
}

/** Returns the printed text, and calls `onSymbol` with each symbol in it in order. */
export function textOf(printed: Printed, onSymbol: (symbol: ImportSymbol) => void = () => {}): string {
  if (typeof printed === "string") return printed;
  if ("text" in printed) {
    printed.symbols.forEach(onSymbol);
    return printed.text;
  }
  return printed.map((part) => textOf(part, onSymbol)).join("");
}

/** Lays out a document, preserving its symbols. */
export function print(doc: Doc, depth = 0): Printed {
  const symbols = symbolsIn(doc);
  const text = layOut(doc, depth);
  return symbols.length === 0 ? text : { text, symbols };
}

/** Lays out a document independently of the text before it. */
export function fixedDoc(doc: Doc): Doc {
  return symbolsIn(doc).reduce<Doc>((contents, symbol) => builders.label(symbol, contents), layOut(doc));
}

function symbolsIn(doc: Doc): ImportSymbol[] {
  if (typeof doc === "string") return [];
  if (Array.isArray(doc)) return doc.flatMap(symbolsIn);
  switch (doc.type) {
    case "label":
      return [doc.label as ImportSymbol, ...symbolsIn(doc.contents)];
    case "if-break":
      return symbolsIn(doc.breakContents ?? "");
    default:
      return "contents" in doc ? symbolsIn(doc.contents) : [];
  }
}

/** Maximum line width. */
export const WIDTH = 120;

/** Lays out a document. `depth` is the indentation of all lines; the caller prints that of the first line. */
export function layOut(doc: Doc, depth = 0): string {
  // Fast path: most documents fit on one line.
  const text = flatText(doc, false);
  if (text !== undefined && text.length <= WIDTH - depth) return text;
  const { formatted } = printer.printDocToString(doc, { printWidth: WIDTH - depth, tabWidth: 2, useTabs: false });
  return depth === 0 ? formatted : formatted.replaceAll("\n", `\n${" ".repeat(depth)}`).replaceAll(/\n +(?=\n)/g, "\n");
}

/** Returns a document on one line; undefined if it must break, or contains parts that only the printer can lay out. */
function flatText(doc: Doc, isInGroup: boolean): string | undefined {
  // Other characters may be wider than one column.
  if (typeof doc === "string") return /^[ -~]*$/.test(doc) ? doc : undefined;
  if (Array.isArray(doc)) {
    let text = "";
    for (const part of doc) {
      const flat = flatText(part, isInGroup);
      if (flat === undefined) return undefined;
      text += flat;
    }
    return text;
  }
  switch (doc.type) {
    case "group":
      return doc.break ? undefined : flatText(doc.contents, true);
    case "indent":
    case "align":
    case "label":
      return flatText(doc.contents, isInGroup);
    case "if-break":
      // The layout may depend on another group.
      return isInGroup && !("groupId" in doc && doc.groupId !== undefined)
        ? flatText(doc.flatContents, true)
        : undefined;
    case "line":
      // Outside of a group, a line always breaks.
      return doc.hard || !isInGroup ? undefined : doc.soft ? "" : " ";
    default:
      return undefined;
  }
}

/** Layout of a bracketed list. */
interface ListStyle {
  /** Separator between the brackets and the items on one line. */
  readonly space: Doc;
  /** Separator after the last item if each item is on its own line. */
  readonly end: "" | "," | ";";
  /** True to always print each item on its own line. */
  readonly shouldBreak?: boolean;
}

/** Prints a bracketed list: on one line if it fits, or else with one item per line. */
function listOf([open, close]: readonly [string, string], items: readonly Doc[], style: ListStyle): Doc {
  if (items.length === 0) return `${open}${close}`;
  const { space, end, shouldBreak = false } = style;
  const separator = end === ";" ? ";" : ",";
  return group([open, indent([space, join([separator, line], [...items])]), ifBreak(end), space, close], {
    shouldBreak,
  });
}

const CONSTANT = Symbol("constant");

/** The name of a constant, in place of a value. */
interface ConstantName {
  readonly [CONSTANT]: string;
}

/** Returns a value that is printed as the name of a constant, without quotes. */
export function constantName(name: string): ConstantName {
  return { [CONSTANT]: name };
}

/**
 * Prints JSON, and names of constants, as a TypeScript literal in the layout of prettier.
 *
 * Prettier itself takes seconds for the largest schemas.
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
  // Reserve a column for the comma or semicolon that follows.
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
    // Like prettier, move a long string to the next line, unless the name is so short that this gains little.
    const isLong = typeof child === "string" && start.length + text.length + 1 > WIDTH && keyOf(name).length > 4;
    return isLong ? `${pad}${keyOf(name)}:\n${pad}  ${text},\n` : `${start}${text},\n`;
  });
  return `{\n${fields.join("")}${end}}`;
}

/** Prints JSON as a TypeScript literal on one line. */
export function printLine(value: unknown): string {
  return new Lines(Infinity).of(value) ?? "";
}

/** Cache of the values that fit on one line. Printing a schema queries it at every level. */
class Lines {
  readonly #width: number;
  readonly #known = new Map<object, string | undefined>();

  constructor(width: number) {
    this.#width = width;
  }

  /** Returns a value on one line; undefined if it is too long. */
  of(value: unknown): string | undefined {
    if (typeof value !== "object" || value === null || CONSTANT in value) return this.#unlessLong(printScalar(value));
    if (!this.#known.has(value)) this.#known.set(value, this.#unlessLong(this.#join(value)));
    return this.#known.get(value);
  }

  #unlessLong(line: string | undefined): string | undefined {
    return line === undefined || line.length > this.#width ? undefined : line;
  }

  // Stops as soon as the line is too long.
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

// For a property named like a member of Object.prototype, such as "constructor", TypeScript uses the type of that member as contextual type, and
// infers string instead of literal types below it.
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

/** Prints a string literal. Uses the quotes that need fewer escapes, and double quotes on a tie, like prettier. */
export function printText(text: string): string {
  if (PLAIN.test(text)) return `"${text}"`;
  const json = escapeDirections(JSON.stringify(text).replace(/[\u007f-\u009f\u2028\u2029]/g, escapeOf));
  const doubles = text.split('"').length;
  if (doubles <= text.split("'").length) return json;
  return `'${json.slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`;
}

// Printable ASCII except quotes and backslashes.
const PLAIN = /^[ !#-&(-[\]-~]*$/;

/** Escapes invisible bidirectional formatting characters, which can make code read differently from how it executes. */
export function escapeDirections(text: string): string {
  return text.replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, escapeOf);
}

function escapeOf(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

/** Prints the name of a property in an object literal. `__proto__` must be computed, or it would set the prototype. */
function keyOf(name: string): string {
  return name === "__proto__" ? '["__proto__"]' : propertyNameOf(name);
}

/** Prints the name of a property in a type, quoted if necessary. */
export function propertyNameOf(name: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(name) ? name : printText(name);
}

/** Prints an object: on one line if it fits, unless `shouldBreak` is set. */
export function objectDoc(fields: readonly Doc[], shouldBreak = false): Doc {
  return listOf(["{", "}"], fields, { space: line, end: ",", shouldBreak });
}

/** Prints an array. */
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

/** Prints the fields of an object that are not undefined. */
export function fieldsOf(value: { readonly [name: string]: unknown }): Doc[] {
  return Object.entries(value).flatMap(([name, child]) => (child === undefined ? [] : [fieldDoc(name, child)]));
}

function fieldDoc(name: string, value: unknown): Doc {
  return typeof value === "string" ? textField(name, printText(value)) : [keyOf(name), ": ", valueDoc(value)];
}

/** Prints a field whose value is a string or a name. A line that is too long breaks after the colon, unless the name of the field is short. */
export function textField(name: string, value: Doc): Doc {
  const key = keyOf(name);
  return key.length <= 4 ? [`${key}: `, value] : group([`${key}:`, indent([line, value])]);
}

/** Prints a field whose value is a document. */
export function field(name: string, value: Doc): Doc {
  return [keyOf(name), ": ", value];
}

/** Prints a field whose value is a function with a user expression. The expression is printed unchanged. */
export function expressionField(name: string, parameters: Doc, expression: string): Doc {
  const text = expression.trim();
  // A brace would start a block, and a comment would comment out the rest of the line.
  const isPlain = !/^\{|\n|\/\//.test(text);
  const value = isPlain ? text : `(\n${text}\n)`;
  return ["// prettier-ignore", hardline, `${keyOf(name)}: `, parameters, ` => ${value}`];
}

/** Prints a call. `last` are the fields of an object as the last argument, which is hugged by the parentheses. */
export function callDoc(callee: Doc, texts: readonly Doc[], last?: readonly Doc[]): Doc {
  const apart = (args: readonly Doc[]) =>
    group([callee, "(", indent([softline, join([",", line], [...args])]), ifBreak(","), softline, ")"]);
  if (last === undefined) return texts.length === 0 ? [callee, "()"] : apart(texts);
  const before = texts.map((text) => [text, ", "]);
  if (texts.length === 0) return [callee, "(", objectDoc(last), ")"];
  return conditionalGroup([
    [callee, "(", ...before, objectDoc(last), ")"],
    [callee, "(", ...before, objectDoc(last, true), ")"],
    apart([...texts, objectDoc(last)]),
  ]);
}

/** A type in generated code. A string is a name or a literal, which is never broken. */
export type TypeNode =
  | string
  | ImportSymbol
  | { readonly kind: "reference"; readonly name: string | ImportSymbol; readonly arguments: readonly TypeNode[] }
  /** The type of a member of a module. */
  | { readonly kind: "typeof"; readonly module: ImportSymbol; readonly member: string }
  | { readonly kind: "union"; readonly members: readonly TypeNode[] }
  | { readonly kind: "intersection"; readonly members: readonly TypeNode[] }
  /** A readonly array. */
  | { readonly kind: "array"; readonly items: TypeNode }
  | { readonly kind: "object"; readonly members: readonly MemberNode[] }
  | FunctionNode;

interface FunctionNode {
  readonly kind: "function";
  readonly parameters: readonly MemberNode[];
  readonly returns: TypeNode;
}

/** A member of a type: a property, an index signature, or a parameter. */
export interface MemberNode {
  /** The text before the colon, quoted if necessary, including `readonly` and a question mark. */
  readonly head: string;
  readonly type: TypeNode;
}

/** Returns a type with type arguments; the name alone if there are none. */
export function reference(name: string | ImportSymbol, ...args: readonly TypeNode[]): TypeNode {
  return args.length === 0 ? name : { kind: "reference", name, arguments: args };
}

/** Returns a union. A union of one member is the member. */
export function union(...members: readonly TypeNode[]): TypeNode {
  const flat = members.flatMap((each) => (typeof each !== "string" && each.kind === "union" ? each.members : [each]));
  const [only] = flat;
  return flat.length === 1 && only !== undefined ? only : { kind: "union", members: flat };
}

/** Returns an intersection. An intersection of one member is the member. */
export function intersection(...members: readonly TypeNode[]): TypeNode {
  const [only] = members;
  return members.length === 1 && only !== undefined ? only : { kind: "intersection", members };
}

/** Returns a readonly array type. */
export function readonlyArrayOf(items: TypeNode): TypeNode {
  return { kind: "array", items };
}

/** Returns an object type. The keys are the heads of its members. */
export function objectOf(members: { readonly [head: string]: TypeNode }): TypeNode {
  return { kind: "object", members: Object.entries(members).map(([head, type]) => ({ head, type })) };
}

/** Returns a function type. The keys are the heads of its parameters. */
export function functionOf(parameters: { readonly [head: string]: TypeNode }, returns: TypeNode): FunctionNode {
  return { kind: "function", parameters: Object.entries(parameters).map(([head, type]) => ({ head, type })), returns };
}

/** Returns the union of a type and a promise of it. */
export function maybePromise(type: TypeNode): TypeNode {
  return union(type, reference("Promise", type));
}

/** Prints a type on one line. */
export function typeText(type: TypeNode): string {
  if (typeof type === "string") return type;
  switch (type.kind) {
    case "symbol":
      return type.alias;
    case "typeof":
      return `typeof ${type.module.alias}.${type.member}`;
    case "reference":
      return `${typeText(type.name)}<${type.arguments.map(typeText).join(", ")}>`;
    case "union":
      return type.members.map(typeText).join(" | ");
    case "intersection":
      return type.members.map(typeText).join(" & ");
    case "array":
      return `readonly ${itemsText(type.items)}[]`;
    case "object":
      return type.members.length === 0 ? "{}" : `{ ${membersText(type.members, "; ")} }`;
    case "function":
      return `(${membersText(type.parameters, ", ")}) => ${typeText(type.returns)}`;
  }
}

function membersText(members: readonly MemberNode[], separator: string): string {
  return members.map(({ head, type }) => `${head}: ${typeText(type)}`).join(separator);
}

function itemsText(items: TypeNode): string {
  return needsBrackets(items) ? `(${typeText(items)})` : typeText(items);
}

/** Returns whether the item type of an array must be parenthesized. */
function needsBrackets(items: TypeNode): boolean {
  return typeof items !== "string" && ["array", "union", "intersection", "function"].includes(items.kind);
}

/** Returns the symbols in a type. */
export function symbolsOf(type: TypeNode): ImportSymbol[] {
  if (typeof type === "string") return [];
  switch (type.kind) {
    case "symbol":
      return [type];
    case "typeof":
      return [type.module];
    case "reference":
      return [type.name, ...type.arguments].flatMap(symbolsOf);
    case "array":
      return symbolsOf(type.items);
    case "function":
      return [...type.parameters.map((each) => each.type), type.returns].flatMap(symbolsOf);
    case "object":
      return type.members.flatMap((each) => symbolsOf(each.type));
    default:
      return type.members.flatMap(symbolsOf);
  }
}

/** Prints a type after a colon, an arrow, or an equals sign, where a union may start on a new line. */
export function typeDoc(type: TypeNode): Doc {
  if (typeof type === "string") return type;
  switch (type.kind) {
    case "symbol":
      return symbolDoc(type);
    case "typeof":
      return ["typeof ", symbolDoc(type.module), `.${type.member}`];
    case "reference":
      return [typeDoc(type.name), argumentsDoc(type.arguments)];
    case "union":
      // Try to move the whole union to the next line first.
      return group(indent([softline, group(unionDoc(type.members))]));
    case "intersection":
      return join(" & ", type.members.map(typeDoc));
    case "array":
      return ["readonly ", itemsDoc(type.items), "[]"];
    case "object":
      return listOf(["{", "}"], type.members.map(memberDoc), { space: line, end: ";" });
    case "function":
      return group([parametersDoc(type), " => ", typeDoc(type.returns)]);
  }
}

/** Prints a member of a type, without the separator. */
export function memberDoc({ head, type }: MemberNode): Doc {
  return [head, ": ", typeDoc(type)];
}

function unionDoc(members: readonly TypeNode[]): Doc {
  return [
    ifBreak("| "),
    join(
      [line, "| "],
      members.map((member) => align(2, typeDoc(member))),
    ),
  ];
}

function argumentsDoc(types: readonly TypeNode[]): Doc {
  const [only] = types;
  // Prettier does not break before a single name.
  if (types.length === 1 && only !== undefined && isName(only)) return ["<", typeDoc(only), ">"];
  const printed = types.map((type) =>
    typeof type !== "string" && type.kind === "union" ? group(unionDoc(type.members)) : typeDoc(type),
  );
  return group(["<", indent([softline, join([",", line], printed)]), softline, ">"]);
}

// Simple types in the sense of prettier: `X` is one, `X["spec"]` and `typeof X` are not.
function isName(type: TypeNode): boolean {
  return typeof type === "string" ? /^[\w$.]+$/.test(type) : type.kind === "object" || type.kind === "symbol";
}

function itemsDoc(items: TypeNode): Doc {
  if (typeof items !== "string" && items.kind === "union")
    return ["(", group([indent([softline, unionDoc(items.members)]), softline]), ")"];
  return needsBrackets(items) ? ["(", typeDoc(items), ")"] : typeDoc(items);
}

/** Prints the parameters of a function, with parentheses. */
function parametersDoc({ parameters }: Pick<FunctionNode, "parameters">): Doc {
  const [only] = parameters;
  if (only === undefined) return "()";
  // An object type of a single parameter is hugged by the parentheses.
  if (parameters.length === 1 && typeof only.type !== "string" && only.type.kind === "object") {
    const members = only.type.members.map(memberDoc);
    return ["(", only.head, ": {", indent([line, join([";", line], members)]), ifBreak(";"), line, "})"];
  }
  return ["(", indent([softline, join([",", line], parameters.map(memberDoc))]), ifBreak(","), softline, ")"];
}

/** An exported name, with its local name. */
interface ImportedName {
  readonly name: string;
  readonly alias: string;
}

/** Prints `import { a } from "module";`, or `import type`. */
export function printImport(names: readonly ImportedName[], module: string, isTypeOnly = false): string {
  const word = isTypeOnly ? "import type " : "import ";
  return layOut([word, namesDoc(names.map(renamed)), ` from ${JSON.stringify(module)};`]);
}

/** Prints `import * as name from "module";`, or `import type`. */
export function printNamespaceImport(name: string, module: string, isTypeOnly = false): string {
  return `import ${isTypeOnly ? "type " : ""}* as ${name} from ${JSON.stringify(module)};`;
}

/** Prints `export { a };` or `export type { a };`, sorted by name. */
export function printExport(symbols: readonly ImportSymbol[], isTypeOnly = false): Printed {
  const names = symbols.map(({ alias }) => alias).sort();
  return { text: layOut([isTypeOnly ? "export type " : "export ", namesDoc(names), ";"]), symbols };
}

/** Prints `export { a } from "module";`, or `export type`. */
export function printExportFrom(names: readonly ImportedName[], module: string, isTypeOnly = false): string {
  const word = isTypeOnly ? "export type " : "export ";
  return layOut([word, namesDoc(names.map(renamed)), ` from ${JSON.stringify(module)};`]);
}

// Prettier never breaks a single name.
function namesDoc(names: readonly string[]): Doc {
  return names.length === 1 ? `{ ${names[0]} }` : listOf(["{", "}"], names, { space: line, end: "," });
}

function renamed({ name, alias }: ImportedName): string {
  return name === alias ? name : `${name} as ${alias}`;
}

interface InterfaceNode {
  readonly name: string;
  /** Doc comment, with its delimiters. */
  readonly doc: string;
  readonly extends: readonly TypeNode[];
  readonly members: readonly (DocumentedMember | MethodNode)[];
}

export interface DocumentedMember extends MemberNode {
  /** Doc comment, with its delimiters. */
  readonly doc?: string;
}

interface MethodNode extends FunctionNode {
  readonly head: string;
}

export function printInterface({ name, doc, extends: types, members }: InterfaceNode): Printed {
  const parents = types.map(typeDoc);
  const [first] = parents;
  const clause =
    first === undefined
      ? []
      : [line, "extends ", parents.length === 1 ? first : indent(join([",", line], [...parents]))];
  const head = group(indent([`export interface ${name}`, ...clause]));
  const body = members.map((member) => [hardline, "kind" in member ? methodDoc(member) : documented(member), ";"]);
  const block = members.length === 0 ? "{}" : ["{", indent(body), hardline, "}"];
  return print([doc === "" ? "" : [doc, hardline], group([head, " ", block])]);
}

function documented({ doc, ...member }: DocumentedMember): Doc {
  return doc === undefined ? memberDoc(member) : [doc, hardline, memberDoc(member)];
}

function methodDoc({ head, returns, ...node }: MethodNode): Doc {
  return group([head, parametersDoc(node), ": ", typeDoc(returns)]);
}

/** Prints an exported type alias. `parameters` are the type parameters, with angle brackets. */
export function printAlias(name: string, type: TypeNode, parameters = ""): Printed {
  const start = `export type ${name}${parameters} =`;
  // A name cannot break internally, so it moves to the next line as a whole.
  if (typeof type !== "string") return print(group([start, " ", typeDoc(type), ";"]));
  return start.length + type.length + 2 <= WIDTH ? `${start} ${type};` : `${start}\n  ${type};`;
}

export function printConstant(name: string, value: Doc, type?: TypeNode): Printed {
  const declared = type === undefined ? name : [`${name}: `, typeDoc(type)];
  return print(group(["export const ", declared, " = ", value, ";"]));
}
