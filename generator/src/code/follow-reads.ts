// Follows objects of event sources through user code and records the fields that it reads.
//
// Every read is recorded, or else the whole object is. The analysis understands property chains, destructuring, constants, loops, array methods with
// inline callbacks, and project functions that are called by name. Any other use of an object (passing it to unknown code, spreading, returning, or
// storing it, or assigning it another type) counts as a read of the whole object.
import type ts from "typescript";
import type { FieldPath } from "../model/schema.js";
import { loadLibrary, unwrap } from "../model/typescript.js";
import { type ReadLog, type TrackedSource, type Value, itemOf, keyOfValue, rootOf, stepInto } from "./reads.js";
import {
  type FunctionNode,
  type SourceProgram,
  constantOf,
  isFunctionNode,
  parametersOf,
  resolveFunction,
  takesMore,
} from "./source-program.js";

const compiler = loadLibrary("typescript");
const { SyntaxKind } = compiler;

/** Members of the context that call functions with the primary, wherever these functions are written. */
const CALLS_WITH_PRIMARY: ReadonlySet<string> = new Set(["workflows", "expectations"]);

/** Follows values from the parameters in which the runtime passes them. */
export class ReadFollower {
  readonly #program: SourceProgram;
  readonly #log: ReadLog;
  readonly #followed = new Set<string>();
  /** Consumers of the values that inline callbacks return. */
  readonly #results = new Map<FunctionNode, (value: Value, node: ts.Node) => void>();

  constructor(program: SourceProgram, log: ReadLog) {
    this.#program = program;
    this.#log = log;
  }

  /** Follows a value into a parameter, a variable, or a binding element. */
  bind(declaration: ts.ParameterDeclaration | ts.VariableDeclaration | ts.BindingElement, value: Value): void {
    const type = compiler.isBindingElement(declaration) ? undefined : declaration.type;
    if (type !== undefined && !this.#keepsType(type, value)) return this.#escape(value, type);
    const takesRest = !compiler.isVariableDeclaration(declaration) && declaration.dotDotDotToken !== undefined;
    if (takesRest) return this.#escape(value, declaration);
    this.#bindName(declaration.name, value);
  }

  /** Records that anything may be read from here on. */
  giveUp(node: ts.Node): void {
    this.#log.readPrimary([], this.#program.positionOf(node));
    this.#giveUpSecondaries(node);
  }

  #giveUpSecondaries(node: ts.Node): void {
    const position = this.#program.positionOf(node);
    this.#log.readEverything(position);
    this.#log.lookUpEverything(position);
    this.#log.invoke();
  }

