import type ts from "typescript";
import { loadLibrary } from "#generator/model/typescript.js";
import { assert, suite } from "../support/suite.js";
import { readPackageSources } from "./source-files.js";

const compiler = loadLibrary("typescript");

suite("exported names", (test) => {
  const sources = readPackageSources();

  test("names no boolean option of the runtime like a question (is…, has…, uses…)", () => {
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
    assert.equal(questions, ["runtime/src/api/define-resource.ts: hasStatusSubresource"]);
  });

  test("omits views, transports and helpers from the runtime's root export", () => {
    const root = sources.find(({ path }) => path === "runtime/src/index.ts")!.text;
    const names = [...root.matchAll(/\{([^}]*)\} from/g)].flatMap(([, list = ""]) => list.match(/\w+/g) ?? []);
    const internal = /^(waitFor|findError|createChildLogger|\w*(Transport|View|Requester|Informer|Sender|Writer))$/;
    assert.equal(
      names.filter((name) => internal.test(name)),
      [],
    );
    assert.not.match(root, "export *");
  });

  test("contains no default export", () => {
    const violations = sources
      .filter(({ syntax }) => syntax.statements.some((statement) => isDefaultExport(statement)))
      .map(({ path }) => path);
    assert.equal(violations, []);
  });
});

function isDefaultExport(statement: ts.Statement): boolean {
  return hasModifier(statement, compiler.SyntaxKind.DefaultKeyword) || compiler.isExportAssignment(statement);
}

function hasModifier(statement: ts.Statement, kind: ts.SyntaxKind): boolean {
  return (
    compiler.canHaveModifiers(statement) &&
    compiler.getModifiers(statement)?.some((each) => each.kind === kind) === true
  );
}
