import { group, hardline, indent, join, layOut, line, listOf, WIDTH, type Doc } from "./layout.js";
import { memberDoc, parametersDoc, typeDoc } from "./print-type.js";
import type { FunctionNode, MemberNode, TypeNode } from "./type-node.js";

/** A name that a module exports, and what it is called here. */
export interface ImportedName {
  readonly name: string;
  readonly alias?: string;
}

/** Prints `import { a } from "module";`, or `import type`. */
export function printImport(names: readonly (string | ImportedName)[], module: string, isTypeOnly = false): string {
  const word = isTypeOnly ? "import type " : "import ";
  return layOut([word, namesDoc(names.map(renamed)), ` from ${JSON.stringify(module)};`]);
}

/** Prints `import * as name from "module";`, or `import type`. */
export function printNamespaceImport(name: string, module: string, isTypeOnly = false): string {
  return `import ${isTypeOnly ? "type " : ""}* as ${name} from ${JSON.stringify(module)};`;
}

/** Prints `export { a };` or `export type { a };`, sorted. */
export function printExport(names: readonly string[], isTypeOnly = false): string {
  return layOut([isTypeOnly ? "export type " : "export ", namesDoc([...names].sort()), ";"]);
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

function renamed(given: string | ImportedName): string {
  const { name, alias = name } = typeof given === "string" ? { name: given } : given;
  return name === alias ? name : `${name} as ${alias}`;
}

/** An interface. */
export interface InterfaceNode {
  readonly name: string;
  /** A comment, ready to print. */
  readonly doc: string;
  readonly extends: readonly string[];
  readonly members: readonly (DocumentedMember | MethodNode)[];
}

/** A member of an interface. */
export interface DocumentedMember extends MemberNode {
  /** A comment, ready to print. */
  readonly doc?: string;
}

/** A method of an interface. */
export interface MethodNode extends FunctionNode {
  readonly head: string;
}

/** Prints an exported interface. */
export function printInterface({ name, doc, extends: parents, members }: InterfaceNode): string {
  const [first] = parents;
  const clause =
    first === undefined
      ? []
      : [line, "extends ", parents.length === 1 ? first : indent(join([",", line], [...parents]))];
  const head = group(indent([`export interface ${name}`, ...clause]));
  const body = members.map((member) => [hardline, "kind" in member ? methodDoc(member) : documented(member), ";"]);
  const block = members.length === 0 ? "{}" : ["{", indent(body), hardline, "}"];
  return layOut([doc === "" ? "" : [doc, hardline], group([head, " ", block])]);
}

function documented({ doc, ...member }: DocumentedMember): Doc {
  return doc === undefined ? memberDoc(member) : [doc, hardline, memberDoc(member)];
}

function methodDoc({ head, returns, ...node }: MethodNode): Doc {
  return group([head, parametersDoc(node), ": ", typeDoc(returns)]);
}

/** Prints an exported type alias; `parameters` are those in angle brackets, with the brackets. */
export function printAlias(name: string, type: TypeNode, parameters = ""): string {
  const start = `export type ${name}${parameters} =`;
  // A name has no place of its own to break at.
  if (typeof type !== "string") return layOut(group([start, " ", typeDoc(type), ";"]));
  return start.length + type.length + 2 <= WIDTH ? `${start} ${type};` : `${start}\n  ${type};`;
}

/** Prints an exported constant. */
export function printConstant(name: string, value: Doc, type?: string): string {
  const declared = type === undefined ? name : `${name}: ${type}`;
  return layOut(group([`export const ${declared} = `, value, ";"]));
}
