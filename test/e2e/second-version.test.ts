// A project that is generated, compiled and started; then changed, and all of that again on the same API server.
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { waitFor } from "#apiserver/wait-for.js";
import { apiRequest, apiRequestOrThrow, type ApiObject } from "../support/api-request.js";
import { startTestApiServer } from "../support/api-server.js";
import { runCommand } from "../support/command-line.js";
import { compileProject, compilers } from "../support/compile.js";
import { createPagesProject } from "../support/new-project.js";
import { startFlags } from "../support/start-flags.js";
import { startCommand } from "../support/started-program.js";
import { assert, suite } from "../support/suite.js";

const PAGES = "POST /apis/example.com/v1/namespaces/default/webpages";
const CONFIG_MAPS = "/api/v1/namespaces/default/configmaps";
/** The fastest one; which of them compiles is not the question here. */
const compiler = compilers.at(-1)?.command ?? "";
const WAIT = { timeoutMs: 40_000 };
const page = { apiVersion: "example.com/v1", kind: "WebPage", metadata: { name: "home" }, spec: { html: "x" } };

suite("the second version of an operator", (test) => {
  test(
    "keeps the object of a dependent that moved renames",
    async () => {
      await using project = await createPagesProject();
      await using server = await startTestApiServer({ crds: [join(project.path, "crds/webpages.example.com.yaml")] });
      const env = { ...process.env, KUBECONFIG: server.kubeconfig };
      const compile = () => assert.is(compileProject(project.path, compiler), "");
      const start = () => startCommand(project.path, [process.execPath, ...startFlags, "dist/src/main.js"], env);
      const configMap = async () => (await apiRequest<ApiObject>(server, `GET ${CONFIG_MAPS}/home`)).body;
      const dependentOf = ({ metadata }: ApiObject) => metadata?.annotations?.["gen-operator.dev/dependent"];

      compile();
      const first = start();
      await apiRequestOrThrow(server, PAGES, { body: page });
      await waitFor("the config map", async () => dependentOf(await configMap()) === "configMap", WAIT);
      const before = await configMap();
      first.stop();
      assert.is(await first.ended, 0, first.output());

      const workflow = join(project.path, "workflow.yaml");
      const text = (await readFile(workflow, "utf8")).replace("    configMap:", "    page:");
      await writeFile(workflow, `${text}  moved:\n    - { from: configMap, to: page }\n`);
      const { status, stderr } = await runCommand(project.path, "generate");
      assert.is(status, 0, stderr);
      assert.match(await readFile(join(project.path, "src/webpage/dependents/page.ts"), "utf8"), "PageDesired");
      compile();
      await using second = start();
      await waitFor("the config map under its new name", async () => dependentOf(await configMap()) === "page", WAIT);
      assert.is((await configMap()).metadata.uid, before.metadata.uid);
      const { body } = await apiRequest<{ items: ApiObject[] }>(server, `GET ${CONFIG_MAPS}`);
      const own = body.items.filter((each) => dependentOf(each) !== undefined);
      assert.equal(
        own.map(({ metadata }) => metadata.name),
        ["home"],
      );
      second.stop();
      assert.is(await second.ended, 0, second.output());
    },
    { timeoutMs: 180_000 },
  );
});
