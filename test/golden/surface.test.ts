// What users depend on, as one text for each surface: what is inside may be moved and renamed, and none of these texts changes.
import { checkSurface } from "../support/surface/check-surface.js";
import { commandsReport, exitCodesReport, operatorFlags, rulesReport } from "../support/surface/commands.js";
import { exportedApiOf, exportedNamesOf } from "../support/surface/exported-api.js";
import { logFieldsOf } from "../support/surface/log-fields.js";
import { objectNamesReport, observedReport, processReport, reasonsReport } from "../support/surface/names.js";
import { brokenLinks, pathsReport } from "../support/surface/paths.js";
import { schemaFieldsOf } from "../support/surface/schema-fields.js";
import { SourceProgram } from "../support/surface/source-program.js";
import { assert, suite } from "../support/suite.js";

// Compilers read whole packages.
const LONG = { timeoutMs: 90_000 };

suite("public surface", (declare) => {
  const test = (title: string, body: () => unknown) => declare(title, body, LONG);
  // Programs are started, or the whole of the runtime is compiled.
  const slow = (title: string, body: () => unknown) => declare.thorough(title, body, LONG);

  for (const folder of ["runtime", "apiserver", "generator", "schema"])
    test(`matches the recorded exported API of ${folder}`, () => {
      checkSurface(`api-${folder}.txt`, exportedApiOf(folder));
    });

  test("matches the recorded exported names of kinds", () => {
    checkSurface("api-kinds.txt", exportedNamesOf("kinds"));
  });

  test("matches the recorded fields of the spec", () => {
    checkSurface("spec.txt", schemaFieldsOf("generator/data/workflow.schema.json"));
  });

  test("matches the recorded paths of pages and examples", () => {
    checkSurface("paths.txt", pathsReport());
  });

  test("has no broken relative link in a page", () => {
    assert.equal(brokenLinks(), []);
  });

  slow("matches the recorded settings of an operator, with flags and variables", async () => {
    const fields = schemaFieldsOf("runtime/settings.schema.json");
    checkSurface("settings.txt", `${fields}\n## flags and variables\n\n${await operatorFlags()}\n`);
  });

  slow("matches the recorded commands and flags", async () => {
    checkSurface("commands.txt", await commandsReport());
  });

  slow("matches the recorded exit codes", async () => {
    checkSurface("exit-codes.txt", await exitCodesReport());
  });

  let program: SourceProgram | undefined;
  const runtime = () => (program ??= new SourceProgram("runtime"));

  slow("matches the recorded labels, annotations, finalizers and field managers", () => {
    checkSurface("object-names.txt", objectNamesReport(runtime()));
  });

  slow("matches the recorded reasons of Events, conditions and errors", () => {
    checkSurface("reasons.txt", reasonsReport(runtime()));
  });

  slow("matches the recorded metrics, spans and diagnostics channels", () => {
    checkSurface("observed.txt", observedReport(runtime()));
  });

  slow("matches the recorded environment variables and HTTP paths", () => {
    checkSurface("process.txt", processReport(runtime()));
  });

  slow("matches the recorded fields of log lines", () => {
    checkSurface("log-fields.txt", logFieldsOf(runtime()));
  });

  slow("matches the recorded rules of diagnostics", async () => {
    checkSurface("rules.txt", await rulesReport());
  });
});
