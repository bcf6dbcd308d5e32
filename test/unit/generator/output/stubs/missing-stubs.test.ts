import type { ControllerModel, ProjectModel } from "#generator/model/project-model.js";
import { emitProject } from "#generator/emit/emit-project.js";
import { checkMissingStubs } from "#generator/code/missing-stubs.js";
import { dependentOf } from "../../../../support/runtime/dependent-models.js";
import { builtinResource, thingOf } from "../../../../support/runtime/resource-models.js";
import { assert, suite } from "../../../../support/suite.js";

const thing = thingOf({ type: "object" });
const configMap = builtinResource("", "v1", "ConfigMap");
const explicit = { workflow: { invocation: "explicit" } } as const;

/** Checks a project that lacks some files; returns the rules with the files that the messages name. */
async function check(missing: readonly string[], rest: Partial<ControllerModel> = {}): Promise<string[]> {
  const controller: ControllerModel = {
    ...{ name: "thing", primary: thing, dependents: [dependentOf("config", configMap)], settings: {}, filters: {} },
    ...{ eventSources: [], specFile: "workflow.yaml", ...rest },
  };
  const model: ProjectModel = { packageName: "operator", resources: [thing, configMap], controllers: [controller] };
  const files = await emitProject(model, { isMissing: (path) => missing.includes(path) });
  const position = { file: "workflow.yaml", line: 6, column: 27 };
  return checkMissingStubs(model, files, (each, path) => ({ position, path: `${each.name}:${path.join(".")}` })).map(
    ({ severity, rule, message, path = "", hint = "" }) => {
      const [file = ""] = /src\/\S+\.ts/.exec(message) ?? [];
      assert.match(hint, `run gen-operator generate to write a stub of ${file}`);
      return [severity, rule, file, path].join(" ").trim();
    },
  );
}

suite("missing stub", (test) => {
  const config = "src/thing/dependents/config.ts";
  const reconciler = "src/thing/reconciler.ts";

  test("is reported only if generated code imports it", async () => {
    assert.equal(await check([]), []);
    assert.equal(await check(["src/main.ts", "test/thing.test.ts"]), []);
    assert.equal(await check([config]), [`error missing-stub ${config}`]);
  });

  test("has a hint that generate moves the code if it exists elsewhere", async () => {
    const model = { packageName: "operator", resources: [], controllers: [] };
    const files = [{ path: config, owner: "user", content: "" }] as const;
    const [found] = checkMissingStubs(model, files, () => ({}), new Set([config]));
    assert.is(found?.hint, "run gen-operator generate to move your code there");
  });

  test("is reported for the reconciler if the controller does nothing without it", async () => {
    assert.equal(await check([reconciler]), []);
    assert.equal(await check([reconciler], { dependents: [] }), [`error missing-stub ${reconciler}`]);
    assert.equal(await check([reconciler], explicit), [
      `error missing-reconciler ${reconciler} thing:spec.workflow.invocation`,
    ]);
  });
});