  // The generated types of cached objects follow the cached fields. Any other annotation could expose more fields.
  #keepsType(type: ts.TypeNode, value: Value): boolean {
    if (value.kind === "list") return this.#keepsType(type, value.of);
    if (value.kind !== "object") return type.kind !== SyntaxKind.AnyKeyword && type.kind !== SyntaxKind.UnknownKeyword;
    const words = type.getText().match(/[\w$]+/g) ?? [];
    const isKnown = words.every(
      (word) =>
        ["readonly", "undefined", "Readonly", "Array", "ReadonlyArray"].includes(word) ||
        word === value.source.typeName,
    );
    return value.path.length === 0 && isKnown;
  }

  #bindName(name: ts.BindingName, value: Value): void {
    if (compiler.isIdentifier(name)) {
      if (!this.#isNew(name, value)) return;
      for (const reference of this.#program.referencesOf(name)) this.#use(reference, value);
    } else if (compiler.isObjectBindingPattern(name)) {
      for (const element of name.elements) this.#bindField(element, value);
    } else if (value.kind === "list") {
      for (const element of name.elements) {
        if (compiler.isOmittedExpression(element)) continue;
        if (element.dotDotDotToken === undefined) this.#bindName(element.name, value.of);
        else this.#bindName(element.name, value);
      }
    } else this.#escape(value, name);
  }

  #bindField(element: ts.BindingElement, value: Value): void {
    const name = element.propertyName ?? element.name;
    if (element.dotDotDotToken !== undefined || !(compiler.isIdentifier(name) || compiler.isStringLiteral(name)))
      return this.#escape(value, element);
    const next = this.#step(value, name.text, element);
    if (next !== undefined) this.bind(element, next);
  }

  /** Follows the uses of an expression with a known value. */
  #use(node: ts.Node, value: Value): void {
    if (!this.#isNew(node, value)) return;
    const { parent } = node;
    if (
      compiler.isParenthesizedExpression(parent) ||
      compiler.isNonNullExpression(parent) ||
      compiler.isAwaitExpression(parent)
    )
      return this.#use(parent, value);
    if (compiler.isPropertyAccessExpression(parent)) return this.#useField(parent, parent.name.text, value);
    if (compiler.isElementAccessExpression(parent) && parent.expression === node)
      return this.#useElement(parent, value);
    if (compiler.isCallExpression(parent)) return this.#useInCall(parent, node, value);
    if (compiler.isBinaryExpression(parent)) return this.#useInBinary(parent, node, value);
    if (compiler.isConditionalExpression(parent))
      return parent.condition === node ? this.#look(value, node) : this.#use(parent, value);
    if (compiler.isVariableDeclaration(parent)) return this.#useInVariable(parent, value);
    if (compiler.isForOfStatement(parent) && parent.expression === node) return this.#useInLoop(parent, value);
    if (compiler.isSpreadElement(parent) && compiler.isArrayLiteralExpression(parent.parent) && value.kind === "list")
      return this.#use(parent.parent, value);
    if (compiler.isArrayLiteralExpression(parent)) return this.#use(parent, { kind: "list", of: value });
    if (isFunctionNode(parent) && parent.body === node) return this.#return(parent, value, node);
    if (compiler.isReturnStatement(parent)) return this.#return(enclosingFunction(parent), value, node);
    if (compiler.isExpressionStatement(parent)) return;
    if (isLook(parent, node)) return this.#look(value, node);
    this.#escape(value, node);
  }

  #useField(access: ts.PropertyAccessExpression | ts.ElementAccessExpression, name: string, value: Value): void {
    const call = callOf(access);
    // A method of the primary, which may read all of it.
    if (value.kind === "primary" && call !== undefined) return this.#escape(value, access);
    if (value.kind === "context" && CALLS_WITH_PRIMARY.has(name))
      this.#log.readPrimary([], this.#program.positionOf(access));
    if (value.kind === "invocation" && name === "reconcile") this.#log.invoke();
    if (value.kind === "eventSources" || value.kind === "resources") return this.#lookUp(call, { value, name }, access);
    if (value.kind === "list" && call !== undefined) return this.#useListMethod(call, name, value);
    if (value.kind === "invocation" && call !== undefined) return this.#use(call, { kind: "result", path: [] });
    if (value.kind === "result" && value.path.length === 0 && name === "detailOf" && call !== undefined)
      return this.#log.readResult(detailNamedIn(call));
    const next = this.#step(value, name, access);
    if (next !== undefined) this.#use(access, next);
  }

  #useElement(access: ts.ElementAccessExpression, value: Value): void {
    const { argumentExpression: index } = access;
    const name = textOf(index, this.#program);
    if (name !== undefined) return this.#useField(access, name, value);
    if (value.kind === "list") return this.#use(access, value.of);
    const item = value.kind === "result" ? itemOf(value.path) : undefined;
    if (item !== undefined) return this.#use(access, { kind: "result", path: item });
    this.#escape(value, access);
  }

  #useInCall(call: ts.CallExpression, node: ts.Node, value: Value): void {
    if (call.expression === node)
      return value.kind === "lookup" ? this.#lookUp(call, { value, name: "" }, node) : this.#escape(value, node);
    // These functions read only the identity of an object.
    if (value.kind === "primary" && this.#readsIdentity(call.expression)) return;
    const callee = resolveFunction(call.expression, this.#program);
    const parameter = parametersOf(callee)[call.arguments.findIndex((argument) => argument === node)];
    const isPlain = parameter !== undefined && !call.arguments.some(compiler.isSpreadElement);
    if (isPlain) this.bind(parameter, value);
    else this.#escape(value, node);
  }

  #readsIdentity(callee: ts.Expression): boolean {
    if (/^context\s*\.\s*(?:client|resources)\b/.test(callee.getText())) return true;
    const imported = compiler.isIdentifier(callee) ? this.#program.importOf(callee) : undefined;
    if (imported === undefined || (imported.propertyName ?? imported.name).text !== "keyOf") return false;
    const { moduleSpecifier } = imported.parent.parent.parent;
    return compiler.isStringLiteral(moduleSpecifier) && moduleSpecifier.text === "@gen-operator/runtime";
  }

  #lookUp(call: ts.CallExpression | undefined, used: { value: Value; name: string }, node: ts.Node): void {
    const asked = call === undefined || used.value.kind !== "lookup" ? undefined : askedClassOf(call, this.#program);
    if (asked !== undefined) this.#log.readKind(asked, this.#program.positionOf(node));
    const found = lookupOf(call, used, { program: this.#program, sources: this.#log.sources });
    if (found === undefined) return this.#giveUpSecondaries(node);
    for (const value of found.values) {
      const of = value.kind === "list" ? value.of : value;
      if (of.kind === "object") this.#log.lookUp(of.source, this.#program.positionOf(node));
      if (found.isWhole || call === undefined) this.#escape(value, node);
      else this.#use(call, value);
    }
  }

  #useListMethod(call: ts.CallExpression, name: string, list: Value & { kind: "list" }): void {
    const method = listMethodOf(name, call);
    if (method === undefined) return this.#escape(list, call);
    if (method.looksAt) this.#look(list.of, call);
    const [callback] = call.arguments;
    const inline = callback === undefined ? undefined : unwrap(callback, compiler);
    const callee = callback === undefined ? undefined : resolveFunction(callback, this.#program);
    if (method.parameters.length > 0) {
      if (callee === undefined || takesMore(callee)) return this.#escape(list, callback ?? call);
      if (callee === inline) this.#results.set(callee, (value, node) => this.#useResult(call, { name, value, node }));
      for (const [index, role] of method.parameters.entries()) {
        const parameter = parametersOf(callee)[index];
        if (parameter !== undefined && role !== "other") this.bind(parameter, role === "list" ? list : list.of);
      }
    }
    if (method.result === "element") this.#use(call, list.of);
    if (method.result === "list") this.#use(call, list);
    if (method.result === "flat") this.#use(call, list.of.kind === "list" ? list.of : list);
  }

  /** Follows the return value of a callback of an array method. */
  #useResult(call: ts.CallExpression, { name, value, node }: { name: string; value: Value; node: ts.Node }): void {
    if (name === "map") return this.#use(call, { kind: "list", of: value });
    if (name === "flatMap") return this.#use(call, value.kind === "list" ? value : { kind: "list", of: value });
    if (name.startsWith("reduce")) return this.#escape(value, node);
    this.#look(value, node);
  }

  #useInBinary(binary: ts.BinaryExpression, node: ts.Node, value: Value): void {
    const operator = binary.operatorToken.kind;
    if (operator === SyntaxKind.BarBarToken || operator === SyntaxKind.QuestionQuestionToken)
      return this.#use(binary, value);
    if (operator === SyntaxKind.AmpersandAmpersandToken)
      return binary.right === node ? this.#use(binary, value) : this.#look(value, node);
    const isAssignment = operator >= SyntaxKind.FirstAssignment && operator <= SyntaxKind.LastAssignment;
    if (isAssignment || operator === SyntaxKind.InKeyword || operator === SyntaxKind.CommaToken)
      return this.#escape(value, node);
    this.#look(value, node);
  }

  // A variable that can be reassigned does not stand for one value.
  #useInVariable(declaration: ts.VariableDeclaration, value: Value): void {
    const isConstant = (declaration.parent.flags & compiler.NodeFlags.Const) !== 0;
    if (isConstant) this.bind(declaration, value);
    else this.#escape(value, declaration);
  }

  #useInLoop({ initializer }: ts.ForOfStatement, value: Value): void {
    const declaration = compiler.isVariableDeclarationList(initializer) ? initializer.declarations[0] : undefined;
    const isConstant = (initializer.flags & compiler.NodeFlags.Const) !== 0;
    if (declaration !== undefined && isConstant && value.kind === "list") this.bind(declaration, value.of);
    else this.#escape(value, initializer);
  }

  #return(from: FunctionNode | undefined, value: Value, node: ts.Node): void {
    const result = from === undefined ? undefined : this.#results.get(from);
    if (result === undefined || from?.modifiers?.some(({ kind }) => kind === SyntaxKind.AsyncKeyword))
      return this.#escape(value, node);
    result(value, node);
  }

  #step(value: Value, name: string, node: ts.Node): Value | undefined {
    if (value.kind === "secondary") this.#log.readMember(name, this.#program.positionOf(node));
    const step = stepInto(value, name, this.#log.sources);
    if (step.kind === "value") return step.value;
    if (step.kind === "unknown") this.#escape(value, node);
    if (step.kind === "read" && value.kind === "object")
      this.#log.read(value.source, step.path, this.#program.positionOf(node));
    if (step.kind === "read" && value.kind === "result") this.#log.readResult(step.path);
    if (step.kind === "read" && value.kind === "primary")
      this.#log.readPrimary(step.path, this.#program.positionOf(node));
    return undefined;
  }

  // Testing or comparing an object itself reads none of its fields, but a nested object must be cached to be found.
  #look(value: Value, node: ts.Node): void {
    // The string form of a list includes its elements.
    if (value.kind === "list") return this.#look(value.of, node);
    if (value.kind === "object" && value.path.length > 0)
      this.#log.read(value.source, value.path, this.#program.positionOf(node));
    // Testing whether labels exist depends on each of them.
    if (value.kind === "primary" && value.path.length > 1)
      this.#log.readPrimary(value.path, this.#program.positionOf(node));
  }

  #escape(value: Value, node: ts.Node): void {
    if (value.kind === "list") return this.#escape(value.of, node);
    if (value.kind === "object") this.#log.read(value.source, value.path, this.#program.positionOf(node));
    else if (value.kind === "primary") this.#log.readPrimary(value.path, this.#program.positionOf(node));
    else if (value.kind === "result") this.#log.readResult(itemOf(value.path) ?? value.path);
    else if (value.kind === "invocation") {
      this.#log.readResult([]);
      this.#log.invoke();
    }
    // `secondary` only provides objects of the primary, so this is not a lookup of other objects.
    else if (value.kind === "secondary") this.#log.readEverything(this.#program.positionOf(node));
    else if (value.kind === "arguments") this.giveUp(node);
    else this.#giveUpSecondaries(node);
  }

  #isNew(node: ts.Node, value: Value): boolean {
    const key = `${node.getSourceFile().fileName}:${node.pos}:${node.end}:${node.kind}:${keyOfValue(value)}`;
    if (this.#followed.has(key)) return false;
    this.#followed.add(key);
    return true;
  }
}

