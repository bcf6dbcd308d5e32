import type ts from "typescript";
import type { ExpressionName } from "./project-model.js";
import { loadLibrary, unwrap } from "./typescript.js";

/** A valid expression of a spec, which is safe in generated code, or a problem with its offset in the text. */
export type ParsedExpression =
  | {
      readonly kind: "expression";
      readonly names: readonly ExpressionName[];
      /** Offset of the first use of each name. */
      readonly offsets: readonly (readonly [ExpressionName, number])[];
      /** Properties of the primary that follow if the expression is true. */
      readonly proves: readonly ProvenField[];
    }
  | { readonly kind: "problem"; readonly message: string; readonly offset: number };

/** Parses a `when:` expression. `names` are the names that it may use. Default: those of conditions */
export type ParseExpression = (text: string, names?: readonly ExpressionName[]) => ParsedExpression;

/** Names that a condition may use. */
export const CONDITION_NAMES: readonly ExpressionName[] = ["primary", "secondary", "context", "live", "item"];

/** Maximum number of tokens in an expression. The compiler is recursive, and its stack overflows after about twice as many. */
const MAX_TOKENS = 500;

/** Returns the offset at which an expression exceeds the maximum length; undefined if it does not. */
function excessOf(text: string): number | undefined {
  const compiler = loadLibrary("typescript");
  const scanner = compiler.createScanner(compiler.ScriptTarget.ES2022, true, compiler.LanguageVariant.Standard, text);
  for (let count = 0; scanner.scan() !== compiler.SyntaxKind.EndOfFileToken; count += 1)
    if (count === MAX_TOKENS) return scanner.getTokenStart();
  return undefined;
}

/**
 * Parses a text as exactly one expression without side effects.
 *
 * Generated code contains the text in parentheses, so anything that could close them, or that is more than an expression, is rejected.
 */
export function parseExpression(text: string, names: readonly ExpressionName[] = CONDITION_NAMES): ParsedExpression {
  // Load the compiler only if necessary, because it is slow.
  const compiler = loadLibrary("typescript");
  const head = "(\n";
  const excess = excessOf(text);
  if (excess !== undefined) {
    const message = `an expression cannot have more than ${MAX_TOKENS} tokens; use function: instead of when:`;
    return { kind: "problem", message, offset: excess };
  }
  const source = compiler.createSourceFile("when.ts", `${head}${text}\n)`, compiler.ScriptTarget.ES2022, true);
  const problem = (offset: number, message: string): ParsedExpression => ({
    kind: "problem",
    message,
    offset: Math.min(Math.max(offset - head.length, 0), text.length),
  });
  const [syntaxError] = (source as unknown as { parseDiagnostics: readonly ts.DiagnosticWithLocation[] })
    .parseDiagnostics;
  const [statement, second] = source.statements;
  const root = expressionOf(statement, source, compiler);
  if (root === undefined || second !== undefined) {
    if (syntaxError !== undefined) return problem(syntaxError.start, messageOf(syntaxError, compiler));
    return problem(second?.getStart(source) ?? head.length, "must be a single expression");
  }
  if (syntaxError !== undefined) return problem(syntaxError.start, messageOf(syntaxError, compiler));
  // These separators end lines, and the generator escapes them, which is only valid in string literals.
  const separator = /[\u2028\u2029]/.exec(text);
  if (separator !== null)
    return problem(separator.index + head.length, "an expression cannot contain line or paragraph separators");
  const direction = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/.exec(text);
  if (direction !== null)
    return problem(
      direction.index + head.length,
      "an expression cannot contain invisible characters that change the text direction",
    );
  const directive = /@ts-(?:ignore|expect-error|nocheck|check)/.exec(text);
  if (directive !== null) return problem(directive.index + head.length, `an expression cannot contain ${directive[0]}`);
  const forbidden = findForbidden(root, compiler);
  if (forbidden !== undefined)
    return problem(forbidden.node.getStart(source), `an expression cannot ${forbidden.what}`);
  const free = freeNames(root, compiler);
  const used = names.filter((name) => free.has(name));
  const offsets = used.map((name) => [name, free.get(name)!.getStart(source) - head.length] as const);
  return { kind: "expression", names: used, offsets, proves: provenFieldsOf(root, compiler) };
}

