// An operator as a process: when it ends, with which exit code, and what it says before.
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { startApiServer } from "#apiserver/index.js";
import { waitFor } from "#apiserver/wait-for.js";
import { assert, suite } from "../../../support/suite.js";
import { createTemporaryFolder } from "../../../support/temporary-folder.js";
import { pageCrd, startPageServer } from "../page-operator.js";
import { programOf, run } from "./programs.js";

const NOWHERE = "http://127.0.0.1:1";

suite("operator process", (test) => {
  test("exits with 1 after START_TIMEOUT, and gives the reason", async () => {
    const { ended, lines } = run(programOf({ url: NOWHERE }), { START_TIMEOUT: "5s" });
    assert.is(await ended, 1);
    const { level, message } = lines().at(-1)!;
    assert.is(level, "error");
    assert.match(message, "the operator could not start within 5000 ms");
    assert.match(message, NOWHERE);
  });

  test("verifies the certificate of the API server despite NODE_TLS_REJECT_UNAUTHORIZED=0", async () => {
    await using server = await startApiServer({ tls: true });
    const env = { START_TIMEOUT: "2s", NODE_TLS_REJECT_UNAUTHORIZED: "0" };
    const { url, token } = server;
    const { ended, output } = run(programOf({ url, token }), env);
    assert.is(await ended, 1);
    assert.match(output(), /self-signed certificate|unable to verify the first certificate/);
    assert.is(server.requests.length, 0);
  });

  test("verifies the certificate of an HTTPS proxy despite NODE_TLS_REJECT_UNAUTHORIZED=0", async () => {
    await using proxy = await startApiServer({ tls: true });
    const env = { START_TIMEOUT: "2s", NODE_TLS_REJECT_UNAUTHORIZED: "0", HTTPS_PROXY: proxy.url };
    const { ended, output } = run(programOf({ url: "https://example.invalid" }), env);
    assert.is(await ended, 1);
    assert.match(output(), /self-signed certificate|unable to verify the first certificate/);
  });

  test("logs one warning with the kubeconfig context if insecure-skip-tls-verify is set", async () => {
    await using server = await startApiServer({ tls: true, crds: [pageCrd] });
    await using temporary = await createTemporaryFolder();
    const kubeconfig = join(temporary.path, "config");
    const cluster = { server: server.url, "insecure-skip-tls-verify": true };
    const config = {
      "current-context": "c",
      contexts: [{ name: "c", context: { cluster: "x", user: "u" } }],
      clusters: [{ name: "x", cluster }],
      users: [{ name: "u", user: { token: server.token } }],
    };
    await writeFile(kubeconfig, JSON.stringify(config));
    const { child, ended, started, lines } = run(
      programOf(server).replace(/\{ connection,\s*\}/, `{ kubeconfig: ${JSON.stringify(kubeconfig)} }`),
    );
    await started();
    child.kill("SIGTERM");
    await ended;
    const warnings = lines().filter(({ level }) => level === "warn");
    assert.equal(
      warnings.map(({ message }) => message),
      [
        `the certificate of the API server at ${server.url} is not verified: insecure-skip-tls-verify is set in kubeconfig ${kubeconfig}, context "c"; ` +
          "set certificate-authority instead, as anyone on the network can read the token",
      ],
    );
  });

  test("exits with 1 without controllers", async () => {
    const { ended, lines } = run(programOf({ url: NOWHERE }).replace("[controller]", "[]"));
    assert.is(await ended, 1);
    assert.equal(
      lines().map(({ level, message }) => [level, message]),
      [["error", "runOperator() was given no controllers; pass at least one"]],
    );
  });

  test("exits with 0 on SIGTERM, before and after the start", async () => {
    await using server = await startPageServer();
    for (const url of [NOWHERE, server.url]) {
      const { child, ended, output } = run(programOf({ url, token: server.token }));
      await waitFor("it runs", () => output() !== "");
      child.kill("SIGTERM");
      assert.is(await ended, 0, output());
    }
  });

  test.thorough("runs code after runOperator() and exits with 0 on SIGTERM", async () => {
    await using server = await startPageServer();
    const { child, ended, started, output } = run(
      programOf(server, {
        before: "const keepsAlive = setInterval(() => {}, 1_000);",
        after: 'console.error("closed by the user");',
      }),
    );
    await started();
    child.kill("SIGTERM");
    assert.is(await ended, 0, output());
    assert.match(output(), "closed by the user");
  });

  test("exits with 1 when it loses leadership, before the lease expires", async () => {
    await using server = await startPageServer();
    const times = "leaseDurationMs: 3_000, renewDeadlineMs: 1_000, retryPeriodMs: 200";
    const { ended, lines, started } = run(
      programOf(server, { options: `leaderElection: { namespace: "default", ${times} }` }),
    );
    await started();
    await waitFor("it leads", () => lines().some(({ message }) => message.startsWith("acquired Lease")));
    server.faults.add({ path: "/leases/", hang: true });
    assert.is(await ended, 1);
    const { message } = lines().at(-1)!;
    assert.match(
      message,
      /^lost leadership: its Lease was not renewed for 1\d\d\d ms; Lease "[^"]+" could not be renewed: no answer/,
    );
  });

  test.thorough("stops the operator when the given signal is aborted, and keeps the process running", async () => {
    await using server = await startPageServer();
    const { ended, lines, output } = run(
      programOf(server, {
        before: "const owner = new AbortController(); setTimeout(() => owner.abort(new Error('enough')), 1_500);",
        options: "signal: owner.signal",
        after: 'setTimeout(() => console.error("the owner goes on"), 2_500);',
      }),
    );
    assert.is(await ended, 0, output());
    assert.ok(lines().some(({ message }) => message === "stopping"));
    const { level, message, finished } = lines().at(-1)!;
    assert.equal({ level, message, finished }, { level: "info", message: "stopped", finished: true });
    assert.match(output(), "the owner goes on");
  });

  test.thorough("exits with 1 if a reconcile does not return during shutdown", async () => {
    await using server = await startPageServer();
    const path = "/apis/example.com/v1/namespaces/default/pages";
    const { child, ended, lines, output } = run(
      programOf(server, {
        reconciler: '{ reconcile: () => { console.error("it hangs"); return new Promise(() => {}); } }',
        options: "stopTimeoutMs: 100",
      }),
    );
    const body = { apiVersion: "example.com/v1", kind: "Page", metadata: { name: "one" }, spec: { text: "x" } };
    const headers = { "content-type": "application/json", authorization: `Bearer ${server.token}` };
    await fetch(`${server.url}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
    await waitFor("it hangs", () => output().includes("it hangs"));
    child.kill("SIGTERM");
    assert.is(await ended, 1, output());
    assert.is(lines().find(({ message }) => message === "stopped")?.finished, false);
  });

  for (const [what, code] of [
    ["an unhandled rejection", "const lost = Promise.reject(new Error('lost by the user'));"],
    ["an error thrown in a timer", "setTimeout(() => { throw new Error('lost by the user'); }, 10);"],
  ] as const)
    test(`exits with 1 and one line with the stack after ${what}`, async () => {
      await using server = await startPageServer();
      const { ended, lines, output } = run(programOf(server, { before: `setTimeout(() => { ${code} }, 1_000);` }));
      assert.is(await ended, 1, output());
      const fatal = lines().filter(({ level }) => level === "error");
      assert.is(fatal.length, 1, output());
      assert.is(fatal[0]!.message, "uncaught error, shutting down: lost by the user");
      assert.match(fatal[0]!.stack!, /Error: lost by the user\n +at /);
      assert.is(output().trim().split("\n").at(-1)!.startsWith("{"), true, "nothing but lines of the log");
    });
});
