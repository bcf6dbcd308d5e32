// Code in the documentation compiles. Every fence marked `ts` is a module of its own, type-checked against the packages as built;
// one that cannot be, because it belongs to a user's project, is marked "ts ignore: REASON". The generated code that examples import
// is that of the samples.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type ts from "typescript";
import { loadLibrary } from "#generator/model/typescript.js";
import { fencesOf, findDocuments, type Fence } from "../../support/projects/fences.js";
import { repositoryRoot } from "../../support/repository.js";
import { assert, suite } from "../../support/suite.js";

const compiler = loadLibrary("typescript");

/** What examples find under `./generated`, as a file of a project beside it would. */
const generated = new Map(
  [
    {
      name: "index.ts",
      code: 'export * from "#webpage/generated/index.js"; export { Node, Pod, PodWatch } from "#podwatch/generated/index.js";',
    },
    { name: "webpage/types.ts", code: 'export * from "#webpage/generated/webpage/types.js";' },
    { name: "webpage/workflow.ts", code: 'export * from "#webpage/generated/webpage/workflow.js";' },
  ].map(({ name, code }) => [join(repositoryRoot, "test/generated", name), code]),
);

suite("documentation code", (test) => {
  const fences = findDocuments().flatMap((readme) =>
    fencesOf(readme, readFileSync(join(repositoryRoot, readme), "utf8")),
  );

  test(
    "compiles in every TypeScript fence",
    () => assert.equal(checkFences(fences.filter(({ info }) => info === "ts")), []),
    { timeoutMs: 60_000 },
  );

  test("gives a reason for every unchecked fence", () => {
    const silent = fences.filter(({ info }) => info.startsWith("ts") && !/^ts( ignore: \S.*)?$/.test(info));
    assert.equal(
      silent.map(({ readme, line, info }) => `${readme}:${line}: ${info}`),
      [],
    );
  });

  test("reports a type error at its line in the document", () => {
    const text = ["# A title", "", "```ts", "const one = 1;", "export const two: string = one;", "```"].join("\n");
    assert.equal(checkFences(fencesOf("README.md", text)), [
      "README.md:5: TS2322 Type 'number' is not assignable to type 'string'.",
    ]);
  });
});

/** What is parsed of the packages and libraries, for the next program. */
const parsed = new Map<string, ts.SourceFile | undefined>();

function checkFences(fences: Fence[]): string[] {
  // Below the test folder, so that packages are found as a test finds them.
  const files = new Map(
    fences.map((fence) => [
      join(repositoryRoot, "test", `${fence.readme.replaceAll("/", "-")}.${fence.line}.ts`),
      fence,
    ]),
  );
  const options = compilerOptions();
  const host = compiler.createCompilerHost(options);
  const { readFile, fileExists, getSourceFile } = host;
  host.jsDocParsingMode = compiler.JSDocParsingMode.ParseForTypeErrors;
  host.getSourceFile = (path, target) => {
    if (files.has(path) || generated.has(path)) return getSourceFile(path, target);
    if (!parsed.has(path)) parsed.set(path, getSourceFile(path, target));
    return parsed.get(path);
  };
  host.readFile = (path) => files.get(path)?.code ?? generated.get(path) ?? readFile(path);
  host.fileExists = (path) => files.has(path) || generated.has(path) || fileExists(path);
  host.directoryExists = (path) =>
    [...generated.keys()].some((file) => file.startsWith(`${path}/`)) || compiler.sys.directoryExists(path);
  const program = compiler.createProgram([...files.keys()], options, host);
  return [...files].flatMap(([path, fence]) => {
    const file = program.getSourceFile(path);
    const diagnostics = [...program.getSyntacticDiagnostics(file), ...program.getSemanticDiagnostics(file)];
    return diagnostics.map(({ start = 0, code, messageText }) => {
      const line = fence.line + (file?.getLineAndCharacterOfPosition(start).line ?? 0);
      return `${fence.readme}:${line}: TS${code} ${compiler.flattenDiagnosticMessageText(messageText, "\n")}`;
    });
  });
}

function compilerOptions(): ts.CompilerOptions {
  const { config } = compiler.readConfigFile(join(repositoryRoot, "tsconfig.json"), (path) =>
    readFileSync(path, "utf8"),
  ) as {
    config: object;
  };
  const { options } = compiler.parseJsonConfigFileContent(config, compiler.sys, repositoryRoot);
  // An example declares what it does not use, and belongs to no project.
  const { composite, rootDir, outDir, tsBuildInfoFile, ...rest } = options;
  return { ...rest, noEmit: true, noUnusedLocals: false, noUnusedParameters: false };
}