/** Returns the string value of an expression that is a literal or a constant with a literal. */
function textOf(expression: ts.Expression, program: SourceProgram): string | undefined {
  const plain = unwrap(expression, compiler);
  if (compiler.isStringLiteralLike(plain)) return plain.text;
  const declaration = compiler.isIdentifier(plain) ? program.declarationOf(plain) : undefined;
  const constant = declaration === undefined ? undefined : constantOf(declaration);
  return constant !== undefined && compiler.isStringLiteralLike(constant) ? constant.text : undefined;
}

function callOf(access: ts.Expression): ts.CallExpression | undefined {
  const { parent } = access;
  return compiler.isCallExpression(parent) && parent.expression === access ? parent : undefined;
}

/** Returns the path of the detail that a call of `detailOf` reads, or a prefix of it if the arguments are not literals. */
function detailNamedIn(call: ts.CallExpression): FieldPath {
  const [dependent, condition] = call.arguments;
  if (dependent === undefined || !compiler.isStringLiteralLike(dependent)) return [];
  if (condition === undefined || !compiler.isStringLiteralLike(condition)) return ["dependents", dependent.text];
  return ["dependents", dependent.text, "conditions", condition.text, "detail"];
}

function enclosingFunction(node: ts.Node): FunctionNode | undefined {
  for (let current = node.parent; current !== undefined; current = current.parent)
    if (isFunctionNode(current)) return current;
  return undefined;
}

