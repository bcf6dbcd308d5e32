import type { ControllerModel, ProjectModel, ResourceModel } from "#generator/model/project-model.js";
import { emitProject } from "#generator/emit/emit-project.js";
import { StageCache } from "#generator/stage.js";
import { dependentOf } from "../../../support/runtime/dependent-models.js";
import { builtinResource, thingOf } from "../../../support/runtime/resource-models.js";
import { assert, suite } from "../../../support/suite.js";

const schema = { type: "object", properties: { spec: { type: "object", properties: { size: { type: "integer" } } } } };
const configMap = await builtinResource("", "v1", "ConfigMap");
const secret = await builtinResource("", "v1", "Secret");

/** A kind with the digest of its CRD, whose schema nobody may look at. */
function unreadKind(digest: string, rest: Partial<ResourceModel> = {}): ResourceModel {
  const { schema: _schema, ...thing } = { ...thingOf(schema.properties.spec, { schema }), digest, ...rest };
  return {
    ...thing,
    get schema(): never {
      throw new Error("the schema was read");
    },
  };
}

function projectOf(primary: ResourceModel, rest: Partial<ControllerModel> = {}): ProjectModel {
  const dependents = rest.dependents ?? [dependentOf("configMap", configMap)];
  const controller = { name: "thing", primary, eventSources: [], filters: {}, settings: {}, specFile: "workflow.yaml" };
  return {
    packageName: "operator",
    resources: [primary, configMap, secret],
    controllers: [{ ...controller, dependents, ...rest }],
  };
}

/** Returns the generated files of a project in which the earlier run of a project is remembered, by path. */
async function emitAfter(before: ProjectModel, project: ProjectModel, hasReconciler = [false, false]) {
  const [first, second] = hasReconciler;
  const cache = new StageCache();
  await emitProject(before, { stage: cache.stage, hasReconciler: () => first! });
  // Stubs that are there are not made, either.
  const present = { isMissing: () => false, hasReconciler: () => second! };
  const files = await emitProject(project, { stage: new StageCache(cache.used).stage, ...present });
  return new Map(files.filter(({ owner }) => owner === "generator").map((file) => [file.path, file]));
}

const WIRING = ["types", "workflow", "controller"].map((name) => `src/generated/thing/${name}.ts`);
const DEPLOY = ["rbac", "admission", "kustomization"].map((name) => `deploy/generated/${name}.yaml`);

suite("recalled controller", (test) => {
  test("is not emitted again, and no schema is read", async () => {
    const kind = { ...thingOf(schema.properties.spec, { schema }), digest: "a" };
    const files = await emitAfter(projectOf(kind), projectOf(unreadKind("a")));
    for (const path of [...WIRING, ...DEPLOY]) assert.is.not(files.get(path)?.digest, undefined, path);
  });

  const kind = { ...thingOf(schema.properties.spec, { schema }), digest: "a" };
  for (const [what, changed] of Object.entries<ProjectModel>({
    "the settings": projectOf(kind, { settings: { labelSelector: "app" } }),
    "the dependents": projectOf(kind, { dependents: [dependentOf("secret", secret)] }),
    "the kind of a dependent": projectOf(kind, { dependents: [dependentOf("configMap", secret)] }),
    "the CRD": projectOf({ ...kind, digest: "b" }),
    "the plural of the CRD": projectOf({ ...kind, plural: "stuff", digest: "b" }),
    "the package name": { ...projectOf(kind), packageName: "other" },
  }))
    test(`is emitted again after a change of ${what}`, async () => {
      const files = await emitAfter(projectOf(kind), changed);
      const expected = await emitProject(changed, { hasReconciler: () => false });
      for (const { path, content } of expected.filter(({ owner }) => owner === "generator"))
        if ([...WIRING, ...DEPLOY].includes(path)) assert.is(files.get(path)?.content, content, path);
    });

  test("keeps its roles after a change of a CRD", async () => {
    const files = await emitAfter(projectOf(kind), projectOf({ ...kind, digest: "b" }));
    for (const path of DEPLOY) assert.is.not(files.get(path)?.digest, undefined, path);
  });

  test("imports a reconciler that was added", async () => {
    const files = await emitAfter(projectOf(kind), projectOf(kind), [false, true]);
    assert.match(files.get("src/generated/thing/controller.ts")?.content ?? "", "import { reconciler }");
  });

  test("is emitted in every run for a kind without a CRD", async () => {
    const described = { ...thingOf(schema.properties.spec, { schema }), isCustom: false, isDescribed: true };
    const files = await emitAfter(projectOf(described), projectOf(described));
    for (const path of WIRING) assert.is(files.get(path)?.digest, undefined, path);
  });
});
