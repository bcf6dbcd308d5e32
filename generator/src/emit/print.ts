// How wide code is laid out, by the algorithm of prettier: what is printed here stays as it is when prettier formats it.
import { builders, printer } from "prettier/doc";

/** A text of which it is known where lines may end. */
export type Doc = builders.Doc;

/** The builders of documents, as prettier describes them. */
export const { align, group, conditionalGroup, hardline, ifBreak, indent, indentIfBreak, join, line, softline } =
  builders;

/** A name that a module exports. A file that prints it imports it. */
export interface ImportSymbol {
  readonly kind: "symbol";
  /** `*` stands for the whole module. */
  readonly name: string;
  readonly from: string;
  /** What it is called where it is printed. */
  readonly alias: string;
  readonly isType: boolean;
  /** Whether it has an import of its own, as a module as a whole has. Default: symbols of a module share one */
  readonly isApart?: boolean;
  /** Where its import stands among those of a file; of equal ones, what is printed first comes first. Default: 0 */
  readonly place?: number;
}

/** Returns a value that a module exports. */
export function valueFrom(from: string, name: string, alias = name, place = 0): ImportSymbol {
  return { kind: "symbol", name, from, alias, isType: false, place };
}

/** Returns a type that a module exports. */
export function typeFrom(from: string, name: string, alias = name, place = 0): ImportSymbol {
  return { kind: "symbol", name, from, alias, isType: true, place };
}

/** Prints a symbol. */
export function symbolDoc(symbol: ImportSymbol): Doc {
  return builders.label(symbol, symbol.alias);
}

/** Printed text: lines, and the symbols in them. */
export type Printed =
  string | readonly Printed[] | { readonly text: string; readonly symbols: readonly ImportSymbol[] };

/** Returns printed parts below each other. */
export function joinLines(parts: readonly Printed[]): Printed {
  return parts.flatMap((part, index) => (index === 0 ? [part] : ["\n", part]));
}

/** Returns the text of what was printed; `onSymbol` is called with each symbol in it, in their order. */
export function textOf(printed: Printed, onSymbol: (symbol: ImportSymbol) => void = () => {}): string {
  if (typeof printed === "string") return printed;
  if ("text" in printed) {
    printed.symbols.forEach(onSymbol);
    return printed.text;
  }
  return printed.map((part) => textOf(part, onSymbol)).join("");
}

/** Lays a document out and keeps the symbols in it. */
export function print(doc: Doc, depth = 0): Printed {
  const symbols = symbolsIn(doc);
  const text = layOut(doc, depth);
  return symbols.length === 0 ? text : { text, symbols };
}

/** Returns a document that is laid out already, whatever stands before it. */
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

/** The columns of a line. */
export const WIDTH = 120;

/** Lays a document out; `depth` columns are in front of all lines but the first, which the caller writes. */
export function layOut(doc: Doc, depth = 0): string {
  // Most of what is printed fits on a line, and needs no algorithm.
  const text = flatText(doc, false);
  if (text !== undefined && text.length <= WIDTH - depth) return text;
  const { formatted } = printer.printDocToString(doc, { printWidth: WIDTH - depth, tabWidth: 2, useTabs: false });
  return depth === 0 ? formatted : formatted.replaceAll("\n", `\n${" ".repeat(depth)}`).replaceAll(/\n +(?=\n)/g, "\n");
}

/** Returns a document on one line; undefined if it has to break, or has parts that are laid out in other ways. */
function flatText(doc: Doc, isInGroup: boolean): string | undefined {
  // Other letters may be wider than one column.
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
      // Another group may decide.
      return isInGroup && !("groupId" in doc && doc.groupId !== undefined)
        ? flatText(doc.flatContents, true)
        : undefined;
    case "line":
      // Outside of a group, lines end here.
      return doc.hard || !isInGroup ? undefined : doc.soft ? "" : " ";
    default:
      return undefined;
  }
}

/** How the items of a list are put between brackets. */
interface ListStyle {
  /** What is between the brackets and the items on one line. */
  readonly space: Doc;
  /** What ends the last item on lines of its own. */
  readonly end: "" | "," | ";";
  /** Whether each item is on a line of its own, however short. */
  readonly shouldBreak?: boolean;
}