/** Returns whether the parent node only tests the value of a node. */
function isLook(parent: ts.Node, node: ts.Node): boolean {
  if (compiler.isPrefixUnaryExpression(parent) || compiler.isTypeOfExpression(parent)) return true;
  if (compiler.isTemplateSpan(parent)) return !compiler.isTaggedTemplateExpression(parent.parent.parent);
  if (compiler.isVoidExpression(parent)) return true;
  if (compiler.isCaseClause(parent) || compiler.isSwitchStatement(parent)) return parent.expression === node;
  if (compiler.isIfStatement(parent) || compiler.isWhileStatement(parent) || compiler.isDoStatement(parent))
    return parent.expression === node;
  return compiler.isForStatement(parent) && parent.condition === node;
}

/** Values that a lookup returns. `isWhole` is set if the result may be read completely. */
interface Lookup {
  readonly values: readonly Value[];
  readonly isWhole: boolean;
}

interface Facts {
  readonly program: SourceProgram;
  readonly sources: readonly TrackedSource[];
}

const NOTHING: Lookup = { values: [], isWhole: false };

/**
 * Returns the result of a call of `context.secondary`, `context.secondaries`, or a method of `context.eventSources` or `context.resources`; undefined
 * if it cannot be determined.
 */
function lookupOf(
  call: ts.CallExpression | undefined,
  { value, name }: { readonly value: Value; readonly name: string },
  { program, sources }: Facts,
): Lookup | undefined {
  const [first, second] = call?.arguments ?? [];
  if (value.kind === "eventSources") {
    if (name === "register" || name === "deregister") return NOTHING;
    if (name !== "get" || first === undefined || !compiler.isStringLiteralLike(first)) return undefined;
    return { values: sources.filter(({ model }) => model.name === first.text).map(rootOf), isWhole: true };
  }
  // All other operations concern the primary.
  if (value.kind === "resources" && name !== "of") return NOTHING;
  if (first !== undefined && compiler.isStringLiteralLike(first)) return NOTHING;
  const className = first === undefined ? undefined : classNameOf(first, program);
  if (className === undefined) return undefined;
  const wanted = sourceNameIn(second);
  if (wanted === undefined) return undefined;
  const found = sources
    .filter(({ classNames, model }) => classNames.has(className) && (wanted === "" || wanted === model.name))
    .map(rootOf);
  if (value.kind !== "lookup") return { values: found, isWhole: true };
  return { values: value.isList ? found.map((of) => ({ kind: "list", of })) : found, isWhole: false };
}

