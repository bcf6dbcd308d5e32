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

suite("what users depend on", (declare) => {
  const test = (title: string, body: () => unknown) => declare(title, body, LONG);
  // Programs are started, or the whole of the runtime is compiled.
  const slow = (title: string, body: () => unknown) => declare.thorough(title, body, LONG);

  for (const folder of ["runtime", "apiserver", "generator", "schema"])
    test(`the exported API of ${folder} is as recorded`, () => {
      checkSurface(`api-${folder}.txt`, exportedApiOf(folder));
    });

  test("the exported names of kinds are as recorded", () => {
    checkSurface("api-kinds.txt", exportedNamesOf("kinds"));
  });

  test("the fields of the spec are as recorded", () => {
    checkSurface("spec.txt", schemaFieldsOf("generator/data/workflow.schema.json"));
  });

  test("the paths of pages and examples are as recorded", () => {
    checkSurface("paths.txt", pathsReport());
  });

  test("a relative link of a page leads to a file", () => {
    assert.equal(brokenLinks(), []);
  });

  slow("the settings of an operator are as recorded, with their flags and variables", async () => {
    const fields = schemaFieldsOf("runtime/settings.schema.json");
    checkSurface("settings.txt", `${fields}\n## flags and variables\n\n${await operatorFlags()}\n`);
  });

  slow("the commands and their flags are as recorded", async () => {
    checkSurface("commands.txt", await commandsReport());
  });

  slow("the exit codes are as recorded", async () => {
    checkSurface("exit-codes.txt", await exitCodesReport());
  });

  let program: SourceProgram | undefined;
  const runtime = () => (program ??= new SourceProgram("runtime"));

  slow("the labels, annotations, finalizers and field managers are as recorded", () => {
    checkSurface("object-names.txt", objectNamesReport(runtime()));
  });

  slow("the reasons of Events, conditions and errors are as recorded", () => {
    checkSurface("reasons.txt", reasonsReport(runtime()));
  });

  slow("the metrics, spans and diagnostics channels are as recorded", () => {
    checkSurface("observed.txt", observedReport(runtime()));
  });

  slow("the variables of the environment and the paths of an operator are as recorded", () => {
    checkSurface("process.txt", processReport(runtime()));
  });

  slow("the fields of log lines are as recorded", () => {
    checkSurface("log-fields.txt", logFieldsOf(runtime()));
  });

  slow("the rules of diagnostics are as recorded", async () => {
    checkSurface("rules.txt", await rulesReport());
  });
});
