// What a platform team sets without a rebuild: as a process sees it.
import { spawn } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { waitFor } from "#apiserver/wait-for.js";
import type { ApiServer } from "#apiserver/index.js";
import { assert, suite } from "../../../support/suite.js";
import { createTemporaryFolder } from "../../../support/temporary-folder.js";
import { createPage, createPageOperator, startPageServer } from "../page-operator.js";

/** Runs an operator of Pages as a process with these flags and this environment; its reconciles end only when it is asked to stop. */
function run(server: ApiServer, args: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const program = `
    import { runOperator } from ${JSON.stringify(import.meta.resolve("#runtime/index.js"))};
    import { Page } from ${JSON.stringify(import.meta.resolve("../page.js"))};
    const workflow = { primary: Page.definition, dependents: [] };
    const reconcile = ({ primary, context }) => new Promise((resolve) => {
      context.logger.info({}, "begins " + primary.metadata.name);
      context.logger.debug({}, "in detail " + primary.metadata.name);
      context.signal.addEventListener("abort", () => resolve());
    });
    const controller = { name: "page", workflow, reconciler: { reconcile }, maxConcurrentReconciles: 3 };
    await runOperator([controller], { connection: { url: "${server.url}", token: "${server.token}" }, stopTimeoutMs: 100 });`;
  // In place of the path of a script.
  const child = spawn(process.execPath, ["--input-type=module", "-e", program, "--", "operator", ...args], {
    env: { ...process.env, ...env },
  });
  let output = "";
  let help = "";
  child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()));
  child.stdout.on("data", (chunk: Buffer) => (help += chunk.toString()));
  const ended = new Promise<number | null>((done) => child.once("close", (code) => done(code)));
  const messages = () =>
    output
      .split("\n")
      .flatMap((line) => (line.startsWith("{") ? (JSON.parse(line) as { message: string }).message : []));
  return {
    ...{ ended, messages },
    output: () => output,
    help: () => help,
    begun: () => messages().filter((message) => message.startsWith("begins")).length,
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await ended;
    },
  };
}

