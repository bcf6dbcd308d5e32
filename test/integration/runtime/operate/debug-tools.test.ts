// What the debug endpoint changes and records: levels of the log, CPU profiles, heap snapshots.
import { Readable } from "node:stream";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { getHeapSnapshot } from "node:v8";
import { waitFor } from "#apiserver/wait-for.js";
import { debugHandler, DEBUG_METHODS, type Probing } from "#runtime/operate/debug-endpoint.js";
import { HttpEndpoint } from "#runtime/operate/http-endpoint.js";
import { type LogLevel, createLeveledLogger, createLogger } from "#runtime/base/logger.js";
import { createTemporaryFolder } from "../../../support/temporary-folder.js";
import { runOperator } from "#runtime/api/run-operator.js";
import { assert, suite } from "../../../support/suite.js";
import { Page, startPageServer } from "../page-operator.js";

const TOKEN = "a-token-of-the-debug-endpoint";
const headers = { authorization: `Bearer ${TOKEN}` };
const MB = 2 ** 20;

/** Serves the debug paths with another way to look into the process. */
async function serve(probing: Partial<Probing> = {}, own?: Parameters<typeof createLeveledLogger>[0]) {
  const logs: string[] = [];
  const write = (line: string) => void logs.push((JSON.parse(line) as { message: string }).message);
  const { logger, levels } = createLeveledLogger(own ?? createLogger("debug", { write }));
  const subject = {
    ...{ logger, levels, names: ["page", "web job"], instance: "page-7d9/x" },
    ...{ health: () => ({ status: "healthy" as const, controllers: {} }), controllers: () => [], informers: () => [] },
  };
  const token = { open: async () => {}, read: async () => TOKEN, close: async () => {} };
  const room = { usedHeapBytes: MB, residentBytes: MB, freeBytes: 1_000 * MB };
  const handle = debugHandler(subject, token, {
    recordCpuProfile: async () => "{}",
    readMemoryFacts: () => room,
    takeHeapSnapshot: () => Readable.from(["{}"]),
    ...probing,
  });
  const options = { what: "the debug paths", setting: "debugBindAddress", methods: DEBUG_METHODS, logger, handle };
  const endpoint = new HttpEndpoint({ address: { host: "127.0.0.1", port: 0 }, ...options });
  await endpoint.open();
  const ask = async (path: string, { body, signal }: { body?: string; signal?: AbortSignal } = {}) => {
    const method = body === undefined ? "GET" : "PUT";
    const url = `http://127.0.0.1:${endpoint.port}${path}`;
    const response = await fetch(url, {
      method,
      headers,
      ...(body !== undefined && { body }),
      ...(signal && { signal }),
    });
    return { status: response.status, text: await response.text(), headers: response.headers };
  };
  return { ask, logger, levels, logs, [Symbol.asyncDispose]: () => endpoint.close() };
}

