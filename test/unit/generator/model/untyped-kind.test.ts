import { formatDiagnostic } from "#generator/diagnostic.js";
import { readBuiltinKinds } from "#generator/read/kinds.js";
import { loadSpecSchema, readWorkflows } from "#generator/read/workflows.js";
import { buildModel } from "#generator/check/build-model.js";
import { assert, suite } from "../../../support/suite.js";

const builtin = await readBuiltinKinds();
const checkSpec = await loadSpecSchema();

/** Returns the rules that a dependent of a kind without a schema breaks. */
async function problemsOf(rest: string): Promise<string[]> {
  const kind = "{ apiVersion: x.example.com/v1, kind: Widget, plural: widgets, scope: Namespaced }";
  const text =
    "apiVersion: gen-operator.dev/v1alpha1\nkind: Workflow\nmetadata: { name: web }\nspec:\n" +
    `  primary: apps/v1/Deployment\n  dependents: { widget: { resource: ${kind}, ${rest} } }\n`;
  const { workflows, diagnostics } = readWorkflows({ file: "workflow.yaml", text }, checkSpec);
  assert.equal(diagnostics.map(formatDiagnostic), []);
  return (await buildModel({ crds: [], workflows, builtin })).diagnostics.map(({ rule }) => rule);
}

suite("untyped kind", (test) => {
  test("accepts any field in conditions and field selectors", async () => {
    assert.equal(await problemsOf("readyPostcondition: { condition: { type: Ready } }"), []);
    assert.equal(await problemsOf("readyPostcondition: { fieldEquals: { path: status.phase, value: Done } }"), []);
    assert.equal(await problemsOf("fieldSelector: spec.tier=gold"), []);
  });

  test("rejects a condition on the type of metadata, and a malformed field selector", async () => {
    const inMetadata = "readyPostcondition: { fieldEquals: { path: metadata, value: a } }";
    assert.equal(await problemsOf(inMetadata), ["condition-field"]);
    assert.equal(await problemsOf("fieldSelector: spec.tier"), ["field-selector"]);
  });
});