// The parentheses around the text must enclose a single expression that spans all of it.
function expressionOf(statement: ts.Statement | undefined, source: ts.SourceFile, compiler: typeof ts) {
  if (statement === undefined || !compiler.isExpressionStatement(statement)) return undefined;
  const { expression } = statement;
  if (!compiler.isParenthesizedExpression(expression) || expression.getEnd() !== source.text.length) return undefined;
  return expression.expression;
}

function messageOf({ messageText }: ts.Diagnostic, compiler: typeof ts): string {
  return compiler.flattenDiagnosticMessageText(messageText, "\n");
}

interface Forbidden {
  readonly node: ts.Node;
  readonly what: string;
}

function findForbidden(node: ts.Node, compiler: typeof ts): Forbidden | undefined {
  const what = forbiddenUse(node, compiler);
  if (what !== undefined) return { node, what };
  return compiler.forEachChild(node, (child) => findForbidden(child, compiler));
}

function forbiddenUse(node: ts.Node, compiler: typeof ts): string | undefined {
  const { SyntaxKind } = compiler;
  if (compiler.isBinaryExpression(node)) {
    const operator = node.operatorToken.kind;
    if (operator >= SyntaxKind.FirstAssignment && operator <= SyntaxKind.LastAssignment)
      return "assign; compare with ===";
    return operator === SyntaxKind.CommaToken ? "use the comma operator; join conditions with && or ||" : undefined;
  }
  if (compiler.isPrefixUnaryExpression(node) || compiler.isPostfixUnaryExpression(node)) {
    const isChange = node.operator === SyntaxKind.PlusPlusToken || node.operator === SyntaxKind.MinusMinusToken;
    return isChange ? "change a value" : undefined;
  }
  if (compiler.isBlock(node)) return "contain statements; use function: instead of when:";
  if (compiler.isIdentifier(node) && node.text === "arguments") return "use arguments";
  switch (node.kind) {
    case SyntaxKind.AwaitExpression:
      return "await; use function: instead of when:";
    case SyntaxKind.DeleteExpression:
      return "delete";
    case SyntaxKind.YieldExpression:
      return "yield";
    case SyntaxKind.FunctionExpression:
    case SyntaxKind.ClassExpression:
      return "define functions or classes; use function: instead of when:";
    case SyntaxKind.ImportKeyword:
    case SyntaxKind.ImportType:
    case SyntaxKind.MetaProperty:
      return "import; use function: instead of when:";
    case SyntaxKind.ThisKeyword:
      return "use this";
    default:
      return undefined;
  }
}

/** Returns the first use of each free identifier of an expression, by name. */
function freeNames(root: ts.Node, compiler: typeof ts): ReadonlyMap<string, ts.Identifier> {
  const free = new Map<string, ts.Identifier>();
  const visit = (node: ts.Node, bound: ReadonlySet<string>): void => {
    if (compiler.isIdentifier(node)) {
      const isFree = !bound.has(node.text) && isReference(node, compiler);
      if (isFree && !free.has(node.text)) free.set(node.text, node);
      return;
    }
    const inside = compiler.isArrowFunction(node)
      ? new Set([...bound, ...node.parameters.flatMap(({ name }) => boundNames(name, compiler))])
      : bound;
    compiler.forEachChild(node, (child) => visit(child, inside));
  };
  visit(root, new Set());
  return free;
}

function boundNames(name: ts.BindingName, compiler: typeof ts): string[] {
  if (compiler.isIdentifier(name)) return [name.text];
  return name.elements.flatMap((element) =>
    compiler.isOmittedExpression(element) ? [] : boundNames(element.name, compiler),
  );
}

function isReference(node: ts.Identifier, compiler: typeof ts): boolean {
  const { parent } = node;
  if (compiler.isPropertyAccessExpression(parent)) return parent.name !== node;
  if (compiler.isPropertyAssignment(parent) || compiler.isBindingElement(parent)) return parent.initializer === node;
  return true;
}

