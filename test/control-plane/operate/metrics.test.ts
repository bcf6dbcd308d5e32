// What Prometheus finds at an operator beside a real API server.
import { execFileSync, spawnSync } from "node:child_process";
import { join } from "node:path";
import { waitFor } from "#apiserver/wait-for.js";
import { createOperator } from "#runtime/api/operator.js";
import { apiRequestOrThrow, createAgent } from "../../support/api/api-request.js";
import { installCrd } from "../../support/api/api-server.js";
import { borrowControlPlane } from "../../support/machine/borrow-control-plane.js";
import { freePorts } from "../../support/machine/free-ports.js";
import { repositoryRoot } from "../../support/repository.js";
import { assert, shared, suite } from "../../support/suite.js";
import { createTemporaryFolder } from "../../support/temporary-folder.js";
import { Page, pageCrd } from "../../integration/runtime/page-operator.js";

const PAGES = 10_000;
const AT_ONCE = 50;
const lint = join(repositoryRoot, "test/control-plane/clients/promlint");
const server = shared(() => borrowControlPlane());
const isInstalled = spawnSync("go", ["version"]).status === 0;

suite("operator metrics", (test) => {
  test(
    `have the same number of series after ${PAGES} primaries as after 10`,
    async () => {
      const plane = await server();
      await installCrd(plane, pageCrd);
      const [port = 0] = await freePorts(1);
      let reconciles = 0;
      const workflow = { primary: Page.definition, dependents: [] };
      const controller = { name: "page", workflow, reconciler: { reconcile: () => void reconciles++ } };
      await using operator = createOperator({
        ...{ controllers: [controller], connection: plane },
        metricsBindAddress: `127.0.0.1:${port}`,
      });
      await operator.start();
      const agent = createAgent(plane);
      const path = "POST /apis/example.com/v1/namespaces/default/pages";
      const create = async (from: number, to: number) => {
        let next = from;
        const one = async () => {
          while (next < to) {
            const body = {
              apiVersion: "example.com/v1",
              kind: "Page",
              metadata: { name: `page-${next++}` },
              spec: { text: "a" },
            };
            await apiRequestOrThrow(plane, path, { body, agent });
          }
        };
        await Promise.all(Array.from({ length: AT_ONCE }, one));
        await waitFor("all are reconciled", () => reconciles >= to, { timeoutMs: 120_000 });
      };
      const scrape = async () => (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
      // How often which code was answered may have its first case at any time.
      const seriesIn = (text: string) =>
        text
          .split("\n")
          .filter((line) => !/^(#|$|nodejs_|process_|rest_client_requests_total)/.test(line))
          .map((line) => line.slice(0, line.lastIndexOf(" ")));
      await create(0, 10);
      const before = new Set(seriesIn(await scrape()));
      await create(10, PAGES);
      agent.destroy();
      const text = await scrape();
      const added = seriesIn(text).filter((series) => !before.has(series));
      assert.equal(added, []);
      assert.not.match(text, /page-\d/);
      assert.match(text, `gen_operator_cached_objects{kind="Page.v1.example.com"} ${PAGES}`);
    },
    { timeoutMs: 240_000 },
  );

  const title = "pass promtool check metrics";
  if (!isInstalled) return test.skip(title, "there is no Go");
  test(
    title,
    async () => {
      const plane = await server();
      await using folder = await createTemporaryFolder();
      const program = join(folder.path, "promlint");
      const env = { ...process.env, CGO_ENABLED: "0", GOWORK: "off" };
      execFileSync("go", ["build", "-o", program, "."], { cwd: lint, env });
      const [port = 0] = await freePorts(1);
      const workflow = { primary: Page.definition, dependents: [] };
      await using operator = createOperator({
        ...{ controllers: [{ name: "page", workflow }], connection: plane },
        ...{ metricsBindAddress: `127.0.0.1:${port}`, leaderElection: { namespace: "default" } },
      });
      await operator.start();
      const input = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
      const { status, stdout } = spawnSync(program, { input, encoding: "utf8" });
      assert.equal([stdout, status], ["", 0]);
      const wrong = spawnSync(program, { input: "# TYPE bad_total gauge\nbad_total 1\n", encoding: "utf8" });
      assert.is(wrong.status, 3, "it finds what is wrong");
    },
    { timeoutMs: 120_000 },
  );
});