suite("settings of an operator process", (test) => {
  test("exit with 1 for an empty path, and accept enumerations in any case", async () => {
    await using server = await startPageServer();
    for (const [args, problem] of [
      [["--kubeconfig="], '--kubeconfig is "", and has to be a path'],
      [["--config", ""], "--config needs a value"],
      [["--debug-token-file="], '--debug-token-file is "", and has to be a path'],
    ] as const) {
      await using process = run(server, args);
      assert.is(await process.ended, 1);
      assert.match(process.output(), problem);
    }
    await using process = run(server, ["--leader-election-on-loss=Standby"], { LOG_LEVEL: "WARN", LOG_FORMAT: "Json" });
    await waitFor("it lists", () => server.requests.length > 0);
    assert.equal(process.messages(), [], process.output());
  });

  test("are listed by --help, which starts nothing", async () => {
    await using server = await startPageServer();
    await using process = run(server, ["--help"]);
    assert.is(await process.ended, 0);
    assert.match(process.help(), "--leader-elect\n");
    assert.match(process.help(), "--controllers.page.max-concurrent-reconciles\n");
    assert.is(process.output(), "");
    assert.is(server.requests.length, 0);
  });

  test.thorough(
    "exit with 1 before any request if they are invalid, and list all problems with their lines",
    async () => {
      await using server = await startPageServer();
      await using folder = await createTemporaryFolder();
      const file = join(folder.path, "config.yaml");
      await writeFile(file, "logLevel: info\nleaderElect: true\n");
      await using wrongFile = run(server, [], { CONFIG_FILE: file });
      assert.is(await wrongFile.ended, 1);
      assert.match(wrongFile.output(), `${file}:2:1: leaderElect is no setting; must be one of logLevel, `);
      await using wrongFlag = run(server, ["--concurrency=5"]);
      assert.is(await wrongFlag.ended, 1);
      assert.is(wrongFlag.output(), "--concurrency: unknown flag; see --help\n");
      await using unfit = run(server, ["--controllers.page.rate-limit.within=1s"]);
      assert.is(await unfit.ended, 1);
      assert.match(unfit.output(), "controllers.page.rateLimit requires both maxReconciliations and within");
      const addresses = ["--health-probe-bind-address=:6x", "--debug-bind-address=0.0.0.0:8082", "--namespaces=,"];
      await using unread = run(server, addresses);
      assert.is(await unread.ended, 1);
      assert.equal(unread.output().trim().split("\n"), [
        '--health-probe-bind-address is ":6x", and has to be an address such as ":8081" or "127.0.0.1:8081", or "0" for none',
        '--debug-bind-address is "0.0.0.0:8082", and has to be a loopback address such as "127.0.0.1:8082" or "[::1]:8082", or "0" for none',
        '--namespaces is ",", and has to be a list of namespaces, or namespaces with commas between; one at least',
      ]);
      await using impossible = run(server, ["--leader-elect", "--leader-elect-lease-duration=5s"]);
      assert.is(await impossible.ended, 1);
      assert.match(
        impossible.output(),
        /^leaderElection: leaseDuration \(5000 ms\) has to be above renewDeadline \(10000 ms\)[^\n]*\n$/,
      );
      assert.is(server.requests.length, 0);
    },
  );

  test("take precedence in the order flag, environment, file, code", async () => {
    await using server = await startPageServer();
    await using folder = await createTemporaryFolder();
    await using admin = createPageOperator(server);
    for (const name of ["a", "b", "c", "d"]) await createPage(admin, name);
    const file = join(folder.path, "config.yaml");
    await writeFile(file, "controllers: { page: { maxConcurrentReconciles: 4, logLevel: debug } }\n");
    const variable = { CONTROLLERS_PAGE_MAX_CONCURRENT_RECONCILES: "2" };
    const cases = [
      [[], {}, 3],
      [[`--config=${file}`], {}, 4],
      [[`--config=${file}`], variable, 2],
      [["--controllers.page.max-concurrent-reconciles", "1"], variable, 1],
    ] as const;
    for (const [args, env, count] of cases) {
      await using process = run(server, args, env);
      await waitFor("it reconciles", () => process.begun() === count);
      await new Promise((resolve) => setTimeout(resolve, 100));
      assert.is(process.begun(), count);
      assert.is(/in detail/.test(process.output()), args[0]?.startsWith("--config") === true);
    }
  });

  test("are reloaded when the file changes, except invalid values and those that need a restart", async () => {
    await using server = await startPageServer();
    await using folder = await createTemporaryFolder();
    await using admin = createPageOperator(server);
    for (const name of ["a", "b", "c"]) await createPage(admin, name);
    const file = join(folder.path, "config.yaml");
    await writeFile(file, "controllers: { page: { maxConcurrentReconciles: 1 } }\n");
    await using process = run(server, [`--config=${file}`]);
    await waitFor("it reconciles one", () => process.begun() === 1);
    await writeFile(file, "controllers: { page: { maxConcurrentReconciles: two } }\n");
    const refused =
      /^cannot reload the settings file, keeping the current settings: .*config\.yaml:1:49: controllers\.page\.maxConcurrentReconciles is "two"/;
    const says = (pattern: RegExp) =>
      waitFor(`it says ${pattern}`, () => process.messages().some((message) => pattern.test(message)));
    await says(refused);
    await writeFile(
      file,
      "controllers: { page: { maxConcurrentReconciles: 2, logLevel: debug, labelSelector: a=b } }\n",
    );
    await waitFor("it reconciles two", () => process.begun() === 2);
    await says(/^in detail/);
    await says(/^settings changed that require a restart: controllers\.page\.labelSelector$/);
    await says(/^applied changed settings: controllers\.page\.logLevel, controllers\.page\.maxConcurrentReconciles$/);
  });
});