/** Returns the class argument of a call of `context.secondary` or `context.secondaries`; undefined if the call also selects a source or a name. */
function askedClassOf(call: ts.CallExpression, program: SourceProgram): string | undefined {
  const [first, second] = call.arguments;
  return first === undefined || second !== undefined ? undefined : classNameOf(first, program);
}

/** Returns the exported name of a class of generated code; the importing file may rename it. */
function classNameOf(expression: ts.Expression, program: SourceProgram): string | undefined {
  if (!compiler.isIdentifier(expression)) return undefined;
  const declaration = program.importOf(expression);
  if (declaration === undefined || !isFromGeneratedCode(declaration)) return undefined;
  return (declaration.propertyName ?? declaration.name).text;
}

function isFromGeneratedCode({ parent: { parent: clause } }: ts.ImportSpecifier): boolean {
  const { moduleSpecifier } = clause.parent;
  return (
    compiler.isStringLiteral(moduleSpecifier) &&
    /(?:^|\/)generated\/|^@gen-operator\/kinds\//.test(moduleSpecifier.text)
  );
}

/** Returns the event source that the options select; empty if they select none, undefined if it cannot be determined. */
function sourceNameIn(options: ts.Expression | undefined): string | undefined {
  if (options === undefined) return "";
  if (!compiler.isObjectLiteralExpression(options)) return undefined;
  let name = "";
  for (const property of options.properties) {
    if (compiler.isSpreadAssignment(property) || property.name === undefined) return undefined;
    if (compiler.isComputedPropertyName(property.name)) return undefined;
    if (property.name.getText() !== "source") continue;
    if (!compiler.isPropertyAssignment(property) || !compiler.isStringLiteralLike(property.initializer))
      return undefined;
    name = property.initializer.text;
  }
  return name;
}