/** Puts items between brackets: on one line if they fit, else each on its own. */
function listOf([open, close]: readonly [string, string], items: readonly Doc[], style: ListStyle): Doc {
  if (items.length === 0) return `${open}${close}`;
  const { space, end, shouldBreak = false } = style;
  const separator = end === ";" ? ";" : ",";
  return group([open, indent([space, join([separator, line], [...items])]), ifBreak(end), space, close], {
    shouldBreak,
  });
}

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
function keyOf(name: string): string {
  return name === "__proto__" ? '["__proto__"]' : propertyNameOf(name);
}

/** Prints the name of a field in a type: quoted where it has to be. */
export function propertyNameOf(name: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(name) ? name : printText(name);
}

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
export function textField(name: string, value: Doc): Doc {
  const key = keyOf(name);
  return key.length <= 4 ? [`${key}: `, value] : group([`${key}:`, indent([line, value])]);
}

/** Prints a field with a value that knows how to break. */
export function field(name: string, value: Doc): Doc {
  return [keyOf(name), ": ", value];
}

/** Prints a field whose value is a function with the user's expression, which stays as it was written. */
export function expressionField(name: string, parameters: Doc, expression: string): Doc {
  const text = expression.trim();
  // A brace would begin a block, and a comment would hide what follows.
  const isPlain = !/^\{|\n|\/\//.test(text);
  const value = isPlain ? text : `(\n${text}\n)`;
  return ["// prettier-ignore", hardline, `${keyOf(name)}: `, parameters, ` => ${value}`];
}

/** Prints a call. An object as the last argument shares its lines with the brackets; `last` is that object, if it is one. */
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

/** A type as it stands in generated code. A text is a name or a literal: it stays on one line. */
export type TypeNode =
  | string
  | ImportSymbol
  | { readonly kind: "reference"; readonly name: string | ImportSymbol; readonly arguments: readonly TypeNode[] }
  /** The type of a member of a module. */
  | { readonly kind: "typeof"; readonly module: ImportSymbol; readonly member: string }
  | { readonly kind: "union"; readonly members: readonly TypeNode[] }
  | { readonly kind: "intersection"; readonly members: readonly TypeNode[] }
  /** A list that cannot be changed. */
  | { readonly kind: "array"; readonly items: TypeNode }
  | { readonly kind: "object"; readonly members: readonly MemberNode[] }
  | FunctionNode;

/** The type of a function. */
interface FunctionNode {
  readonly kind: "function";
  readonly parameters: readonly MemberNode[];
  readonly returns: TypeNode;
}

/** A member of a type: a property, an index signature, or a parameter of a function. */
export interface MemberNode {
  /** Ready to print: quoted where it has to be; `readonly` and a question mark belong to it. */
  readonly head: string;
  readonly type: TypeNode;
}

/** Names a type with its arguments; without arguments it is the name alone. */
export function reference(name: string | ImportSymbol, ...args: readonly TypeNode[]): TypeNode {
  return args.length === 0 ? name : { kind: "reference", name, arguments: args };
}

/** Returns a union; that of one member is the member. */
export function union(...members: readonly TypeNode[]): TypeNode {
  const flat = members.flatMap((each) => (typeof each !== "string" && each.kind === "union" ? each.members : [each]));
  const [only] = flat;
  return flat.length === 1 && only !== undefined ? only : { kind: "union", members: flat };
}

/** Returns an intersection; that of one member is the member. */
export function intersection(...members: readonly TypeNode[]): TypeNode {
  const [only] = members;
  return members.length === 1 && only !== undefined ? only : { kind: "intersection", members };
}

/** Returns a list that cannot be changed. */
export function readonlyArrayOf(items: TypeNode): TypeNode {
  return { kind: "array", items };
}

/** Returns the type of an object, by the heads of its members. */
export function objectOf(members: { readonly [head: string]: TypeNode }): TypeNode {
  return { kind: "object", members: Object.entries(members).map(([head, type]) => ({ head, type })) };
}

/** Returns the type of a function, by the heads of its parameters. */
export function functionOf(parameters: { readonly [head: string]: TypeNode }, returns: TypeNode): FunctionNode {
  return { kind: "function", parameters: Object.entries(parameters).map(([head, type]) => ({ head, type })), returns };
}

/** Returns a type or a promise of it. */
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

/** Tells whether the type of the items of a list stands in brackets. */
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

/** Prints a type where a union may start on a line of its own: behind a colon, an arrow or an equals sign. */
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
      // All of it on the next line, if that is enough.
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

/** Prints a member of a type, without what ends it. */
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
  // A single name gains nothing by a line of its own.
  if (types.length === 1 && only !== undefined && isName(only)) return ["<", typeDoc(only), ">"];
  const printed = types.map((type) =>
    typeof type !== "string" && type.kind === "union" ? group(unionDoc(type.members)) : typeDoc(type),
  );
  return group(["<", indent([softline, join([",", line], printed)]), softline, ">"]);
}