/** The constant value of an expression. */
interface Constant {
  readonly value: unknown;
}

type Operation = (left: never, right: never) => unknown;

const OPERATIONS: ReadonlyMap<string, Operation> = new Map<string, Operation>([
  ["===", (left, right) => left === right],
  ["!==", (left, right) => left !== right],
  ["==", (left, right) => left == right],
  ["!=", (left, right) => left != right],
  ["<", (left, right) => left < right],
  ["<=", (left, right) => left <= right],
  [">", (left, right) => left > right],
  [">=", (left, right) => left >= right],
]);

/**
 * Returns the value of a constant expression; undefined if it is not constant. The references in `absent`, such as `live` or `secondary.web`,
 * evaluate to undefined.
 */
export function constantValueOf(text: string, absent: ReadonlySet<string> = new Set()): Constant | undefined {
  if (excessOf(text) !== undefined) return undefined;
  const compiler = loadLibrary("typescript");
  const source = compiler.createSourceFile("when.ts", `(\n${text}\n)`, compiler.ScriptTarget.ES2022);
  const [statement] = source.statements;
  if (statement === undefined || !compiler.isExpressionStatement(statement)) return undefined;
  return evaluate(statement.expression, { compiler, source, absent });
}

interface Surroundings {
  readonly compiler: typeof ts;
  readonly source: ts.SourceFile;
  readonly absent: ReadonlySet<string>;
}

function evaluate(node: ts.Expression, around: Surroundings): Constant | undefined {
  const { compiler } = around;
  if (compiler.isParenthesizedExpression(node) || compiler.isAsExpression(node) || compiler.isNonNullExpression(node))
    return evaluate(node.expression, around);
  if (compiler.isStringLiteralLike(node)) return { value: node.text };
  if (compiler.isNumericLiteral(node)) return { value: Number(node.text) };
  if (compiler.isIdentifier(node))
    return node.text === "undefined" || around.absent.has(node.text) ? { value: undefined } : undefined;
  if (compiler.isPrefixUnaryExpression(node)) return evaluateNot(node, around);
  if (compiler.isBinaryExpression(node)) return evaluateBinary(node, around);
  if (compiler.isConditionalExpression(node)) return evaluateChoice(node, around);
  if (compiler.isPropertyAccessExpression(node) || compiler.isElementAccessExpression(node))
    return evaluateField(node, around);
  const { TrueKeyword, FalseKeyword, NullKeyword } = compiler.SyntaxKind;
  if (node.kind === NullKeyword) return { value: null };
  return node.kind === TrueKeyword || node.kind === FalseKeyword ? { value: node.kind === TrueKeyword } : undefined;
}

function evaluateNot({ operator, operand }: ts.PrefixUnaryExpression, around: Surroundings): Constant | undefined {
  if (operator !== around.compiler.SyntaxKind.ExclamationToken) return undefined;
  const constant = evaluate(operand, around);
  return constant === undefined ? undefined : { value: !constant.value };
}

function evaluateBinary({ left, right, operatorToken }: ts.BinaryExpression, around: Surroundings) {
  const operator = operatorToken.getText(around.source);
  const [first, second] = [evaluate(left, around), evaluate(right, around)];
  // Only the truthiness of a condition matters, so either operand can decide it.
  if (operator === "&&") return decided(first, second, false);
  if (operator === "||") return decided(first, second, true);
  if (operator === "??") return first === undefined || first.value != null ? first : second;
  const operation = OPERATIONS.get(operator);
  if (operation === undefined || first === undefined || second === undefined) return undefined;
  return { value: operation(first.value as never, second.value as never) };
}

function decided(first: Constant | undefined, second: Constant | undefined, by: boolean): Constant | undefined {
  const isDecided = [first, second].some((constant) => constant !== undefined && Boolean(constant.value) === by);
  if (isDecided) return { value: by };
  return first === undefined || second === undefined ? undefined : { value: !by };
}

