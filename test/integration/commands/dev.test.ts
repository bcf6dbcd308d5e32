// `npm run dev` of a project, as a process: what its author changes is what runs next, and the objects stay.
import { existsSync } from "node:fs";
import { mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { waitFor } from "#apiserver/wait-for.js";
import { ApiClient } from "#runtime/client/api-client.js";
import { loadConnection } from "#runtime/client/load-connection.js";
import { type KubernetesObject, builtinKindOf } from "#runtime/base/kubernetes-object.js";
import { runCommand } from "../../support/command-line.js";
import { createPagesProject } from "../../support/projects/new-project.js";
import { startProgram } from "../../support/machine/started-program.js";
import { assert, shared, suite } from "../../support/suite.js";
import { createTemporaryFolder } from "../../support/temporary-folder.js";

const LONG = { timeoutMs: 120_000 };
const WAIT = { timeoutMs: 40_000 };
const CONFIG_MAP = {
  definition: builtinKindOf<KubernetesObject & { data?: { [key: string]: string } }>({
    kind: "ConfigMap",
    plural: "configmaps",
  }),
};
const WEB_PAGE = {
  definition: {
    ...CONFIG_MAP.definition,
    ...{ group: "example.com", apiVersion: "example.com/v1", plural: "webpages", kind: "WebPage" },
  },
};
const HELLO = { name: "hello", namespace: "default" };
const STUB = "src/webpage/dependents/config-map.ts";

const EXAMPLE = `apiVersion: example.com/v1
kind: WebPage
metadata: { name: hello }
spec: { html: "<h1>hello</h1>" }
`;

/** Starts the command in a new project, after a change of its workflow.yaml. */
async function startDev(change = (spec: string): string => spec) {
  const project = await createPagesProject();
  const spec = join(project.path, "workflow.yaml");
  await writeFile(spec, change(await readFile(spec, "utf8")));
  await mkdir(join(project.path, "examples"));
  await writeFile(join(project.path, "examples/hello.yaml"), EXAMPLE);
  const program = startProgram(project.path, "dev");
  return {
    ...program,
    folder: project.path,
    async edit(path: string, from: string | RegExp, to: string): Promise<void> {
      const text = await readFile(join(project.path, path), "utf8");
      const edited = text.replace(from, to);
      assert.not.equal(edited, text, `${path} has no ${from}`);
      await writeFile(join(project.path, path), edited);
    },
    async client() {
      const kubeconfig = join(project.path, "dist/dev/kubeconfig");
      return new ApiClient(await loadConnection({ kubeconfig }));
    },
    async [Symbol.asyncDispose]() {
      await program[Symbol.asyncDispose]();
      await project[Symbol.asyncDispose]();
    },
  };
}

/** Returns the processes that run in a folder. */
async function processesIn(folder: string): Promise<string[]> {
  if (!existsSync("/proc/self/cwd")) return [];
  const { readlink } = await import("node:fs/promises");
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const found = await Promise.all(
    pids.map(async (pid) => ((await readlink(`/proc/${pid}/cwd`).catch(() => "")) === folder ? [pid] : [])),
  );
  return found.flat();
}

/** The session of all tests but the last: it takes seconds of processor time to begin one. */
const session = shared(startDev);

suite("npm run dev", (test) => {
  test.thorough(
    "restarts the operator on edits and keeps its objects",
    async () => {
      const dev = await session();
      await dev.see("applied CustomResourceDefinition webpages.example.com");
      await dev.see("applied WebPage default/hello");
      await dev.see(/operator ready in \d/);
      await dev.see("default/hello  configMap: created");
      const client = await dev.client();
      const first = await client.get(CONFIG_MAP, HELLO);
      assert.ok(first !== undefined);

      await dev.edit(STUB, "data: {}", "data: { page: primary.spec.html }");
      await dev.see(/operator ready in \d/);
      await waitFor(
        "the new data",
        async () => (await client.get(CONFIG_MAP, HELLO))?.data?.["page"] === "<h1>hello</h1>",
      );
      assert.is((await client.get(CONFIG_MAP, HELLO))?.metadata.uid, first.metadata.uid);
      await client.close();
    },
    LONG,
  );

  test.thorough(
    "regenerates code for a new CRD field and a new dependent",
    async () => {
      const dev = await session();
      const client = await dev.client();
      await dev.edit(
        "crds/webpages.example.com.yaml",
        /^( +)html:/m,
        "$1title: { type: string, default: untitled }\n$1html:",
      );
      await dev.see("updated src/generated/");
      await dev.see("applied CustomResourceDefinition webpages.example.com");
      await dev.see(/operator ready in \d/);
      await dev.edit(STUB, "primary.spec.html", "`${primary.spec.title}`");
      await dev.see(/operator ready in \d/);
      await waitFor(
        "the default of the new field",
        async () => (await client.get(CONFIG_MAP, HELLO))?.data?.["page"] === "untitled",
      );

      await dev.edit("workflow.yaml", "  dependents:\n", "  dependents:\n    service: { resource: v1/Service }\n");
      await dev.see("created src/webpage/dependents/service.ts");
      await dev.see("default/hello  service: created");
      await client.close();
    },
    LONG,
  );

  test.thorough(
    "keeps the operator running during errors, and prints their positions",
    async () => {
      const dev = await session();
      await dev.edit(STUB, /^  data: .*/m, "  data: 1,");
      await dev.see(/config-map\.ts:\d+:\d+ - error TS\d+: Type 'number'/);
      await dev.see("1 error; the operator keeps running with the previous code");
      await dev.edit(STUB, "data: 1", "data: {{");
      await dev.see(/config-map\.ts:\d+:\d+ - error/);
      await dev.edit("workflow.yaml", "dependents:", "dependants:");
      await dev.see(/workflow\.yaml:\d+:\d+: error unknown-field/);
      const client = await dev.client();
      const version = (await client.get(CONFIG_MAP, HELLO))?.metadata.resourceVersion;
      // The operator from before repairs what somebody damages.
      await client.delete(CONFIG_MAP, HELLO);
      await dev.see("default/hello  configMap: created");
      assert.not.equal((await client.get(CONFIG_MAP, HELLO))?.metadata.resourceVersion, version);
      await client.close();
      await dev.edit("workflow.yaml", "dependants:", "dependents:");
      await dev.edit(STUB, "data: {{", 'data: { fixed: "" }');
      await dev.see(/operator ready in \d/);
      await dev.see("default/hello  configMap: updated");
    },
    LONG,
  );

  test.thorough(
    "prints why the operator exited, and restarts it on the next change",
    async () => {
      const dev = await session();
      await dev.edit(
        "src/main.ts",
        "await runOperator",
        'if (controllers.length > 0) throw new Error("no luck");\nawait runOperator',
      );
      await dev.see("src/main.ts:4");
      await dev.see("operator exited (exit code 1); it restarts after the next change");
      await dev.edit("src/main.ts", "controllers.length > 0", "controllers.length > 9");
      await dev.see(/operator ready in \d/);
    },
    LONG,
  );

  test.thorough(
    "restores dist after it was deleted, and restarts the operator",
    async () => {
      const dev = await session();
      // The line is printed before the folder is there again. What dev writes meanwhile makes a removal fail now and then.
      const remove = async () => {
        await waitFor("the folder of dev", () => existsSync(join(dev.folder, "dist/dev/kubeconfig")), WAIT);
        await rm(join(dev.folder, "dist"), { recursive: true, maxRetries: 5 });
      };
      await remove();
      await dev.see("dist/dev was deleted; restoring it");
      await dev.see(/operator ready in \d/);
      for (let afterMs = 60; afterMs <= 300; afterMs += 40) {
        await dev.edit("src/main.ts", /$/, " ");
        await delay(afterMs);
        await remove();
        await dev.see("dist/dev was deleted; restoring it");
      }
      await dev.edit("src/main.ts", / +$/, "");
      await dev.see(/operator ready in \d/);
      const client = await dev.client();
      await client.delete(CONFIG_MAP, HELLO);
      await dev.see("default/hello  configMap: created");
      await client.close();
    },
    LONG,
  );

  test.thorough(
    "applies the examples once a workflow.yaml that was invalid at the start is repaired",
    async () => {
      await using dev = await startDev((spec) => spec.replace("dependents:", "dependants:"));
      await dev.see(/workflow\.yaml:\d+:\d+: error unknown-field/);
      await dev.edit("workflow.yaml", "dependants:", "dependents:");
      await dev.see("applied WebPage default/hello");
    },
    LONG,
  );

  test.thorough(
    "exits with 1 if another process runs the project, without disturbing it",
    async () => {
      const dev = await session();
      const second = await runCommand(dev.folder, "dev");
      assert.is(second.status, 1);
      assert.match(second.stderr, `another gen-operator dev (process ${dev.pid}) is running `);
      await (await dev.client()).close();
    },
    LONG,
  );

  test.thorough(
    "logs the deletion of a primary, and leaves no files or processes after shutdown",
    async () => {
      const dev = await session();
      const client = await dev.client();
      await client.delete(WEB_PAGE, HELLO);
      await dev.see("default/hello: deleted");
      await client.close();
      dev.stop();
      assert.is(await dev.ended, 0, dev.output());
      assert.not.ok(existsSync(join(dev.folder, "dist")), "a file is left behind");
      assert.equal(await processesIn(dev.folder), []);
    },
    LONG,
  );

  test.thorough(
    "exits with 1 if packages are not installed or the kubeconfig is missing",
    async () => {
      await using folder = await createTemporaryFolder();
      const bare = await runCommand(folder.path, "dev");
      assert.is(bare.status, 1);
      assert.match(bare.stderr, /^gen-operator: @gen-operator\/runtime is not installed in .*; run npm install there/);
      await using project = await createPagesProject();
      const nowhere = await runCommand(project.path, "dev", "--kubeconfig", "/nowhere");
      assert.is(nowhere.status, 1);
      assert.match(nowhere.stderr, /^gen-operator: cannot read the kubeconfig file \/nowhere/);
      assert.not.ok(existsSync(join(project.path, "dist")));
    },
    LONG,
  );

  test.thorough(
    "leaves no operator process after SIGKILL, and can be started again",
    async () => {
      await using dev = await startDev();
      await dev.see("default/hello  configMap: created");
      process.kill(dev.pid, "SIGKILL");
      await dev.ended;
      await waitFor("the end of the operator", async () => (await processesIn(dev.folder)).length === 0, WAIT);
      await using next = startProgram(dev.folder, "dev");
      await next.see("default/hello  configMap: created");
    },
    LONG,
  );
});