// What prettier takes for a simple type: `X` is one, `X["spec"]` and `typeof X` are not.
function isName(type: TypeNode): boolean {
  return typeof type === "string" ? /^[\w$.]+$/.test(type) : type.kind === "object" || type.kind === "symbol";
}

function itemsDoc(items: TypeNode): Doc {
  if (typeof items !== "string" && items.kind === "union")
    return ["(", group([indent([softline, unionDoc(items.members)]), softline]), ")"];
  return needsBrackets(items) ? ["(", typeDoc(items), ")"] : typeDoc(items);
}

/** Prints the parameters of a function, in brackets. */
function parametersDoc({ parameters }: Pick<FunctionNode, "parameters">): Doc {
  const [only] = parameters;
  if (only === undefined) return "()";
  // An object as the only parameter shares its lines with the brackets.
  if (parameters.length === 1 && typeof only.type !== "string" && only.type.kind === "object") {
    const members = only.type.members.map(memberDoc);
    return ["(", only.head, ": {", indent([line, join([";", line], members)]), ifBreak(";"), line, "})"];
  }
  return ["(", indent([softline, join([",", line], parameters.map(memberDoc))]), ifBreak(","), softline, ")"];
}

/** A name that a module exports, and what it is called here. */
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

/** Prints `export { a };` or `export type { a };`, sorted. */
export function printExport(symbols: readonly ImportSymbol[], isTypeOnly = false): Printed {
  const names = symbols.map(({ alias }) => alias).sort();
  return { text: layOut([isTypeOnly ? "export type " : "export ", namesDoc(names), ";"]), symbols };
}

/** Prints `export { a } from "module";`, or `export type`. */
export function printExportFrom(names: readonly ImportedName[], module: string, isTypeOnly = false): string {
  const word = isTypeOnly ? "export type " : "export ";
  return layOut([word, namesDoc(names.map(renamed)), ` from ${JSON.stringify(module)};`]);
}

// A single name stays on its line, however long it is.
function namesDoc(names: readonly string[]): Doc {
  return names.length === 1 ? `{ ${names[0]} }` : listOf(["{", "}"], names, { space: line, end: "," });
}

function renamed({ name, alias }: ImportedName): string {
  return name === alias ? name : `${name} as ${alias}`;
}

/** An interface. */
interface InterfaceNode {
  readonly name: string;
  /** A comment, ready to print. */
  readonly doc: string;
  readonly extends: readonly TypeNode[];
  readonly members: readonly (DocumentedMember | MethodNode)[];
}

/** A member of an interface. */
export interface DocumentedMember extends MemberNode {
  /** A comment, ready to print. */
  readonly doc?: string;
}

/** A method of an interface. */
interface MethodNode extends FunctionNode {
  readonly head: string;
}

/** Prints an exported interface. */
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

/** Prints an exported type alias; `parameters` are those in angle brackets, with the brackets. */
export function printAlias(name: string, type: TypeNode, parameters = ""): Printed {
  const start = `export type ${name}${parameters} =`;
  // A name has no place of its own to break at.
  if (typeof type !== "string") return print(group([start, " ", typeDoc(type), ";"]));
  return start.length + type.length + 2 <= WIDTH ? `${start} ${type};` : `${start}\n  ${type};`;
}

/** Prints an exported constant. */
export function printConstant(name: string, value: Doc, type?: TypeNode): Printed {
  const declared = type === undefined ? name : [`${name}: `, typeDoc(type)];
  return print(group(["export const ", declared, " = ", value, ";"]));
}
