import type ts from "typescript";
import { foreignNamespace } from "../check/places.js";
import { DEPENDENT_NAMESPACE, OWNER_NAMESPACE, SAME_OBJECT } from "../check/rules.js";
import { type Diagnostic, formatPosition, quote } from "../diagnostic.js";
import { dependentNamesOf } from "../emit/names.js";
import { type ControllerModel, type KubernetesDependentModel, isKubernetes } from "../model/project-model.js";
import { loadLibrary, unwrap } from "../model/typescript.js";
import {
  type FunctionNode,
  type SourceProgram,
  constantOf,
  fieldOf,
  functionOf,
  isFunctionNode,
  objectsReturnedBy,
  plainTextOf,
  resolveFunction,
} from "./source-program.js";

const compiler = loadLibrary("typescript");

interface NamedCode {
  readonly controller: ControllerModel;
  readonly folder: string;
  readonly program: SourceProgram;
}

/** The node of a name or a namespace. `text` is undefined unless it consists of literals and fields of the primary. */
interface NamePart {
  readonly node: ts.Node;
  readonly text: string | undefined;
}

/** The name of the object that a dependent returns from `desired`. */
interface NamedDependent {
  readonly code: NamedCode;
  readonly dependent: KubernetesDependentModel;
  readonly name: NamePart;
  /** Absent if the function does not set a namespace. */
  readonly namespace?: NamePart;
}

/**
 * Reports dependents whose functions name the same object, and namespaces that are not possible.
 *
 * Only names that consist of literals and fields of the primary are checked. At run time, the operator refuses to write the object of another
 * dependent.
 */
export function checkObjectNames(controllers: readonly NamedCode[]): Diagnostic[] {
  const named = controllers.flatMap((code) =>
    code.controller.dependents.filter(isKubernetes).flatMap((dependent) => nameOf(dependent, code) ?? []),
  );
  return [...named.flatMap(checkNamespace), ...objectsOfOneName(named)];
}

function objectsOfOneName(named: readonly NamedDependent[]): Diagnostic[] {
  const known = new Map<string, NamedDependent[]>();
  return named.flatMap((each): Diagnostic[] => {
    const key = nameKeyOf(each);
    if (key === undefined) return [];
    const others = known.get(key) ?? [];
    known.set(key, [...others, each]);
    // The conditions of two conditional dependents may exclude each other.
    const other = others.find(({ dependent }) => !isConditional(dependent) || !isConditional(each.dependent));
    if (other === undefined) return [];
    const { code, dependent, name } = each;
    const place = formatPosition(other.code.program.positionOf(other.name.node));
    const object = `${dependent.resource.kind} ${displayed(name.text ?? "")}`;
    return [
      {
        ...SAME_OBJECT.violation,
        message: `dependents ${quote(dependent.name)} and ${quote(other.dependent.name)} (${place}) would write the same object: ${object}`,
        position: code.program.positionOf(name.node),
        hint: "use another name, or merge the two dependents",
      },
    ];
  });
}

/** Returns a key that is equal for equal objects; undefined if the code does not determine the object. */
function nameKeyOf({ code: { controller }, dependent, name, namespace }: NamedDependent): string | undefined {
  const { resource, cluster = "", bulk } = dependent;
  const stated = namespace === undefined ? OWN_NAMESPACE : namespace.text;
  const place = resource.scope === "Cluster" ? "" : (dependent.namespace ?? stated);
  if (bulk !== undefined || name.text === undefined || place === undefined) return undefined;
  const { primary, settings, filters } = controller;
  // Controllers with filters or selectors may share a kind without sharing an object.
  const { labelSelector, fieldSelector, namespaces } = settings;
  const isLimited = [labelSelector, fieldSelector, namespaces].some((limit) => limit !== undefined);
  const isApart = isLimited || Object.keys(filters).length > 0;
  const ofWhom = [primary.group, primary.kind, isApart ? controller.name : ""];
  return JSON.stringify([...ofWhom, resource.group, resource.kind, cluster, place, name.text]);
}

function isConditional({ conditions }: KubernetesDependentModel): boolean {
  return conditions.activationCondition !== undefined || conditions.reconcilePrecondition !== undefined;
}