function evaluateChoice({ condition, whenTrue, whenFalse }: ts.ConditionalExpression, around: Surroundings) {
  const constant = evaluate(condition, around);
  if (constant !== undefined) return evaluate(constant.value ? whenTrue : whenFalse, around);
  const [first, second] = [evaluate(whenTrue, around), evaluate(whenFalse, around)];
  return first !== undefined && second !== undefined && first.value === second.value ? first : undefined;
}

function evaluateField(
  node: ts.PropertyAccessExpression | ts.ElementAccessExpression,
  around: Surroundings,
): Constant | undefined {
  const { compiler, absent } = around;
  const field = compiler.isPropertyAccessExpression(node) ? node.name : node.argumentExpression;
  const name = compiler.isIdentifier(field) || compiler.isStringLiteralLike(field) ? field.text : undefined;
  const { expression } = node;
  const isSecondary = compiler.isIdentifier(expression) && expression.text === "secondary";
  if (isSecondary) return name !== undefined && absent.has(`secondary.${name}`) ? { value: undefined } : undefined;
  // An optional chain on undefined evaluates to undefined. Without `?.` it throws, so there is no value.
  const isOptional = (node.flags & compiler.NodeFlags.OptionalChain) !== 0;
  const object = isOptional ? evaluate(expression, around) : undefined;
  return object !== undefined && object.value == null ? { value: undefined } : undefined;
}

/** A property of a field of the primary that follows if an expression is true. */
export interface ProvenField {
  /** Path from the primary, for example `["spec", "backup"]`. */
  readonly path: readonly string[];
  /** Values that are excluded; `falsy` stands for all falsy values. */
  readonly without?: readonly ("undefined" | "null" | "falsy")[];
  /** Value of the field. */
  readonly equals?: string | number | boolean;
}

/**
 * Returns the properties of the primary that follow if an expression is true: from comparisons with undefined, null, and literals, from truthy
 * fields, and from several of these joined with `&&`. Negations and `||` prove nothing.
 */
function provenFieldsOf(root: ts.Expression, compiler: typeof ts): ProvenField[] {
  const { SyntaxKind } = compiler;
  const expression = unwrap(root, compiler);
  if (compiler.isBinaryExpression(expression)) {
    const { left, right, operatorToken } = expression;
    if (operatorToken.kind === SyntaxKind.AmpersandAmpersandToken)
      return [...provenFieldsOf(left, compiler), ...provenFieldsOf(right, compiler)];
    if (operatorToken.kind === SyntaxKind.QuestionQuestionToken)
      return literalOf(right, compiler)?.value === false ? provenFieldsOf(left, compiler) : [];
    return [
      ...provenByComparison(left, operatorToken.kind, literalOf(right, compiler), compiler),
      ...provenByComparison(right, operatorToken.kind, literalOf(left, compiler), compiler),
    ];
  }
  const doubted = negatedOf(expression, compiler);
  if (doubted !== undefined) {
    const twice = negatedOf(unwrap(doubted, compiler), compiler);
    return twice === undefined ? [] : provenFieldsOf(twice, compiler);
  }
  if (isBooleanCall(expression, compiler)) return provenFieldsOf(expression.arguments[0]!, compiler);
  return proven(expression, { without: ["falsy"] }, compiler);
}

/** The value of a literal. */
interface Literal {
  readonly value: string | number | boolean | null | undefined;
}

type Proof = Omit<ProvenField, "path">;

function provenByComparison(
  field: ts.Expression,
  operator: ts.SyntaxKind,
  literal: Literal | undefined,
  compiler: typeof ts,
): ProvenField[] {
  if (literal === undefined) return [];
  const { SyntaxKind } = compiler;
  const { value } = literal;
  if (operator === SyntaxKind.EqualsEqualsEqualsToken)
    return value == null ? [] : proven(field, { equals: value }, compiler);
  if (value != null) return [];
  if (operator === SyntaxKind.ExclamationEqualsToken)
    return proven(field, { without: ["undefined", "null"] }, compiler);
  if (operator !== SyntaxKind.ExclamationEqualsEqualsToken) return [];
  return proven(field, { without: [value === null ? "null" : "undefined"] }, compiler);
}

