// Generated code declares, and the runtime acts: a generated file has imports, types, classes and constants, and its only expressions are
// literals, names, and calls of the runtime that define something. Conditions and filters of a spec are the user's own expressions.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type ts from "typescript";
import { loadLibrary } from "#generator/model/typescript.js";
import { emitResources } from "#generator/emit/emit-project.js";
import { generateKinds } from "../support/projects/kinds.js";
import { repositoryRoot } from "../support/repository.js";
import { resourcesOfCrds } from "../support/runtime/resource-models.js";
import { listSamples } from "../support/projects/samples.js";
import { assert, suite } from "../support/suite.js";

const compiler = loadLibrary("typescript");
const { SyntaxKind } = compiler;

interface TextFile {
  readonly path: string;
  readonly content: string;
}

suite("generated code", (test) => {
  test("contains only declarations in the samples", () => {
    const files = listSamples().flatMap(({ name, folder }) => filesIn(join(folder, "src/generated"), name));
    assert.ok(files.length > 30);
    assert.equal(files.flatMap(actionsIn), []);
  });

  test("contains only declarations for the built-in kinds", async () => {
    assert.equal((await generateKinds()).flatMap(actionsIn), []);
  });

  test("contains only declarations for hostile CRDs", () => {
    const folder = join(repositoryRoot, "fixtures/crds/hostile");
    for (const file of readdirSync(folder)) {
      const files = emitResources(resourcesOfCrds(readFileSync(join(folder, file), "utf8")));
      assert.ok(files.length > 1);
      assert.equal(files.flatMap(actionsIn), []);
    }
  });

  test("is reported for each statement that is not a declaration", () => {
    const acting = [
      "evil();",
      "let a = 1;",
      "export const a = evil();",
      "export const a = b ? 1 : 2;",
      "export const a = `${b}`;",
      "export const a = defineResource({ b: evil() });",
      "export const a = defineResource({ [b]: 1 });",
      "export const a = defineResource({ ...b });",
      "export const a = defineResource({ b() {} });",
      "export const a = defineController({ name: () => [] });",
      "export class A { b = 1; }",
      "export class A { static b() { return evil(); } }",
      "export class A { static create(object: B): A { if (object) return object; return object; } }",
      "export class A extends B {}",
      "export default 1;",
      "function a() {}",
      "if (a) b;",
      'import "evil";',
    ];
    for (const content of acting) assert.is(actionsIn({ path: "a.ts", content }).length, 1, content);
  });
});

function filesIn(folder: string, name: string): TextFile[] {
  const paths = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((path) => path.endsWith(".ts"));
  return paths.map((path) => ({ path: `${name}/${path}`, content: readFileSync(join(folder, path), "utf8") }));
}

/** Returns what in a file is no declaration, each with its place. */
function actionsIn({ path, content }: TextFile): string[] {
  const file = compiler.createSourceFile(path, content, compiler.ScriptTarget.Latest, true);
  return file.statements.flatMap((statement) => {
    const found = actionIn(statement);
    if (found === undefined) return [];
    return [
      `${path}:${file.getLineAndCharacterOfPosition(found.getStart()).line + 1}: ${found.getText().slice(0, 80)}`,
    ];
  });
}

/** Returns what in a statement is no declaration; undefined if it is one. */
function actionIn(statement: ts.Statement): ts.Node | undefined {
  if (compiler.isImportDeclaration(statement)) return statement.importClause === undefined ? statement : undefined;
  if (compiler.isExportDeclaration(statement)) return undefined;
  if (compiler.isInterfaceDeclaration(statement) || compiler.isTypeAliasDeclaration(statement)) return undefined;
  if (compiler.isClassDeclaration(statement)) return actionInClass(statement);
  if (!compiler.isVariableStatement(statement)) return statement;
  const { flags, declarations } = statement.declarationList;
  if ((flags & compiler.NodeFlags.Const) === 0) return statement;
  return first(declarations, ({ initializer }) => (initializer === undefined ? statement : actionOf(initializer)));
}

