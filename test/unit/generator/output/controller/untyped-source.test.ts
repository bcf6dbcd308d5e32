// Event sources of kinds that a spec describes by their name alone.
import { writeFile, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { formatDiagnostic } from "#generator/diagnostic.js";
import { readProject } from "#generator/read/read-project.js";
import { buildModel } from "#generator/check/build-model.js";
import { checkConditions } from "#generator/code/check-types.js";
import { controllerGrants } from "#generator/emit/deploy/rights.js";
import { emitProject } from "#generator/emit/emit-project.js";
import { suggestCaches } from "#generator/suggest/cache-suggestions.js";
import { chosenCompilers, compileTogether, type ErrorsOf } from "../../../../support/projects/compile.js";
import { assert, suite } from "../../../../support/suite.js";
import { createTemporaryFolder } from "../../../../support/temporary-folder.js";

const crd = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: shops.example.com }
spec:
  group: example.com
  scope: Namespaced
  names: { kind: Shop, plural: shops, singular: shop }
  versions:
    - name: v1
      served: true
      storage: true
      schema: { openAPIV3Schema: { type: object, properties: { spec: { type: object, properties: { issuer: { type: string } } } } } }
`;

const kind = (name: string, scope = "Namespaced") =>
  `{ apiVersion: x.example.com/v1, kind: ${name}, plural: ${name.toLowerCase()}s, scope: ${scope} }`;

const spec = `
apiVersion: gen-operator.dev/v1alpha1
kind: Workflow
metadata: { name: shop }
spec:
  primary: example.com/v1/Shop
  dependents:
    certificate:
      resource: ${kind("Certificate")}
      mode: readOnly
      eventSource: certificates
      readyPostcondition: { fieldEquals: { path: status.phase, value: Issued } }
  eventSources:
    certificates:
      resource: ${kind("Certificate")}
      fieldSelector: spec.tier=gold
      filters: { onUpdate: { when: 'object["spec"] !== old["spec"]' }, onAdd: { function: isNew } }
    issuers:
      resource: ${kind("Issuer", "Cluster")}
      mapping: { function: shopsOf }
      primaryToSecondary: { function: issuersOf }
    gauges:
      resource: ${kind("Gauge")}
      cache: { paths: [spec.size, x-data.a, status, metadata.labels] }
    marks:
      resource: ${kind("Mark")}
      cache: metadata
`;

type Generated = Awaited<ReturnType<typeof generate>>;

let generatedOnce: Promise<Generated> | undefined;
const generated = () => (generatedOnce ??= generate());

async function generate() {
  await using folder = await createTemporaryFolder();
  await mkdir(join(folder.path, "crds"));
  await writeFile(join(folder.path, "crds/shops.yaml"), crd);
  await writeFile(join(folder.path, "workflow.yaml"), spec);
  const input = await readProject(folder.path);
  const { model, diagnostics, locate } = await buildModel(input);
  assert.equal([...input.diagnostics, ...diagnostics].map(formatDiagnostic), []);
  const emitted = await emitProject(model!);
  assert.equal((await checkConditions(model!, emitted, { code: [], locate })).map(formatDiagnostic), []);
  const flat = (path: string) => (emitted.find((file) => file.path === path)?.content ?? "").replace(/\s+/g, " ");
  return { model: model!, emitted, flat, locate };
}

/** A reconciler that also reads what the cache does not keep, in lines 4 and 5. */
const reconciler = [
  'import type { ShopReconciler } from "../generated/shop/types.js";',
  "export const reconciler: ShopReconciler = { reconcile: ({ secondary: { gauges, marks, issuers } }) => {",
  'const read: unknown[] = [gauges[0]?.spec, gauges[0]?.status, gauges[0]?.["x-data"], gauges[0]?.metadata.name, issuers[0]?.["spec"]];',
  'read.push(gauges[0]?.["data"]);',
  'read.push(marks[0]?.["spec"]);',
  "} };",
].join("\n");

let compiledOnce: Promise<ErrorsOf[]> | undefined;
const compiled = () => (compiledOnce ??= compileAll());

async function compileAll(): Promise<ErrorsOf[]> {
  const { emitted: stubs } = await generated();
  const path = "src/shop/reconciler.ts";
  const reads = [...stubs.filter((file) => file.path !== path), { path, content: reconciler }];
  return compileTogether({ stubs, reads }, chosenCompilers);
}

suite("event source of an untyped kind", (declareTest) => {
  const test = (title: string, body: () => unknown) => declareTest(title, body, { timeoutMs: 120_000 });

  test("is wired as in the spec, gets list and watch rights, and compiles with its stubs", async () => {
    const { model, flat } = await generated();
    const controller = flat("src/generated/shop/controller.ts");
    for (const part of [
      'import { defineController, untypedResource } from "@gen-operator/runtime/codegen";',
      'informerSource({ name: "certificates", resource: untypedResource({ apiVersion: "x.example.com/v1", kind: "Certificate", plural: "certificates", scope: "Namespaced"',
      'fieldSelector: "spec.tier=gold"',
      '(object: CertificatesResource, old: CertificatesResource) => object["spec"] !== old["spec"]',
      "mapper: issuersFunctions.shopsOf, primaryToSecondary: issuersFunctions.issuersOf",
      'cache: { paths: ["spec.size", "status", "x-data.a"] }',
    ])
      assert.ok(controller.includes(part), `${part}\n${controller}`);
    const types = flat("src/generated/shop/types.ts");
    for (const part of [
      "export type IssuersResource = UntypedResource;",
      'Kept< UntypedResource & { readonly spec?: unknown; readonly status?: unknown; readonly "x-data"?: unknown }, "spec.size" | "status" | "x-data.a",',
      "export type { Shop, ShopInput, UntypedInput, UntypedResource };",
    ])
      assert.ok(types.includes(part), `${part}\n${types}`);
    assert.not.match(types, "KeepsLess");
    const granted = controllerGrants(model.controllers[0]!).filter(({ group }) => group === "x.example.com");
    assert.equal(
      granted.map(({ resource, verbs }) => `${verbs.join("+")} ${resource}`),
      ["certificates", "issuers", "gauges", "marks"].map((plural) => `list+watch ${plural}`),
    );
    for (const errorsOf of await compiled()) assert.equal(errorsOf("stubs"), []);
  });

  test("has only the cached fields in its type", async () => {
    for (const errorsOf of await compiled())
      assert.equal(
        errorsOf("reads").map((error) => /^(\S+)\((\d+),\d+\): error/.exec(error)?.slice(1)),
        [
          ["src/shop/reconciler.ts", "4"],
          ["src/shop/reconciler.ts", "5"],
        ],
      );
  });

  test("is suggested to cache the fields that code reads, unless code looks it up", async () => {
    const { model, locate } = await generated();
    const adviceFor = (body: string) => {
      const text = `export const reconciler = { async reconcile({ secondary, context }) { ${body} } };\n`;
      const all = suggestCaches(model, [{ path: "src/shop/reconciler.ts", text }], locate);
      return all.find(({ source }) => source.name === "gauges")?.cache;
    };
    assert.equal(adviceFor('return secondary.gauges[0]?.["spec"];'), { kind: "paths", paths: ["spec"] });
    const lookup = 'const Gauge = untypedResource({ kind: "Gauge" }); return context.secondaries(Gauge);';
    assert.is(adviceFor(lookup), undefined, "nobody knows what is looked up");
  });
});