/** Checks a literal namespace against the namespace of the owner and the watched namespaces. */
function checkNamespace({ code, dependent, namespace }: NamedDependent): Diagnostic[] {
  const { name, resource, deletion } = dependent;
  const { primary, settings } = code.controller;
  const text = namespace?.text;
  if (namespace === undefined || text === undefined || text.includes("${") || resource.scope === "Cluster") return [];
  const position = code.program.positionOf(namespace.node);
  const { namespaces } = settings;
  const watched = Array.isArray(namespaces) ? (namespaces as readonly string[]) : undefined;
  const isOnlyOne = watched?.length === 1 && watched[0] === text;
  if (deletion === "garbageCollected" && primary.scope === "Namespaced" && !isOnlyOne)
    return [
      {
        ...OWNER_NAMESPACE.violation,
        message: `dependent ${quote(name)} in namespace ${quote(text)} cannot be owned by a ${primary.kind}: owner references cannot cross namespaces`,
        position,
        hint: "in the spec, set deletion: ordered to have the operator delete it, or deletion: orphan to keep it",
      },
    ];
  const isSeen = watched === undefined || watched.includes(text);
  if (isSeen || [dependent.namespace, dependent.eventSource, dependent.cluster].some((each) => each !== undefined))
    return [];
  return [
    {
      ...DEPENDENT_NAMESPACE.violation,
      message: `dependent ${quote(name)} would be in namespace ${quote(text)}, which controller ${quote(code.controller.name)} does not watch`,
      position,
      hint: `in the spec, set namespace: ${text} on the dependent, or add it to controller.namespaces`,
    },
  ];
}

/** Returns the name that `desired` gives its object; undefined unless the function returns a single object with literal metadata. */
function nameOf(dependent: KubernetesDependentModel, code: NamedCode): NamedDependent | undefined {
  const { program, folder } = code;
  if (dependent.mode === "readOnly") return undefined;
  const file = program.fileAt(`src/${folder}/dependents/${dependentNamesOf(dependent).file}.ts`);
  const desired = file === undefined ? undefined : functionOf(program.exportOf(file, "desired"), program);
  const [object, second] = desired === undefined ? [] : objectsReturnedBy(desired);
  if (desired === undefined || object === undefined || second !== undefined) return undefined;
  const metadata = fieldOf(object, "metadata");
  if (metadata === undefined || !compiler.isPropertyAssignment(metadata)) return undefined;
  const { initializer } = metadata;
  if (!compiler.isObjectLiteralExpression(initializer)) return undefined;
  if (initializer.properties.some((property) => compiler.isSpreadAssignment(property))) return undefined;
  const name = partIn(initializer, "name", { desired, program });
  const namespace = partIn(initializer, "namespace", { desired, program });
  if (name === undefined) return undefined;
  return { code, dependent, name, ...(namespace === undefined ? {} : { namespace }) };
}

function partIn(
  metadata: ts.ObjectLiteralExpression,
  field: string,
  { desired, program }: { readonly desired: FunctionNode; readonly program: SourceProgram },
): NamePart | undefined {
  const property = fieldOf(metadata, field);
  if (property === undefined) return undefined;
  // `{ name }` refers to the constant `name`.
  const node = compiler.isPropertyAssignment(property) ? property.initializer : (property.name as ts.Identifier);
  return { node, text: plainTextOf(node, { function: desired, program }) };
}

function displayed(template: string): string {
  return template.includes("${") ? `\`${template}\`` : quote(template);
}

/** The text that `plainTextOf` returns for the namespace of the primary. */
const OWN_NAMESPACE = "${primary.metadata.namespace}";

interface NamespaceCode {
  readonly controller: ControllerModel;
  readonly folder: string;
  readonly program: SourceProgram;
}

/** Warns about functions that create objects, single or in bulk, in a namespace that the author of the primary chooses. */
export function checkChosenNamespaces(code: NamespaceCode): Diagnostic[] {
  const { controller, program } = code;
  const { primary } = controller;
  if (primary.scope === "Cluster") return [];
  return controller.dependents.filter(isKubernetes).flatMap((dependent) =>
    chosenNamespacesOf(dependent, code).map((node) => ({
      ...foreignNamespace(dependent.name, primary.kind, "writes"),
      about: `${controller.name}/${dependent.name}`,
      position: program.positionOf(node),
    })),
  );
}

