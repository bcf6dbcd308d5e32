// A test that replaces the timers and the clock by fake ones runs in a process of its own.
import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { repositoryRoot } from "../../support/repository.js";
import { assert, suite } from "../../support/suite.js";
import { createTemporaryFolder } from "../../support/temporary-folder.js";

const INDEX = join(repositoryRoot, "apiserver/dist/index.js");

/** What every such test does: it starts a server, writes, watches, and waits for a simulated Pod. */
const BODY = `
  const server = await startApiServer({ simulate: true, unref: true });
  const { X509Certificate } = await import("node:crypto");
  const ask = (path, options) => new Promise((resolve, reject) => {
    const { body, ...rest } = options ?? {};
    const headers = { authorization: "Bearer " + server.token, "content-type": "application/json" };
    const request = https.request(server.url + path, { ca: server.ca, headers, ...rest }, (answer) => {
      let text = "";
      answer.on("data", (chunk) => { text += chunk; });
      answer.on("end", () => resolve(JSON.parse(text)));
    });
    request.on("error", reject).end(body);
  });
  const pods = "/api/v1/namespaces/default/pods";
  const spec = { containers: [{ name: "c", image: "i" }] };
  await waitFor("the Pod is created", async () => {
    const answer = await ask(pods, { method: "POST", body: JSON.stringify({ apiVersion: "v1", kind: "Pod", metadata: { name: "p" }, spec }) });
    return answer.kind === "Pod";
  });
  const pod = await waitFor("the Pod runs", async () => {
    const answer = await ask(pods + "/p");
    return answer.status?.phase === "Running" ? answer : undefined;
  });
  const { validFrom, validTo } = new X509Certificate(server.ca);
  console.log("years " + validFrom.slice(-8, -4) + " " + validTo.slice(-8, -4));
  console.log("created " + pod.metadata.creationTimestamp.slice(0, 4));
  await server.close();
`;

suite("API server with fake timers", (test) => {
  test("starts, watches, and simulates while node:test mocks timers and the date", async () => {
    const output = await runTest(`
      import { test, mock } from "node:test";
      import https from "node:https";
      import { startApiServer, waitFor } from ${JSON.stringify(INDEX)};
      test("it works", async () => {
        mock.timers.enable({ apis: ["setTimeout", "setInterval", "setImmediate", "Date"], now: Date.UTC(2001, 0, 1) });
        ${BODY}
      });
    `);
    assert.match(output, /years 1970 2049/);
    assert.match(output, new RegExp(`created ${new Date().getUTCFullYear()}`));
    assert.match(output, /# fail 0/);
  });

  test("starts, watches, and simulates while timers are replaced by ones that never fire (vitest, jest)", async () => {
    const output = await runTest(`
      import { test } from "node:test";
      import https from "node:https";
      import { startApiServer, waitFor } from ${JSON.stringify(INDEX)};
      const RealDate = Date;
      const faked = ["setTimeout", "setInterval", "setImmediate", "clearTimeout", "clearInterval", "queueMicrotask"];
      test("it works", async () => {
        const before = Object.fromEntries(faked.map((name) => [name, globalThis[name]]));
        for (const name of faked) globalThis[name] = () => ({ unref() {}, ref() {} });
        globalThis.Date = class extends RealDate {
          constructor(...given) { super(...(given.length === 0 ? [0] : given)); }
          static now() { return 0; }
        };
        performance.now = () => 0;
        ${BODY.replace("await server.close();", "globalThis.Date = RealDate; Object.assign(globalThis, before); await server.close();")}
      });
    `);
    assert.match(output, /years 1970 2049/);
    assert.match(output, new RegExp(`created ${new Date().getUTCFullYear()}`));
    assert.match(output, /# fail 0/);
  });
});

async function runTest(source: string): Promise<string> {
  await using folder = await createTemporaryFolder();
  const file = join(folder.path, "fake.test.mjs");
  await writeFile(file, source);
  const environment = { ...process.env, NODE_TEST_CONTEXT: undefined };
  const run = promisify(execFile)(process.execPath, ["--test", "--test-reporter=tap", file], {
    env: environment,
    timeout: 60_000,
  });
  const { stdout, stderr } = await run.catch((error: { stdout: string; stderr: string }) => error);
  return stdout + stderr;
}
