import { formatDiagnostic } from "#generator/diagnostic.js";
import { readBuiltinKinds } from "#generator/read/kinds.js";
import { loadSpecSchema, readWorkflows } from "#generator/read/workflows.js";
import { buildModel } from "#generator/check/build-model.js";
import { controllerGrants } from "#generator/emit/deploy/rights.js";
import { emitProject } from "#generator/emit/emit-project.js";
import { fastCompiler, writeProject } from "../../../support/projects/compile.js";
import { assert, suite } from "../../../support/suite.js";
import { createTemporaryFolder } from "../../../support/temporary-folder.js";

const builtin = await readBuiltinKinds();
const checkSpec = await loadSpecSchema();

const ROUTE = "{ apiVersion: route.example.com/v1, kind: Route, plural: routes, scope: Namespaced }";

/** Builds the model of a spec, or returns the mistakes in it. */
async function modelOf(spec: readonly string[]) {
  const head = ["apiVersion: gen-operator.dev/v1alpha1", "kind: Workflow", "metadata: { name: web }", "spec:"];
  const text = [...head, "  primary: apps/v1/Deployment", ...spec.map((line) => `  ${line}`), ""].join("\n");
  const { workflows, diagnostics } = readWorkflows({ file: "workflow.yaml", text }, checkSpec);
  const built = await buildModel({ crds: [], workflows, builtin });
  return { model: built.model, problems: [...diagnostics, ...built.diagnostics].map(formatDiagnostic) };
}

const ALL = [
  "controller: { watchFailurePolicy: block }",
  "dependents:",
  "  ingress:",
  "    resource: networking.k8s.io/v1/Ingress",
  `    reconcilePrecondition: { not: { crdPresent: { of: ${ROUTE} } } }`,
  `  route: { resource: ${ROUTE}, activationCondition: crdPresent }`,
  `  config: { resource: v1/ConfigMap, activationCondition: { crdPresent: { of: ${ROUTE} } } }`,
  "  account:",
  "    external: { perPrimaryPoll: { every: 1m } }",
  `    reconcilePrecondition: { crdPresent: { of: ${ROUTE} } }`,
  "eventSources:",
  `  routes: { resource: ${ROUTE}, activationCondition: crdPresent }`,
  `  services: { resource: v1/Service, activationCondition: { not: { crdPresent: { of: ${ROUTE} } } } }`,
];

suite("crdPresent", (test) => {
  test(
    "compiles for another kind, negated, and as activation of an event source",
    async () => {
      const { model, problems } = await modelOf(ALL);
      if (model === undefined) throw new Error(problems.join("\n"));
      const files = await emitProject(model);
      const contentOf = (path: string) =>
        files.find((each) => each.path === path)?.content.replaceAll(/\s+/g, " ") ?? "";
      const workflow = contentOf("src/generated/web/workflow.ts");
      const controller = contentOf("src/generated/web/controller.ts");
      const route =
        'untypedResource({ apiVersion: "route.example.com/v1", kind: "Route", plural: "routes", scope: "Namespaced"';
      assert.ok(workflow.replaceAll("( ", "(").includes(`reconcilePrecondition: not(crdPresent(${route}`), workflow);
      assert.ok(workflow.includes("activationCondition: crdPresent,"), workflow);
      assert.ok(workflow.replaceAll("( ", "(").includes(`activationCondition: crdPresent(${route}`), workflow);
      assert.ok(controller.includes("activationCondition: crdPresent,"), controller);
      assert.ok(controller.replaceAll("( ", "(").includes(`activationCondition: not(crdPresent(${route}`), controller);
      assert.ok(controller.includes('watchFailurePolicy: "block"'), controller);
      await using folder = await createTemporaryFolder();
      await writeProject(folder.path, files);
      assert.is(fastCompiler.compile(folder.path), "");
    },
    { timeoutMs: 60_000 },
  );

  test("grants list and watch on the CRD of its kind only", async () => {
    const { model } = await modelOf(ALL);
    const granted = model!.controllers
      .flatMap(controllerGrants)
      .filter(({ resource }) => resource === "customresourcedefinitions")
      .filter(({ because }) => because.startsWith("crdPresent"));
    assert.equal(
      granted.map(({ because, names, verbs }) => [because, names, verbs]),
      [
        "dependent ingress",
        "dependent route",
        "dependent config",
        "dependent account",
        "event source routes",
        "event source services",
      ].map((about) => [`crdPresent of ${about} of web`, ["routes.route.example.com"], ["list", "watch"]]),
    );
  });

  const mistakes: readonly (readonly [string, readonly string[], RegExp])[] = [
    [
      "an unknown kind",
      [
        "dependents: { a: { resource: v1/ConfigMap, activationCondition: { crdPresent: { of: example.com/v1/None } } } }",
      ],
      /unknown-kind.*\n.*spec\.dependents\.a\.activationCondition\.crdPresent\.of/,
    ],
    [
      "an unknown kind under not, in an event source",
      [
        "eventSources: { a: { resource: v1/Pod, activationCondition: { not: { crdPresent: { of: example.com/v1/None } } } } }",
      ],
      /unknown-kind.*\n.*spec\.eventSources\.a\.activationCondition\.not\.crdPresent\.of/,
    ],
    [
      "a built-in kind, which is always present",
      ["dependents: { a: { resource: v1/ConfigMap, activationCondition: { not: { crdPresent: { of: v1/Pod } } } } }"],
      /constant-condition: not: crdPresent is never true: v1\/Pod is built into Kubernetes/,
    ],
    [
      "its use in a readyPostcondition",
      [`dependents: { a: { resource: v1/ConfigMap, readyPostcondition: { not: { crdPresent: { of: ${ROUTE} } } } } }`],
      /builtin-condition/,
    ],
    [
      "the negation of another condition",
      ["dependents: { a: { resource: v1/ConfigMap, reconcilePrecondition: { not: ready } } }"],
      /invalid value "ready": must be crdPresent, or an object with crdPresent/,
    ],
    [
      "another condition in an event source",
      ["eventSources: { a: { resource: v1/Pod, activationCondition: ready } }"],
      /invalid value "ready": must be crdPresent, or an object with either crdPresent or not/,
    ],
  ];
  for (const [what, spec, expected] of mistakes)
    test(`reports ${what}`, async () => {
      const { problems } = await modelOf(spec);
      assert.match(problems.join("\n"), expected);
    });
});