function actionInClass(declaration: ts.ClassDeclaration): ts.Node | undefined {
  if (declaration.heritageClauses !== undefined) return declaration;
  return first(declaration.members, (member) => {
    const kinds = new Set(
      compiler.canHaveModifiers(member) ? compiler.getModifiers(member)?.map(({ kind }) => kind) : [],
    );
    if (compiler.isPropertyDeclaration(member)) {
      if (kinds.has(SyntaxKind.DeclareKeyword)) return undefined;
      const isConstant = kinds.has(SyntaxKind.StaticKeyword) && kinds.has(SyntaxKind.ReadonlyKeyword);
      return isConstant && member.initializer !== undefined ? actionOf(member.initializer) : member;
    }
    if (!compiler.isMethodDeclaration(member) || !kinds.has(SyntaxKind.StaticKeyword)) return member;
    const [only, ...more] = member.body?.statements ?? [];
    if (only === undefined || more.length > 0 || !compiler.isReturnStatement(only)) return member;
    return only.expression === undefined ? member : actionOf(only.expression);
  });
}

/** What may be called: functions of the runtime that define or describe. */
const DEFINING =
  /^(define|create|is|parse|untyped)[A-Z]\w*$|^by(Annotation|Label|OwnerReference)$|Source$|^(conditionIs|fieldEquals|guarded)$/;

/** The fields whose functions are expressions of a spec. */
const EXPRESSIONS = /^((activation|reconcilePre|readyPost|deletePost)[cC]ondition|on(Add|Update|Delete)|generic)$/;

function actionOf(expression: ts.Expression): ts.Node | undefined {
  if (compiler.isStringLiteral(expression) || compiler.isNumericLiteral(expression)) return undefined;
  if (compiler.isIdentifier(expression)) return undefined;
  if (LITERALS.has(expression.kind)) return undefined;
  if (compiler.isPropertyAccessExpression(expression)) return actionOf(expression.expression);
  if (compiler.isAsExpression(expression)) return actionOf(expression.expression);
  if (compiler.isPrefixUnaryExpression(expression))
    return expression.operator === SyntaxKind.MinusToken ? actionOf(expression.operand) : expression;
  if (compiler.isArrayLiteralExpression(expression)) return first(expression.elements, actionOf);
  if (compiler.isObjectLiteralExpression(expression)) return first(expression.properties, actionInProperty);
  if (compiler.isCallExpression(expression)) return actionInCall(expression);
  return expression;
}

const LITERALS: ReadonlySet<ts.SyntaxKind> = new Set([
  SyntaxKind.TrueKeyword,
  SyntaxKind.FalseKeyword,
  SyntaxKind.NullKeyword,
]);

function actionInProperty(property: ts.ObjectLiteralElementLike): ts.Node | undefined {
  if (compiler.isShorthandPropertyAssignment(property)) return undefined;
  if (!compiler.isPropertyAssignment(property)) return property;
  const { name, initializer } = property;
  if (compiler.isComputedPropertyName(name) && !compiler.isStringLiteral(name.expression)) return property;
  if (!compiler.isArrowFunction(initializer)) return actionOf(initializer);
  if (EXPRESSIONS.test(name.getText()) || isPartOfReference(property)) return undefined;
  const { body } = initializer;
  return name.getText() === "eventSources" && compiler.isArrayLiteralExpression(body) ? actionOf(body) : property;
}

// ref: { name: ({ primary }) => …, namespace: ({ primary }) => … }
function isPartOfReference({ name, parent: { parent: around } }: ts.PropertyAssignment): boolean {
  const isOfReference = compiler.isPropertyAssignment(around) && around.name.getText() === "ref";
  return isOfReference && /^name(space)?$/.test(name.getText());
}

function actionInCall({ expression, arguments: args }: ts.CallExpression): ts.Node | undefined {
  if (compiler.isIdentifier(expression)) return DEFINING.test(expression.text) ? first(args, actionOf) : expression;
  // A link of the chain that declares a workflow.
  const isLink =
    compiler.isPropertyAccessExpression(expression) && /^(dependent|reference|external)$/.test(expression.name.text);
  return isLink ? (actionOf(expression.expression) ?? first(args, actionOf)) : expression;
}

function first<T>(items: readonly T[], find: (item: T) => ts.Node | undefined): ts.Node | undefined {
  for (const item of items) {
    const found = find(item);
    if (found !== undefined) return found;
  }
  return undefined;
}