function chosenNamespacesOf(dependent: KubernetesDependentModel, { folder, program }: NamespaceCode): ts.Expression[] {
  const { mode, resource, deletion } = dependent;
  // An object with an owner reference is in the namespace of the primary.
  if (mode === "readOnly" || resource.scope === "Cluster" || deletion === "garbageCollected") return [];
  const file = program.fileAt(`src/${folder}/dependents/${dependentNamesOf(dependent).file}.ts`);
  const desired = file === undefined ? undefined : functionOf(program.exportOf(file, "desired"), program);
  if (desired === undefined) return [];
  const choices = new PrimaryChoices(desired, program);
  const stated = new StatedNamespaces(choices, program).in(desired);
  return stated.filter((namespace) => {
    const text = plainTextOf(namespace, { function: desired, program });
    return text === undefined ? choices.decide(namespace) : text.includes("${") && text !== OWN_NAMESPACE;
  });
}

/** Finds the namespace expressions of all objects that a function creates, directly or in functions that it calls. */
class StatedNamespaces {
  readonly #choices: PrimaryChoices;
  readonly #program: SourceProgram;
  readonly #seen = new Set<ts.Node>();

  constructor(choices: PrimaryChoices, program: SourceProgram) {
    this.#choices = choices;
    this.#program = program;
  }

  in(node: ts.Node): ts.Expression[] {
    if (isFunctionNode(node)) {
      if (this.#seen.has(node)) return [];
      this.#seen.add(node);
    }
    if (compiler.isObjectLiteralExpression(node)) {
      const metadata = fieldOf(node, "metadata");
      // Nested metadata, for example in a pod template, does not belong to an object.
      if (metadata !== undefined) return this.#valueOf(metadata).flatMap((value) => this.#namespacesOf(value));
    }
    const called = compiler.isCallExpression(node) ? this.#choices.functionsOf(node) : [];
    const found = called.flatMap((each) => this.in(each));
    compiler.forEachChild(node, (child) => {
      found.push(...this.in(child));
    });
    return found;
  }

  #namespacesOf(metadata: ts.Expression): ts.Expression[] {
    return this.#objectsOf(metadata, new Set()).flatMap((object) => {
      const namespace = fieldOf(object, "namespace");
      if (namespace !== undefined) return this.#valueOf(namespace);
      return object.properties.flatMap((property) =>
        compiler.isSpreadAssignment(property) ? this.#namespacesOf(property.expression) : [],
      );
    });
  }

  #objectsOf(expression: ts.Expression, seen: Set<ts.Node>): ts.ObjectLiteralExpression[] {
    const plain = unwrap(expression, compiler);
    if (seen.has(plain)) return [];
    seen.add(plain);
    if (compiler.isObjectLiteralExpression(plain)) return [plain];
    if (compiler.isConditionalExpression(plain))
      return [plain.whenTrue, plain.whenFalse].flatMap((each) => this.#objectsOf(each, seen));
    if (compiler.isCallExpression(plain)) {
      this.#choices.functionsOf(plain);
      const called = resolveFunction(plain.expression, this.#program);
      return called === undefined ? [] : objectsReturnedBy(called);
    }
    const declaration = compiler.isIdentifier(plain) ? this.#program.declarationOf(plain) : undefined;
    const constant = declaration === undefined ? undefined : constantOf(declaration);
    return constant === undefined ? [] : this.#objectsOf(constant, seen);
  }

  // `{ namespace }` refers to the variable `namespace`.
  #valueOf(property: ts.ObjectLiteralElementLike): ts.Expression[] {
    if (compiler.isPropertyAssignment(property)) return [property.initializer];
    return compiler.isShorthandPropertyAssignment(property) ? [property.name] : [];
  }
}

// Decides whether a value derives from a field that the author of a primary sets.
//
// Follows constants, destructuring, loops, callbacks, and project functions that are called by name. The result of a library function derives from
// all of its arguments. A choice between constants, such as `spec.isLarge ? "a" : "b"`, does not count.

