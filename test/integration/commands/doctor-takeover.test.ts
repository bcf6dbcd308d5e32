// What `doctor --takeover` says of objects that several field managers wrote; the whole journey is in control-plane/takeover.test.ts.
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { apiRequestOrThrow } from "../../support/api/api-request.js";
import { startTestApiServer } from "../../support/api/api-server.js";
import { writeKubeconfig } from "../../support/api/kubeconfig.js";
import { runCommand } from "../../support/command-line.js";
import { assert, shared, suite } from "../../support/suite.js";
import { createTemporaryFolder } from "../../support/temporary-folder.js";
import { pageCrd } from "../runtime/page.js";

const server = shared(() => startTestApiServer({ crds: [pageCrd], tls: true }));
const labels = { app: "shop" };
const template = { metadata: { labels }, spec: { containers: [{ name: "web", image: "example.com/web:1" }] } };

let projects = 0;

/** A project, and objects that carry its label. */
async function createProject() {
  const admin = await server();
  const folder = await createTemporaryFolder();
  const name = `shop-${++projects}`;
  await mkdir(join(folder.path, "crds"));
  await writeFile(join(folder.path, "crds/pages.yaml"), JSON.stringify(pageCrd));
  await writeKubeconfig(join(folder.path, "kubeconfig"), admin);
  return {
    name,
    async doctor(controller = "{}", ...args: string[]) {
      const spec = `apiVersion: gen-operator.dev/v1alpha1
kind: Workflow
metadata: { name: ${name} }
spec:
  primary: example.com/v1/Page
  controller: ${controller}
  dependents:
    config: { resource: v1/ConfigMap, mode: createOnly }
    settings: { resource: v1/ConfigMap }
    web: { resource: apps/v1/Deployment, released: [spec.minReadySeconds] }
`;
      await writeFile(join(folder.path, "workflow.yaml"), spec);
      return runCommand(folder.path, "doctor", "--takeover", "--kubeconfig", "kubeconfig", ...args);
    },
    /** Applies an object under a field manager. */
    async apply(manager: string, kind: string, dependent: string, content: object) {
      const [apiVersion, path] = kind === "ConfigMap" ? ["v1", "api/v1"] : ["apps/v1", "apis/apps/v1"];
      const metadata = {
        name: `${name}-${dependent}`,
        ...(manager === name && {
          labels: { "gen-operator.dev/controller": name },
          annotations: { "gen-operator.dev/dependent": dependent },
        }),
      };
      const at = `/${path}/namespaces/default/${kind.toLowerCase()}s/${metadata.name}`;
      await apiRequestOrThrow(admin, `PATCH ${at}?fieldManager=${manager}&force=true`, {
        ...{ body: { apiVersion, kind, metadata, ...content }, contentType: "application/apply-patch+yaml" },
      });
    },
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
}

const linesOf = (stdout: string) => stdout.split("\n").slice(1);

suite("doctor --takeover", (test) => {
  test("reports that no object belongs to the controller yet", async () => {
    await using project = await createProject();
    const { stdout, status } = await project.doctor();
    assert.is(status, 0, stdout);
    assert.match(stdout, "no object has the label of the controller yet");
    assert.match(stdout, "start the operator without formerFieldManagers");
  });

  test("lists fields that only a former manager owns, except for objects that are only created", async () => {
    await using project = await createProject();
    const { name, apply } = project;
    await apply("old", "ConfigMap", "settings", { data: { text: "a", gone: "c", both: "d" } });
    await apply("older", "ConfigMap", "settings", { data: { both: "d" } });
    await apply(name, "ConfigMap", "settings", { data: { text: "a" } });
    await apply("old", "ConfigMap", "config", { data: { text: "a" } });
    await apply(name, "ConfigMap", "config", {});
    const { stdout } = await project.doctor();
    assert.equal(
      linesOf(stdout).filter((line) => line.startsWith("           ")),
      [`           old: ConfigMap default/${name}-settings: data.gone`],
    );
    const both = await project.doctor("{ formerFieldManagers: [old, older] }", "--format", "json");
    const { checks } = JSON.parse(both.stdout) as { checks: { name: string; details?: string[] }[] };
    assert.equal(
      checks.find((check) => check.name === `takeover of ${name}`)?.details,
      ["both", "gone"].map((key) => `ConfigMap default/${name}-settings: data.${key}`),
    );
  });

  test("shows the default of a pruned number, hides other values, and omits released fields", async () => {
    await using project = await createProject();
    const { name, apply } = project;
    const spec = { selector: { matchLabels: labels }, template };
    await apply("old", "Deployment", "web", {
      spec: { ...spec, replicas: 5, minReadySeconds: 3, strategy: { type: "Recreate" } },
    });
    await apply(name, "Deployment", "web", { spec });
    const { stdout, status } = await project.doctor("{ formerFieldManagers: [old] }");
    assert.is(status, 0);
    assert.equal(
      linesOf(stdout).filter((line) => line.startsWith("           ")),
      [
        `           Deployment default/${name}-web: spec.replicas (5 → 1)`,
        `           Deployment default/${name}-web: spec.strategy (gets a default)`,
      ],
    );
  });

  test("fails if the API server rejects the removal of a field, and names the field", async () => {
    await using project = await createProject();
    const { name, apply } = project;
    await apply("old", "Deployment", "web", { spec: { selector: { matchLabels: labels }, template } });
    await apply(name, "Deployment", "web", { spec: { paused: true } });
    const { stdout, status } = await project.doctor("{ formerFieldManagers: [old] }");
    assert.is(status, 1);
    assert.match(stdout, `failed   takeover of ${name}: the API server rejects what formerFieldManagers removes`);
    assert.match(
      stdout,
      /Deployment default\/\S+-web: the API server rejects the removal of spec\.selector.*\(422 at spec\.selector/,
    );
    assert.match(stdout, "return the fields from desired()");
  });
});