/** How an array method uses the elements. */
interface ListMethod {
  /** Roles of the parameters of the callback; empty if the method takes none. */
  readonly parameters: readonly ("element" | "list" | "other")[];
  /** What the call returns of the list, apart from the result of the callback. */
  readonly result: "element" | "list" | "flat" | "nothing";
  /** True if the method itself compares or prints the elements. */
  readonly looksAt?: boolean;
}

const TESTING: ListMethod["parameters"] = ["element", "other", "list"];
const COMPARING: ListMethod["parameters"] = ["element", "element"];

const METHODS: { readonly [name: string]: ListMethod } = {
  some: { parameters: TESTING, result: "nothing" },
  every: { parameters: TESTING, result: "nothing" },
  filter: { parameters: TESTING, result: "list" },
  find: { parameters: TESTING, result: "element" },
  findLast: { parameters: TESTING, result: "element" },
  findIndex: { parameters: TESTING, result: "nothing" },
  findLastIndex: { parameters: TESTING, result: "nothing" },
  forEach: { parameters: TESTING, result: "nothing" },
  map: { parameters: TESTING, result: "nothing" },
  flatMap: { parameters: TESTING, result: "nothing" },
  sort: { parameters: COMPARING, result: "list" },
  toSorted: { parameters: COMPARING, result: "list" },
  at: { parameters: [], result: "element" },
  pop: { parameters: [], result: "element" },
  shift: { parameters: [], result: "element" },
  slice: { parameters: [], result: "list" },
  concat: { parameters: [], result: "list" },
  reverse: { parameters: [], result: "list" },
  toReversed: { parameters: [], result: "list" },
  flat: { parameters: [], result: "flat" },
  includes: { parameters: [], result: "nothing", looksAt: true },
  indexOf: { parameters: [], result: "nothing", looksAt: true },
  join: { parameters: [], result: "nothing", looksAt: true },
};

/** Returns how an array method uses the elements; undefined for unknown methods. */
function listMethodOf(name: string, call: ts.CallExpression): ListMethod | undefined {
  if (name === "reduce" || name === "reduceRight") {
    // Without an initial value, the accumulator starts with the first element.
    const startsWithElement = call.arguments.length < 2;
    return {
      parameters: [startsWithElement ? "element" : "other", "element", "other", "list"],
      result: startsWithElement ? "element" : "nothing",
    };
  }
  return Object.hasOwn(METHODS, name) ? METHODS[name] : undefined;
}