suite("debug endpoint log levels", (test) => {
  test("returns the levels, and changes them for one controller or the operator", async () => {
    await using served = await serve();
    const { ask, logger, logs, levels } = served;
    levels.operator = "info";
    const debug = (controller?: string) => logger.debug({ controller }, `in detail ${controller}`);
    assert.equal(JSON.parse((await ask("/debug/log-levels")).text), { operator: "info", controllers: {} });
    const { status, text } = await ask("/debug/log-levels/web%20job", { body: '{"level":"debug"}' });
    assert.equal([status, JSON.parse(text)], [200, { operator: "info", controllers: { "web job": "debug" } }]);
    assert.ok(logs.includes('the debug endpoint sets the log level of controller "web job" to debug'));
    debug("web job");
    debug("page");
    assert.equal(
      logs.filter((line) => line.startsWith("in detail")),
      ["in detail web job"],
    );
    assert.is((await ask("/debug/log-levels", { body: '{"level":"debug"}' })).status, 200);
    debug("page");
    assert.ok(logs.includes("in detail page"));
    assert.is((await ask("/debug/log-levels/page", { body: '{"level":"silent"}' })).status, 200);
    logger.error({ controller: "page" }, "unheard");
    assert.not.ok(logs.includes("unheard"));
  });

  test("answers 404 for an unknown controller, 400 for an invalid level and 413 for a large body", async () => {
    await using served = await serve();
    const { ask } = served;
    assert.equal(
      await ask("/debug/log-levels/other", { body: '{"level":"debug"}' }).then(({ status, text }) => [status, text]),
      [404, '404 not found: there is no controller "other", only page, web job\n'],
    );
    for (const body of ['{"level":"loud"}', "debug", "null", "", "[]"]) {
      const { status, text } = await ask("/debug/log-levels/page", { body });
      assert.is(status, 400, body);
      assert.match(text, 'the body has to be {"level":"debug"}, with one of debug, info, warn, error, silent\n');
    }
    assert.is((await ask("/debug/log-levels", { body: " ".repeat(100_000) })).status, 413);
    assert.equal(JSON.parse((await ask("/debug/log-levels")).text), { operator: "debug", controllers: {} });
  });

  test("answers 409 for a level that the user-defined logger does not write", async () => {
    const lines: string[] = [];
    await using served = await serve({}, createLogger("warn", { write: (line) => void lines.push(line) }));
    const { status, text } = await served.ask("/debug/log-levels", { body: '{"level":"debug"}' });
    assert.equal(
      [status, text.trim()],
      [409, "409 conflict: the logger of this operator writes no debug lines; give it one that does"],
    );
    assert.is((await served.ask("/debug/log-levels", { body: '{"level":"error"}' })).status, 200);
  });

  test("applies to a process until its settings file changes", async () => {
    await using server = await startPageServer();
    await using folder = await createTemporaryFolder();
    const [file, debugTokenFile] = [join(folder.path, "config.yaml"), join(folder.path, "token")];
    await writeFile(debugTokenFile, TOKEN);
    await writeFile(file, "logLevel: info\n");
    const lines: string[] = [];
    const log = (level: string) => (_: object, message: string) => void lines.push(`${level} ${message}`);
    const ending = new AbortController();
    const controller = { name: "page", workflow: { primary: Page.definition, dependents: [] } };
    const ended = runOperator([controller], {
      args: [`--config=${file}`, "--debug-bind-address=127.0.0.1:0", `--debug-token-file=${debugTokenFile}`],
      connection: { url: server.url, token: server.token },
      signal: ending.signal,
      logger: { debug: log("debug"), info: log("info"), warn: log("warn"), error: log("error") },
    });
    const port = await waitFor(
      "it serves",
      () =>
        /the debug paths at 127\.0\.0\.1:(\d+)$/.exec(
          lines.find((line) => line.includes("the debug paths")) ?? "",
        )?.[1],
    );
    const levels = async (body?: string) => {
      const method = body === undefined ? "GET" : "PUT";
      const url = `http://127.0.0.1:${port}/debug/log-levels`;
      const answer = await fetch(url, { method, headers, ...(body !== undefined && { body }) });
      return ((await answer.json()) as { operator: LogLevel }).operator;
    };
    assert.is(await levels(), "info");
    assert.is(await levels('{"level":"debug"}'), "debug");
    await writeFile(file, "logLevel: warn\n");
    await waitFor("the file is taken over", async () => (await levels()) === "warn", { timeoutMs: 15_000 });
    ending.abort();
    await ended;
  });
});

