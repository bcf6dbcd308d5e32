// The README's first command, as a process.
import { execFile } from "node:child_process";
import { readdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { repositoryRoot } from "../../support/repository.js";
import { apiRequestOrThrow } from "../../support/api/api-request.js";
import { isRealApiServer, startTestApiServer } from "../../support/api/api-server.js";
import { isThorough, ONLY_THOROUGH } from "../../support/runs.js";
import { assert, suite } from "../../support/suite.js";

/** Runs the demo; with `endsAt` it is sent SIGINT when it prints this. */
function demo(args: string[] = [], { endsAt }: { endsAt?: string } = {}): Promise<{ code: number; output: string }> {
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      [join(repositoryRoot, "demo/dist/demo.js"), ...args],
      (error, stdout, stderr) => {
        resolve({ code: error === null ? 0 : Number(error.code), output: stdout + stderr });
      },
    );
    let printed = "";
    child.stdout?.on("data", (text: string) => {
      const isBefore = !printed.includes(endsAt ?? text);
      printed += text;
      if (endsAt !== undefined && isBefore && printed.includes(endsAt)) child.kill("SIGINT");
    });
  });
}

const leftFolders = async () => (await readdir(tmpdir())).filter((name) => name.startsWith("gen-operator-demo-"));

suite("demo", (test) => {
  if (!isThorough && !isRealApiServer) return test.skip("all tests", ONLY_THOROUGH);
  test(
    "generates, compiles and runs the sample, and leaves no folders",
    async () => {
      const { code, output } = await demo();
      assert.is(code, 0, output);
      for (const line of [
        "hello  service: waiting, for deployment",
        "hello  ingress: created",
        "world  service: created",
        "nothing is left",
      ])
        assert.ok(output.includes(line), `${line} is missing in:\n${output}`);
      assert.match(output, /\d+ API calls by the operator: /);
      assert.equal(await leftFolders(), []);
    },
    { timeoutMs: 60_000 },
  );

  test(
    "runs on an existing cluster",
    async () => {
      await using server = await startTestApiServer({ simulate: true });
      const { code, output } = await demo(["--kubeconfig", server.kubeconfig]);
      assert.is(code, 0, output);
      assert.ok(output.includes("nothing is left"), output);
    },
    { timeoutMs: 120_000 },
  );

  test(
    "deletes its objects on SIGINT and exits with 1",
    async () => {
      await using server = await startTestApiServer({ simulate: true });
      const { code, output } = await demo(["--kubeconfig", server.kubeconfig], {
        endsAt: "hello  deployment: created",
      });
      assert.is(code, 1, output);
      assert.match(output, "SIGINT: deletes what the demo has made");
      for (const path of ["/api/v1/namespaces", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"]) {
        const { items = [] } = await apiRequestOrThrow(server, `GET ${path}`);
        const left = items.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
        for (const { metadata } of left) assert.not.match(metadata.name, /gen-operator-demo|webpages/);
      }
      assert.equal(await leftFolders(), []);
    },
    { timeoutMs: 120_000 },
  );

  test(
    "exits with 1 and an error if the kubeconfig is missing",
    async () => {
      const { code, output } = await demo(["--kubeconfig", "/nowhere/kubeconfig"]);
      assert.is(code, 1);
      assert.match(output, /the demo failed: cannot read the kubeconfig file \/nowhere\/kubeconfig/);
      assert.equal(await leftFolders(), []);
    },
    { timeoutMs: 60_000 },
  );
});
