import { readFileSync } from "node:fs";
import { join } from "node:path";
import type ts from "typescript";
import { loadLibrary } from "#generator/model/expression/library.js";
import { repositoryRoot } from "../support/repository.js";
import { assert, suite } from "../support/suite.js";
import { findPages, readPackageSources, type SourceFile } from "./source-files.js";

const compiler = loadLibrary("typescript");

/** Verbs that say nothing about what a function does. */
const BANNED_VERBS = /^(handle|process|manage|do)([A-Z]|$)/;

suite("exported names", (test) => {
  const sources = readPackageSources();

  test("every exported name has a sentence that says what it is", () => {
    const missing = sources.flatMap((source) =>
      exportsOf(source)
        .filter(({ sentence }) => sentence === "")
        .map(({ line, name }) => `${source.path}:${line}: ${name} has no doc sentence`),
    );
    assert.equal(missing, []);
  });

  test("no function is named after a verb that says nothing", () => {
    const violations = sources.flatMap((source) =>
      functionsOf(source)
        .filter(({ name }) => BANNED_VERBS.test(name))
        .map(({ line, name }) => `${source.path}:${line}: ${name}`),
    );
    assert.equal(violations, []);
  });

  test("a default is stated as `Default: …`", () => {
    const pages = [...findPages(), "test/FEATURES.md"].map((path) => ({
      path,
      text: readFileSync(join(repositoryRoot, path), "utf8"),
    }));
    const other =
      /unless (given|stated|(said|told) otherwise|(one|another one) is (given|stated))|which is the default/;
    const violations = [...sources, ...pages].flatMap(({ path, text }) =>
      text.split("\n").flatMap((line, index) => (other.test(line) ? [`${path}:${index + 1}: ${line.trim()}`] : [])),
    );
    assert.equal(violations, []);
  });

  test("an option that a user of the runtime states is no question", () => {
    const exportsOfRoot = sources
      .find(({ path }) => path === "runtime/src/index.ts")!
      .text.matchAll(/\{([^}]*)\} from "\.\/([^"]+)\.js"/g);
    const open = [...exportsOfRoot].flatMap(([, names = "", file]) =>
      (names.match(/\w+(Options|Settings|Facts|Request)\b/g) ?? []).map((name) => `runtime/src/${file}.ts ${name}`),
    );
    const questions = sources
      .filter(({ path }) => path.startsWith("runtime/"))
      .flatMap(({ path, syntax }) =>
        syntax.statements
          .filter((each) => compiler.isInterfaceDeclaration(each) && open.includes(`${path} ${each.name.text}`))
          .flatMap((statement) => (statement as ts.InterfaceDeclaration).members)
          .filter(
            (member) => compiler.isPropertySignature(member) && member.type?.getText(syntax).startsWith("boolean"),
          )
          .map((member) => member.name!.getText(syntax))
          .filter((name) => /^(is|has|uses|checks|skips)[A-Z]/.test(name))
          .map((name) => `${path}: ${name}`),
      );
    // It is a fact of the kind, which generated classes state.
    assert.equal(questions, ["runtime/src/codegen/define-resource.ts: hasStatusSubresource"]);
  });

  test("the root of the runtime keeps its views, transports and helpers to itself", () => {
    const root = sources.find(({ path }) => path === "runtime/src/index.ts")!.text;
    const names = [...root.matchAll(/\{([^}]*)\} from/g)].flatMap(([, list = ""]) => list.match(/\w+/g) ?? []);
    const internal = /^(waitFor|findError|createChildLogger|\w*(Transport|View|Requester|Informer|Sender|Writer))$/;
    assert.equal(
      names.filter((name) => internal.test(name)),
      [],
    );
    assert.not.match(root, "export *");
  });

  test("nothing is exported as default", () => {
    const violations = sources
      .filter(({ syntax }) => syntax.statements.some((statement) => isDefaultExport(statement)))
      .map(({ path }) => path);
    assert.equal(violations, []);
  });

  test("no parameter list is longer than three", () => {
    const violations = sources.flatMap((source) =>
      functionsOf(source)
        .filter(({ parameters }) => parameters > 3)
        .map(({ line, name, parameters }) => `${source.path}:${line}: ${name} takes ${parameters}`),
    );
    assert.equal(violations, []);
  });
});

interface Exported {
  name: string;
  line: number;
  sentence: string;
}

function exportsOf({ syntax }: SourceFile): Exported[] {
  const all = syntax.statements.flatMap((statement): Exported[] => {
    if (!hasModifier(statement, compiler.SyntaxKind.ExportKeyword)) return [];
    const line = lineOf(syntax, statement);
    const sentence = sentenceOf(statement);
    return namesOf(statement).map((name) => ({ name, line, sentence }));
  });
  // Overloads, and a type and a value of one name, are documented once.
  const documented = new Set(all.filter(({ sentence }) => sentence !== "").map(({ name }) => name));
  return all.filter(({ name, sentence }) => sentence !== "" || !documented.has(name));
}

function namesOf(statement: ts.Statement): string[] {
  if (compiler.isVariableStatement(statement))
    return statement.declarationList.declarations.map(({ name }) => name.getText(statement.getSourceFile()));
  const { name } = statement as ts.Statement & { name?: ts.Node };
  return name === undefined ? [] : [name.getText(statement.getSourceFile())];
}

function sentenceOf(statement: ts.Statement): string {
  const comments = compiler.getJSDocCommentsAndTags(statement).filter(compiler.isJSDoc);
  return comments.map(({ comment }) => compiler.getTextOfJSDocComment(comment) ?? "").join("");
}

function functionsOf({ syntax }: SourceFile): { name: string; line: number; parameters: number }[] {
  const functions: { name: string; line: number; parameters: number }[] = [];
  const visit = (node: ts.Node): void => {
    if (
      compiler.isFunctionDeclaration(node) ||
      compiler.isMethodDeclaration(node) ||
      compiler.isConstructorDeclaration(node)
    ) {
      const name = node.name?.getText(syntax) ?? "constructor";
      functions.push({ name, line: lineOf(syntax, node), parameters: node.parameters.length });
    } else if (compiler.isVariableDeclaration(node) && node.initializer && compiler.isArrowFunction(node.initializer)) {
      const { length } = node.initializer.parameters;
      functions.push({ name: node.name.getText(syntax), line: lineOf(syntax, node), parameters: length });
    }
    compiler.forEachChild(node, visit);
  };
  visit(syntax);
  return functions;
}

function isDefaultExport(statement: ts.Statement): boolean {
  return hasModifier(statement, compiler.SyntaxKind.DefaultKeyword) || compiler.isExportAssignment(statement);
}

function hasModifier(statement: ts.Statement, kind: ts.SyntaxKind): boolean {
  return (
    compiler.canHaveModifiers(statement) &&
    compiler.getModifiers(statement)?.some((each) => each.kind === kind) === true
  );
}

function lineOf(syntax: ts.SourceFile, node: ts.Node): number {
  return syntax.getLineAndCharacterOfPosition(node.getStart(syntax)).line + 1;
}