suite("debug endpoint profiles", (test) => {
  test("returns a CPU profile of the requested duration, and answers 400 for an invalid one", async () => {
    const seconds: number[] = [];
    await using served = await serve({ recordCpuProfile: async (ms) => (seconds.push(ms / 1000), '{"nodes":[]}') });
    const { status, text, headers } = await served.ask("/debug/cpu-profile");
    assert.equal([status, text], [200, '{"nodes":[]}']);
    assert.match(headers.get("content-disposition") ?? "", /^attachment; filename="page-7d9_x-[\dTZ-]+\.cpuprofile"$/);
    assert.is((await served.ask("/debug/cpu-profile?seconds=1.5")).status, 200);
    for (const wrong of ["0", "61", "x", "", "-1"])
      assert.is((await served.ask(`/debug/cpu-profile?seconds=${wrong}`)).status, 400, wrong);
    assert.equal(seconds, [10, 1.5]);
  });

  test("answers 409 during another recording, which ends when its client disconnects", async () => {
    let recording: AbortSignal | undefined;
    const recordCpuProfile: Probing["recordCpuProfile"] = (_, signal) =>
      new Promise((_resolve, reject) => {
        recording = signal;
        signal.addEventListener("abort", () => reject(signal.reason as Error));
      });
    await using served = await serve({ recordCpuProfile });
    const leaving = new AbortController();
    const first = served.ask("/debug/cpu-profile", { signal: leaving.signal }).catch(() => {});
    await waitFor("it records", () => recording !== undefined);
    for (const path of ["/debug/cpu-profile", "/debug/heap-snapshot"]) {
      const { status, text } = await served.ask(path);
      assert.equal([status, text], [409, "409 conflict: another profile or snapshot is under way\n"]);
    }
    leaving.abort();
    await first;
    await waitFor("it ends", () => recording?.aborted);
    await waitFor("others may", async () => (await served.ask("/debug/heap-snapshot")).status === 200);
    assert.ok(served.logs.some((line) => line.includes("was aborted: the client went away")));
  });

  test("answers 503 for a heap snapshot without enough memory, with the missing amount", async () => {
    let hasRoom = false;
    const readMemoryFacts = () => ({
      ...{ usedHeapBytes: 100 * MB, residentBytes: 200 * MB, freeBytes: 2_000 * MB },
      ...(hasRoom ? {} : { limitBytes: 512 * MB }),
    });
    await using served = await serve({ readMemoryFacts });
    const { status, text } = await served.ask("/debug/heap-snapshot");
    assert.is(status, 503);
    assert.match(text, "may take 800 MiB, and the process has 312 MiB left: 488 MiB are missing");
    hasRoom = true;
    const given = await served.ask("/debug/heap-snapshot");
    assert.equal([given.status, given.text], [200, "{}"]);
    assert.match(given.headers.get("content-disposition") ?? "", /\.heapsnapshot"$/);
  });

  test("releases a heap snapshot when its client disconnects", async () => {
    const streams: Readable[] = [];
    const takeHeapSnapshot = () => {
      const endless = new Readable({ read: () => void endless.push(Buffer.alloc(65_536)) });
      streams.push(endless);
      return endless;
    };
    await using served = await serve({ takeHeapSnapshot });
    const leaving = new AbortController();
    const first = served.ask("/debug/heap-snapshot", { signal: leaving.signal }).catch(() => {});
    await waitFor("it comes", () => streams.length === 1);
    assert.is((await served.ask("/debug/cpu-profile")).status, 409);
    leaving.abort();
    await first;
    await waitFor("it is let go", () => streams[0]!.destroyed);
    assert.is((await served.ask("/debug/cpu-profile")).status, 200);
  });

  test("records a CPU profile and a heap snapshot of the process", async () => {
    const { recordCpuProfile } = await import("#runtime/operate/debug-endpoint.js");
    const { readMemoryFacts } = await import("#runtime/operate/debug-endpoint.js");
    await using served = await serve({
      recordCpuProfile: (_, signal) => recordCpuProfile(50, signal),
      takeHeapSnapshot: () => getHeapSnapshot(),
    });
    const { snapshot } = JSON.parse((await served.ask("/debug/heap-snapshot")).text) as {
      snapshot: { node_count: number };
    };
    assert.ok(snapshot.node_count > 1_000);
    const profile = JSON.parse((await served.ask("/debug/cpu-profile")).text) as {
      nodes: unknown[];
      samples: unknown[];
    };
    assert.ok(profile.nodes.length > 0 && profile.samples.length > 0);
    const { usedHeapBytes, residentBytes, freeBytes, limitBytes } = readMemoryFacts();
    assert.ok(usedHeapBytes > MB && residentBytes > usedHeapBytes && freeBytes > 0);
    assert.ok(limitBytes === undefined || limitBytes > residentBytes);
    const aborted = AbortSignal.abort(new Error("gone"));
    await assert.rejects(recordCpuProfile(10, aborted), "gone");
  });
});