const { SyntaxKind } = compiler;

/** Fields of a primary that its author cannot choose freely: the namespace is one in which they are allowed to create the primary. */
const GIVEN: ReadonlySet<string> = new Set(["apiVersion", "kind", "metadata.namespace", "metadata.uid"]);

const COMPARISONS: ReadonlySet<ts.SyntaxKind> = new Set([
  SyntaxKind.EqualsEqualsToken,
  SyntaxKind.EqualsEqualsEqualsToken,
  SyntaxKind.ExclamationEqualsToken,
  SyntaxKind.ExclamationEqualsEqualsToken,
  SyntaxKind.LessThanToken,
  SyntaxKind.LessThanEqualsToken,
  SyntaxKind.GreaterThanToken,
  SyntaxKind.GreaterThanEqualsToken,
  SyntaxKind.InKeyword,
  SyntaxKind.InstanceOfKeyword,
]);

/** Follows values of the primary through one function that the runtime calls. */
class PrimaryChoices {
  readonly #program: SourceProgram;
  readonly #entry: ts.ParameterDeclaration | undefined;
  /** Arguments of project functions, by parameter. */
  readonly #given = new Map<ts.Declaration, Set<ts.Expression>>();
  /** Nodes that are being evaluated, to stop at cycles. */
  readonly #open = new Set<ts.Node>();

  constructor(entry: FunctionNode, program: SourceProgram) {
    this.#program = program;
    this.#entry = entry.parameters[0];
  }