function proven(expression: ts.Expression, proof: Proof, compiler: typeof ts): ProvenField[] {
  const access = accessOf(expression, compiler);
  if (access === undefined || access.path.length === 0) return [];
  const { path, isWhole } = access;
  if (isWhole) return [{ path, ...proof }];
  // A value read from the field, or returned by its method, implies that the field is present.
  const isThere = proof.equals !== undefined || proof.without?.some((each) => each !== "null") === true;
  return isThere ? [{ path, without: ["undefined", "null"] }] : [];
}

interface Access {
  readonly path: readonly string[];
  /** True if the path is that of the value itself, not of an object from which the value is derived. */
  readonly isWhole: boolean;
}

/** Returns the field of the primary that an expression reads; undefined for other expressions. */
function accessOf(node: ts.Expression, compiler: typeof ts): Access | undefined {
  const expression = unwrap(node, compiler);
  if (compiler.isIdentifier(expression)) return expression.text === "primary" ? { path: [], isWhole: true } : undefined;
  if (compiler.isCallExpression(expression)) {
    const callee = unwrap(expression.expression, compiler);
    return isAccess(callee, compiler) ? partOf(callee.expression, undefined, compiler) : undefined;
  }
  if (!isAccess(expression, compiler)) return undefined;
  return partOf(expression.expression, nameIn(expression, compiler), compiler);
}

// Without a name, the value is derived from the object in another way, for example as an item.
function partOf(node: ts.Expression, name: string | undefined, compiler: typeof ts): Access | undefined {
  const object = accessOf(node, compiler);
  if (object === undefined) return undefined;
  const { path, isWhole } = object;
  return isWhole && name !== undefined ? { path: [...path, name], isWhole } : { path, isWhole: false };
}

function isAccess(
  node: ts.Expression,
  compiler: typeof ts,
): node is ts.PropertyAccessExpression | ts.ElementAccessExpression {
  return compiler.isPropertyAccessExpression(node) || compiler.isElementAccessExpression(node);
}

function nameIn(
  access: ts.PropertyAccessExpression | ts.ElementAccessExpression,
  compiler: typeof ts,
): string | undefined {
  if (compiler.isPropertyAccessExpression(access)) return access.name.text;
  const { argumentExpression } = access;
  return compiler.isStringLiteralLike(argumentExpression) ? argumentExpression.text : undefined;
}

function negatedOf(node: ts.Expression, compiler: typeof ts): ts.Expression | undefined {
  const isNegated = compiler.isPrefixUnaryExpression(node) && node.operator === compiler.SyntaxKind.ExclamationToken;
  return isNegated ? node.operand : undefined;
}

function isBooleanCall(node: ts.Expression, compiler: typeof ts): node is ts.CallExpression {
  if (!compiler.isCallExpression(node) || node.arguments.length !== 1) return false;
  const { expression } = node;
  return compiler.isIdentifier(expression) && expression.text === "Boolean";
}

function literalOf(node: ts.Expression, compiler: typeof ts): Literal | undefined {
  const { SyntaxKind } = compiler;
  const expression = unwrap(node, compiler);
  if (compiler.isStringLiteralLike(expression)) return { value: expression.text };
  if (compiler.isNumericLiteral(expression)) return numberOf(Number(expression.text));
  if (compiler.isPrefixUnaryExpression(expression) && expression.operator === SyntaxKind.MinusToken) {
    const { operand } = expression;
    return compiler.isNumericLiteral(operand) ? numberOf(-Number(operand.text)) : undefined;
  }
  if (compiler.isIdentifier(expression)) return expression.text === "undefined" ? { value: undefined } : undefined;
  if (expression.kind === SyntaxKind.NullKeyword) return { value: null };
  const isTrue = expression.kind === SyntaxKind.TrueKeyword;
  return isTrue || expression.kind === SyntaxKind.FalseKeyword ? { value: isTrue } : undefined;
}

// Infinity has no literal.
function numberOf(value: number): Literal | undefined {
  return Number.isFinite(value) ? { value } : undefined;
}
