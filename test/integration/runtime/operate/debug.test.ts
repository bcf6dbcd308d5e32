// What the debug endpoint of an operator tells and does, over HTTP.
import { existsSync } from "node:fs";
import { chmod, readFile, stat, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { dirname, join } from "node:path";
import { waitFor } from "#apiserver/wait-for.js";
import { failureOf } from "../../../support/runtime/failures.js";
import { assert, suite } from "../../../support/suite.js";
import { createTemporaryFolder } from "../../../support/temporary-folder.js";
import {
  configMapOf,
  createPage,
  createPageOperator,
  Secret,
  startPageOperator,
  startPageServer,
} from "../page-operator.js";
import type { PageOperator } from "../page-operator.js";

interface Asking {
  readonly method?: string;
  readonly headers?: { readonly [name: string]: string };
  readonly body?: string;
  /** Goes away as soon as this is aborted. */
  readonly signal?: AbortSignal;
}

const debug = { debugBindAddress: "127.0.0.1:0" };

const lineOf = ({ logs }: PageOperator, begin: string) => logs.findLast((line) => line.startsWith(begin)) ?? "";
const portOf = (page: PageOperator) =>
  Number(/at 127\.0\.0\.1:(\d+)$/.exec(lineOf(page, "info serves the debug paths"))?.[1]);
const tokenFileOf = (page: PageOperator) => / is in (.+)$/.exec(lineOf(page, "info the token of the debug"))?.[1] ?? "";

/** Asks with the token, unless other headers say otherwise. */
async function ask(page: PageOperator, path: string, { method = "GET", headers, body, signal }: Asking = {}) {
  const token = (await readFile(tokenFileOf(page), "utf8").catch(() => "")).trim();
  const asked = request({
    ...{ host: "127.0.0.1", port: portOf(page), path, method, signal, agent: false },
    headers: { authorization: `Bearer ${token}`, ...headers },
  });
  return new Promise<{ status: number | undefined; text: string; headers: { [name: string]: unknown } }>(
    (resolve, reject) => {
      asked.once("error", reject).once("response", (response) => {
        let text = "";
        response.on("data", (chunk: Buffer) => (text += chunk.toString("latin1")));
        response.once("error", reject);
        response.once("end", () => resolve({ status: response.statusCode, text, headers: response.headers }));
      });
      asked.end(body);
    },
  );
}

const stateOf = async (page: PageOperator) =>
  JSON.parse((await ask(page, "/debug/state")).text) as {
    [part: string]: unknown;
    status: string;
    leadership?: { lease: string; isLeading: boolean };
    controllers: {
      page: { [part: string]: { count: number; first: { [fact: string]: unknown }[] } } & { timers: { retry: number } };
    };
    watches: { kind: string; objects: number; lastEventAgeMs: number }[];
  };

suite("debug endpoint", (test) => {
  test("is disabled by default, and rejects addresses other than loopback", async () => {
    await using page = await startPageOperator();
    assert.is(lineOf(page, "info serves the debug"), "");
    assert.throws(
      () => createPageOperator(page.server, { operator: { debugBindAddress: ":8082" } }),
      'debugBindAddress is ":8082", and has to be a loopback address such as "127.0.0.1:8082"',
    );
  });

  test("requires a token (401) from a file with mode 0600, which is deleted on shutdown", async () => {
    await using page = await startPageOperator({ operator: debug });
    const file = tokenFileOf(page);
    assert.is((await stat(file)).mode & 0o777, 0o600);
    assert.is((await stat(dirname(file))).mode & 0o777, 0o700);
    const token = (await readFile(file, "utf8")).trim();
    assert.ok(token.length >= 40 && !page.logs.some((line) => line.includes(token)), "the log has no token");
    assert.is((await ask(page, "/debug/state")).status, 200);
    const { status, headers } = await ask(page, "/debug/state", { headers: { authorization: "Bearer wrong" } });
    assert.equal([status, headers["www-authenticate"]], [401, "Bearer"]);
    await page.operator.stop();
    assert.not.ok(existsSync(dirname(file)));
  });

  test("answers 403 for other hosts and origins, 405 for other methods and 404 for other paths", async () => {
    await using page = await startPageOperator({ operator: debug });
    assert.is((await ask(page, "/debug/state", { headers: { host: "evil.example:8082" } })).status, 403);
    assert.is((await ask(page, "/debug/state", { headers: { origin: "http://localhost" } })).status, 403);
    assert.is((await ask(page, "/debug/state", { headers: { host: "localhost:8082" } })).status, 200);
    const posted = await ask(page, "/debug/state", { method: "POST" });
    assert.equal([posted.status, posted.headers["allow"]], [405, "GET, PUT"]);
    const put = await ask(page, "/debug/state", { method: "PUT" });
    assert.equal([put.status, put.headers["allow"]], [405, "GET"]);
    assert.is((await ask(page, "/debug/log-levels/page")).status, 405);
    for (const path of ["/debug/", "/debug/other", "/", "/debug/constructor", "/metrics"]) {
      const { status, text } = await ask(page, path);
      assert.is(status, 404, path);
      assert.match(text, "GET /debug/heap-snapshot\n");
    }
  });

  test("reads debugTokenFile for each request, and rejects short or invalid tokens at startup", async () => {
    await using server = await startPageServer();
    await using folder = await createTemporaryFolder();
    const debugTokenFile = join(folder.path, "token");
    const start = async () => {
      await using page = createPageOperator(server, { operator: { ...debug, debugTokenFile } });
      await page.operator.start();
    };
    assert.match(await failureOf(start), /^the token of the debug endpoint \(debugTokenFile\) cannot be read: ENOENT/);
    for (const text of ["short", "a token with blanks in it"]) {
      await writeFile(debugTokenFile, text);
      assert.match(await failureOf(start), /token \(debugTokenFile\) has to be 16 characters at least, of A-Z/);
    }
    await writeFile(debugTokenFile, "0123456789abcdef\n");
    await using page = createPageOperator(server, { operator: { ...debug, debugTokenFile } });
    await page.operator.start();
    const statusWith = async (token: string) =>
      (await ask(page, "/debug/state", { headers: { authorization: `Bearer ${token}` } })).status;
    assert.is(await statusWith("0123456789abcdef"), 200);
    await writeFile(debugTokenFile, "another-token-of-it");
    assert.equal([await statusWith("0123456789abcdef"), await statusWith("another-token-of-it")], [401, 200]);
    await writeFile(debugTokenFile, "");
    assert.is(await statusWith("another-token-of-it"), 500);
    assert.is(tokenFileOf(page), "");
  });

  test("fails the start if the token cannot be written, and names the folder", async () => {
    await using server = await startPageServer();
    await using folder = await createTemporaryFolder();
    const before = process.env["TMPDIR"];
    process.env["TMPDIR"] = join(folder.path, "none");
    try {
      await using page = createPageOperator(server, { operator: debug });
      const said = await failureOf(() => page.operator.start());
      assert.match(said, /^the token of the debug endpoint cannot be written to .*none: ENOENT.*; make that folder/);
    } finally {
      if (before === undefined) delete process.env["TMPDIR"];
      else process.env["TMPDIR"] = before;
    }
    await chmod(folder.path, 0o700);
  });
});

suite("debug endpoint state", (test) => {
  test("lists running and queued primaries, leadership and watches", async () => {
    await using server = await startPageServer();
    let finish = () => {};
    const reconciler = { reconcile: () => new Promise<void>((resolve) => (finish = resolve)) };
    const operator = { ...debug, leaderElection: { namespace: "default" } };
    await using page = createPageOperator(server, { operator, reconciler, maxConcurrentReconciles: 1, dependents: [] });
    await page.operator.start();
    await waitFor("it leads", () => page.operator.health().leadership?.isLeading);
    await createPage(page, "one");
    await createPage(page, "two");
    await waitFor("one waits", () => page.operator.controller("page").counts().queued === 1);
    const { status, leadership, controllers, watches } = await stateOf(page);
    assert.is(status, "healthy");
    assert.equal([leadership?.lease, leadership?.isLeading], ["page-leader", true]);
    const { running, queued, primaries, maxRunning, sources } = controllers.page;
    assert.equal([primaries, maxRunning, running!.count, queued!.count], [2, 1, 1, 1]);
    const { forMs, waitsFor, ...run } = running!.first[0] as { forMs: number; waitsFor: { what: string }[] };
    assert.equal(run, {
      primary: "default/one",
      attempt: 0,
      reasons: ["primary added"],
      isAborted: false,
      isHung: false,
    });
    assert.ok(forMs >= 0 && waitsFor.length === 1);
    assert.equal(waitsFor[0]?.what, "the reconciler");
    assert.equal([queued!.first[0]!["primary"], queued!.first[0]!["reasons"]], ["default/two", ["primary added"]]);
    assert.equal(sources as unknown, { primary: { status: "healthy" } });
    assert.equal(
      watches.map(({ kind, objects }) => [kind, objects]),
      [["Page.v1.example.com", 2]],
    );
    assert.ok(watches[0]!.lastEventAgeMs < 10_000);
    finish();
    await waitFor("the other one runs", () => page.events.length === 1);
    finish();
  });

  test("lists failed and paused primaries with their retry times", async () => {
    await using server = await startPageServer();
    const reconcile = () => {
      throw new Error("not yet");
    };
    const retry = { initialIntervalMs: 60_000, maxRetries: 3 };
    await using page = createPageOperator(server, {
      operator: debug,
      reconciler: { reconcile },
      retry,
      dependents: [],
    });
    await page.operator.start();
    await createPage(page, "one");
    await createPage(page, "two", { annotations: { "gen-operator.dev/paused": "true" } });
    await waitFor("one failed", () => page.events.some(({ error }) => error !== undefined));
    await page.quiet();
    const { failed, paused, timers, givenUp } = (await stateOf(page)).controllers.page;
    const { dueInMs, ...rest } = failed!.first[0] as { dueInMs: number };
    assert.equal(rest, { primary: "default/one", failures: 1, isGivenUp: false, waitsFor: "retry" });
    assert.ok(dueInMs > 50_000 && dueInMs <= 72_000, String(dueInMs));
    assert.equal(paused, { count: 1, first: ["default/two"] });
    assert.is(timers.retry, 1);
    assert.is(givenUp!.count, 0);
  });

  test("contains no object content, and is served before the operator has started", async () => {
    await using server = await startPageServer();
    const desired = () => ({ metadata: { name: "one-secret" }, stringData: { password: "hunter2hunter2" } });
    const dependents = [configMapOf("secret", { resource: Secret.definition, desired })];
    await using page = createPageOperator(server, { operator: debug, dependents });
    await page.operator.start();
    await createPage(page);
    await waitFor("it is reconciled", () => page.events.length > 0);
    const { text } = await ask(page, "/debug/state");
    assert.match(text, "Secret.v1");
    for (const content of ["hunter2", Buffer.from("hunter2hunter2").toString("base64"), '"spec"', "metadata"])
      assert.not.ok(text.includes(content), content);
    await using without = await startPageServer({ withoutCrd: true });
    await using waiting = createPageOperator(without, { operator: debug });
    const started = waiting.operator.start().catch(() => {});
    await waitFor("it serves", () => !Number.isNaN(portOf(waiting)));
    await waitFor("it starts", async () => (await stateOf(waiting)).status !== "stopped");
    assert.ok((await stateOf(waiting)).status !== "healthy");
    await waiting.operator.stop();
    await started;
  });
});
