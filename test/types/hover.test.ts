// What an editor shows of the functions of a user's.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { loadLibrary } from "#generator/model/typescript.js";
import { strictOptions } from "../support/projects/compile.js";
import { repositoryRoot } from "../support/repository.js";
import { assert, suite } from "../support/suite.js";

const compiler = loadLibrary("typescript");
const ingress = "webpage/src/webpage/dependents/ingress.ts";

const cases: readonly (readonly [where: string, type: string, doc: RegExp, file?: string])[] = [
  ["secondary }", "(parameter) secondary: IngressSecondary", /^The live dependents by name;/],
  ["service.metadata", "(property) service: Service", /^$/],
  ["primary,", "(parameter) primary: WebPage", /^$/],
  ["host }", "const host: string | undefined", /^The name under which an exposed page is reached/],
  ["spec: {", "(property) IngressInput.spec?: IngressSpec | undefined", /^spec is the desired state of the Ingress\./],
  // What its reconcilePrecondition tests.
  [
    "primary, secondary",
    "(parameter) primary: Zone & { readonly spec: { readonly hasReplica: true; }; }",
    /^$/,
    "external/src/zone/dependents/replica.ts",
  ],
  ["rules:", "(property) IngressSpec.rules?: readonly IngressRule[] | undefined", /^rules is a list of host rules/],
];

const pathOf = (file: string) => join(repositoryRoot, "fixtures/samples", file);

suite("hover in an editor", (test) => {
  test.thorough(
    "shows the types of generated code and the API descriptions of fields",
    () => {
      const files = [...new Set(cases.map(([, , , file = ingress]) => pathOf(file)))];
      const service = compiler.createLanguageService({
        ...{ fileExists: compiler.sys.fileExists, readFile: compiler.sys.readFile },
        ...{ directoryExists: compiler.sys.directoryExists, getCurrentDirectory: () => repositoryRoot },
        getScriptFileNames: () => files,
        getScriptVersion: () => "1",
        getScriptSnapshot: (name) =>
          existsSync(name) ? compiler.ScriptSnapshot.fromString(readFileSync(name, "utf8")) : undefined,
        getCompilationSettings: () => strictOptions(),
        getDefaultLibFileName: compiler.getDefaultLibFilePath,
      });
      for (const [where, type, doc, file = ingress] of cases) {
        const path = pathOf(file);
        const info = service.getQuickInfoAtPosition(path, readFileSync(path, "utf8").indexOf(where));
        assert.is(compiler.displayPartsToString(info?.displayParts).replace(/\s+/g, " "), type);
        assert.match(compiler.displayPartsToString(info?.documentation), doc);
      }
    },
    { timeoutMs: 60_000 },
  );
});