  /** Returns the project functions that a call runs: the called function, and callbacks such as the argument of `map`. */
  functionsOf(call: ts.CallExpression): FunctionNode[] {
    const called = resolveFunction(call.expression, this.#program);
    called?.parameters.forEach((parameter, index) => {
      const given = parameter.dotDotDotToken === undefined ? call.arguments.slice(index, index + 1) : call.arguments;
      this.#note(parameter, given);
    });
    const callee = unwrap(call.expression, compiler);
    const object = compiler.isPropertyAccessExpression(callee) ? [callee.expression] : [];
    const callbacks = call.arguments.flatMap((argument) => resolveFunction(argument, this.#program) ?? []);
    const values = call.arguments.filter((argument) => resolveFunction(argument, this.#program) === undefined);
    for (const callback of callbacks)
      for (const parameter of callback.parameters) this.#note(parameter, [...object, ...values]);
    return called === undefined ? callbacks : [called, ...callbacks];
  }

  /** Returns whether the value of an expression derives from a field that the author of the primary sets. */
  decide(node: ts.Node): boolean {
    if (compiler.isTypeNode(node)) return false;
    const plain = compiler.isExpression(node) ? unwrap(node, compiler) : node;
    const path = compiler.isExpression(plain) ? this.#pathOf(plain) : undefined;
    if (path !== undefined) return isChosen(path);
    if (isFunctionNode(plain)) return this.#once(plain, () => returnsOf(plain).some((result) => this.decide(result)));
    if (compiler.isIdentifier(plain)) return this.#decideName(plain);
    if (compiler.isPropertyAccessExpression(plain) || compiler.isElementAccessExpression(plain))
      return this.decide(plain.expression);
    if (compiler.isConditionalExpression(plain)) return this.decide(plain.whenTrue) || this.decide(plain.whenFalse);
    if (compiler.isBinaryExpression(plain) && COMPARISONS.has(plain.operatorToken.kind)) return false;
    if (compiler.isShorthandPropertyAssignment(plain)) return this.#decideName(plain.name);
    if (compiler.isPropertyAssignment(plain)) return this.decide(plain.initializer);
    if (compiler.isCallExpression(plain)) return this.#decideCall(plain);
    return compiler.forEachChild(plain, (child) => this.decide(child) || undefined) ?? false;
  }

  #decideCall(call: ts.CallExpression): boolean {
    const called = resolveFunction(call.expression, this.#program);
    const functions = this.functionsOf(call);
    if (called !== undefined) return this.decide(called);
    const { expression } = call;
    const object = compiler.isPropertyAccessExpression(expression) ? [expression.expression] : [];
    return [...object, ...call.arguments, ...functions].some((each) => this.decide(each));
  }

  #decideName(name: ts.Identifier): boolean {
    const declaration = this.#program.declarationOf(name);
    return declaration !== undefined && this.#decideDeclaration(declaration);
  }

  #decideDeclaration(declaration: ts.Declaration): boolean {
    return this.#once(declaration, () => {
      if (compiler.isBindingElement(declaration)) {
        const path = this.#pathOfDeclaration(declaration);
        const { initializer } = declaration;
        if (initializer !== undefined && this.decide(initializer)) return true;
        return path === undefined ? this.#decideDeclaration(declaration.parent.parent) : isChosen(path);
      }
      if (compiler.isParameter(declaration))
        return [...(this.#given.get(declaration) ?? [])].some((given) => this.decide(given));
      if (!compiler.isVariableDeclaration(declaration)) return false;
      if (declaration.initializer !== undefined) return this.decide(declaration.initializer);
      const loop = declaration.parent.parent;
      return compiler.isForOfStatement(loop) && this.decide(loop.expression);
    });
  }

  /** Returns the path of a value in the first argument of the function that the runtime calls. */
  #pathOf(expression: ts.Expression): readonly string[] | undefined {
    const plain = unwrap(expression, compiler);
    if (compiler.isIdentifier(plain)) {
      const declaration = this.#program.declarationOf(plain);
      return declaration === undefined ? undefined : this.#pathOfDeclaration(declaration);
    }
    if (compiler.isPropertyAccessExpression(plain)) return this.#pathIn(plain.expression, plain.name.text);
    if (!compiler.isElementAccessExpression(plain) || !compiler.isStringLiteralLike(plain.argumentExpression))
      return undefined;
    return this.#pathIn(plain.expression, plain.argumentExpression.text);
  }

  #pathIn(object: ts.Expression, name: string): readonly string[] | undefined {
    const path = this.#pathOf(object);
    return path === undefined ? undefined : [...path, name];
  }

  #pathOfDeclaration(declaration: ts.Declaration): readonly string[] | undefined {
    if (declaration === this.#entry) return [];
    if (compiler.isBindingElement(declaration)) {
      const { name, propertyName = name, parent, dotDotDotToken } = declaration;
      const whole = this.#pathOfDeclaration(parent.parent);
      const isPlain = compiler.isObjectBindingPattern(parent) && compiler.isIdentifier(propertyName);
      if (whole === undefined || !isPlain) return undefined;
      return dotDotDotToken === undefined ? [...whole, propertyName.text] : whole;
    }
    const given = compiler.isParameter(declaration) ? [...(this.#given.get(declaration) ?? [])] : [];
    const [value] = compiler.isVariableDeclaration(declaration) ? [declaration.initializer] : given;
    if (value === undefined || given.length > 1 || this.#open.has(value)) return undefined;
    this.#open.add(value);
    const path = this.#pathOf(value);
    this.#open.delete(value);
    return path;
  }

  #note(parameter: ts.ParameterDeclaration, given: readonly ts.Expression[]): void {
    const known = this.#given.get(parameter) ?? new Set();
    for (const each of given) known.add(each);
    this.#given.set(parameter, known);
  }

  #once(node: ts.Node, decide: () => boolean): boolean {
    if (this.#open.has(node)) return false;
    this.#open.add(node);
    const decided = decide();
    this.#open.delete(node);
    return decided;
  }
}

function isChosen([argument, ...path]: readonly string[]): boolean {
  if (argument === undefined) return true;
  return argument === "primary" && !GIVEN.has(path.slice(0, 1).join(".")) && !GIVEN.has(path.slice(0, 2).join("."));
}

/** Returns the expressions that a function returns, excluding nested functions. */
function returnsOf({ body }: FunctionNode): ts.Expression[] {
  if (body === undefined) return [];
  return compiler.isBlock(body) ? returnedIn(body) : [body];
}

function returnedIn(node: ts.Node): ts.Expression[] {
  if (isFunctionNode(node)) return [];
  if (compiler.isReturnStatement(node)) return node.expression === undefined ? [] : [node.expression];
  const found: ts.Expression[] = [];
  compiler.forEachChild(node, (child) => {
    found.push(...returnedIn(child));
  });
  return found;
}
