// A function of the user that blocks the event loop: the Lease is not renewed, and the process ends. It is named, and holds up no other primary.
import { execFile } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { waitFor } from "#apiserver/wait-for.js";
import { assert, suite } from "../../../support/suite.js";
import { apiRequest, apiRequestOrThrow, type Connection } from "../../../support/api/api-request.js";
import { startTestApiServer } from "../../../support/api/api-server.js";
import { imageEnvironment, startFlags } from "../../../support/projects/start-flags.js";
import { pageCrd } from "../page.js";
import { programOf, run } from "./programs.js";

const startServer = () => startTestApiServer({ crds: [pageCrd] });
const LEASE = "/apis/coordination.k8s.io/v1/namespaces/default/leases/page-leader";
const PAGES = "/apis/example.com/v1/namespaces/default/pages";
const times = "leaseDurationMs: 2_000, renewDeadlineMs: 1_500, retryPeriodMs: 300";
const options = `leaderElection: { namespace: "default", ${times} },`;
// A wait blocks as a computation does, and leaves the processor to other tests.
const block = `
  const block = (ms) => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
  const isBad = ({ metadata }) => metadata.name.startsWith("bad");
`;
/** A dependent whose `desired` blocks for pages with a bad name. */
const blockingDesired = `[{ ...configMapOf("text"), desired: (args) => {
  if (isBad(args.primary)) block(2_500);
  return configMapOf("text").desired(args);
} }]`;

async function createPages(server: Connection, ...names: readonly string[]): Promise<void> {
  for (const name of names) {
    const body = { apiVersion: "example.com/v1", kind: "Page", metadata: { name }, spec: { text: name } };
    await apiRequestOrThrow(server, `POST ${PAGES}`, { body });
  }
}

const hasText = async (server: Connection, name: string): Promise<boolean> =>
  (await apiRequest(server, `GET /api/v1/namespaces/default/configmaps/${name}-text`)).status === 200;

const isReconciled = async (server: Connection, name: string): Promise<boolean> => {
  const { body } = await apiRequest(server, `GET ${PAGES}/${name}`);
  return (body as { status?: { text?: string } }).status?.text === name;
};

async function suspectsIn(server: Connection): Promise<unknown> {
  const { metadata } = (await apiRequestOrThrow(server, `GET ${LEASE}`)) as {
    metadata: { annotations?: { [name: string]: string } };
  };
  return JSON.parse(metadata.annotations?.["gen-operator.dev/suspects"] ?? "[]");
}

/** Runs a program until the process ends. */
async function runToEnd(source: string, env?: NodeJS.ProcessEnv) {
  const process = run(source, env);
  const code = await process.ended;
  const errors = process.lines().filter(({ level }) => level === "error");
  return { code, messages: errors.map(({ message }) => message), errors, output: process.output() };
}

/** Runs a program until something holds, with as many restarts as it may take; returns what it wrote in its last run. */
async function runUntil(source: string, what: string, isDone: () => Promise<boolean>, restarts = 1): Promise<string> {
  for (let left = restarts; ; left--) {
    const { child, ended, output } = run(source);
    let isOver = false;
    void ended.then(() => (isOver = true));
    await waitFor(`${what}, or it ends`, async () => isOver || (await isDone()));
    child.kill("SIGKILL");
    await ended;
    if (await isDone()) return output();
    assert.ok(left > 1, `${what}: not after ${restarts} restarts; ${output()}`);
  }
}

suite("blocked event loop", (test) => {
  test("is logged with its primary before the process exits, and delays another primary by one restart", async () => {
    await using server = await startServer();
    await createPages(server, "bad", "good");
    const program = programOf(server, { before: block, dependents: blockingDesired, options });
    const first = await runToEnd(program);
    assert.is(first.code, 1, first.output);
    const stall = first.errors.find(({ message }) => message.startsWith("the event loop was blocked for"));
    assert.match(
      stall?.message ?? first.output,
      /blocked for [12]\.\d s: desired\(\) of dependent "text" \(primary "default\/bad", controller "page"\) was running for 2\.\d s; no Lease was renewed/,
    );
    assert.ok(first.messages.some((message) => message.startsWith("lost leadership")));
    assert.equal(await suspectsIn(server), [{ controller: "page", primary: "default/bad", stalls: 1 }]);
    const second = await runToEnd(program);
    assert.is(second.code, 1, second.output);
    assert.is(await hasText(server, "good"), true, second.output);
    assert.match(second.output, 'primary \\"default/bad\\" of controller \\"page\\" is reconciled last: its functions');
    assert.equal(await suspectsIn(server), [{ controller: "page", primary: "default/bad", stalls: 2 }]);
  });

  test.thorough("of two primaries is logged with both, which are then reconciled one at a time", async () => {
    await using server = await startServer();
    await createPages(server, "bad-1", "bad-2", "good");
    const program = programOf(server, { before: block, dependents: blockingDesired, options });
    const blockingIn = ({ messages }: { readonly messages: readonly string[] }) =>
      ["bad-1", "bad-2"].filter((name) =>
        messages.some((message) => message.startsWith("the event loop was blocked") && message.includes(name)),
      );
    const first = await runToEnd(program);
    assert.is(first.code, 1);
    assert.equal(blockingIn(first), ["bad-1", "bad-2"], first.output);
    const second = await runToEnd(program);
    assert.is(await hasText(server, "good"), true, second.output);
    assert.is(blockingIn(second).length, 1, second.output);
  });

  test.thorough("by a bulk dependent is logged, and another primary is reconciled after restarts", async () => {
    await using server = await startServer();
    await createPages(server, "bad", "good");
    const dependents = `[{ ...configMapOf("text"), bulk: {}, desired: ({ primary }) => {
      const item = (key) => { if (isBad(primary)) block(2_500); return [key, { metadata: { name: primary.metadata.name + "-" + key }, data: {} }]; };
      return new Map(["text", "more"].map(item));
    } }]`;
    const program = programOf(server, { before: block, dependents, options });
    const first = await runToEnd(program);
    assert.ok(
      first.messages.some((message) => message.includes('desired() of dependent "text" (primary "default/bad"')),
      first.output,
    );
    await runUntil(program, "the other is reconciled", () => hasText(server, "good"));
  });

  test("after an await is logged with the reconciles in progress", async () => {
    await using server = await startServer();
    await createPages(server, "bad", "good");
    const reconciler = `{ reconcile: async ({ primary }) => {
      await new Promise((resolve) => setTimeout(resolve, 50));
      if (isBad(primary)) block(2_500);
      return updateStatus({ text: primary.spec.text });
    } }`;
    const program = programOf(server, { before: block, reconciler, options });
    const first = await runToEnd(program);
    assert.is(first.code, 1);
    const stall = first.messages.find((message) => message.startsWith("the event loop was blocked"));
    assert.match(
      stall ?? first.output,
      /in progress were: .*the reconciler \(primary "default\/bad", controller "page"\)/,
    );
    // Both were in progress. One that blocks alone is known, and comes after the other.
    await runUntil(program, "the other is reconciled", () => isReconciled(server, "good"), 2);
  });

  test.thorough("by a mapper is logged with the object", async () => {
    await using server = await startServer();
    await createPages(server, "good");
    const controller = `eventSources: ({ controller }) => [informerSource({
      resource: ConfigMap, name: "maps", mapper: ({ metadata }) => { if (isBad({ metadata })) block(2_500); return []; },
    })],`;
    const program = programOf(server, { before: block, controller, options });
    const process = run(program);
    await waitFor("the page is reconciled", () => hasText(server, "good"));
    const body = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "bad" } };
    await apiRequestOrThrow(server, "POST /api/v1/namespaces/default/configmaps", { body });
    assert.is(await process.ended, 1);
    assert.match(
      process.output(),
      /blocked for [12]\.\d s: the mapper of event source \\"maps\\" \(object \\"default\/bad\\", controller \\"page\\"\)/,
    );
  });

  test("is removed from the suspects in the Lease after a reconcile that does not block", async () => {
    await using server = await startServer();
    await createPages(server, "bad", "good");
    await runToEnd(programOf(server, { before: block, dependents: blockingDesired, options }));
    assert.equal(await suspectsIn(server), [{ controller: "page", primary: "default/bad", stalls: 1 }]);
    const isForgotten = async () =>
      (await hasText(server, "bad")) &&
      (await hasText(server, "good")) &&
      JSON.stringify(await suspectsIn(server)) === "[]";
    // A machine that is too busy to renew the Lease ends the process as well.
    await runUntil(programOf(server, { options }), "both are reconciled, and none is suspected", isForgotten, 3);
  });

  for (const [where, body] of [
    ["before its first await", ""],
    ["after an await", "await new Promise((resolve) => setTimeout(resolve, 50));"],
  ] as const)
    (body === "" ? test : test.thorough)(
      `caused by an endless loop ${where} makes the watchdog end the process, and another primary is reconciled`,
      async () => {
        await using server = await startServer();
        await createPages(server, "bad", "good");
        const reconciler = `{ reconcile: async ({ primary }) => {
        ${body}
        if (isBad(primary)) (function endless() { for (;;); })();
        return updateStatus({ text: primary.spec.text });
      } }`;
        const program = programOf(server, {
          before: block,
          reconciler,
          options: `${options} watchdog: { timeoutMs: 2_000, onHang: "exit" },`,
        });
        const first = await runToEnd(program);
        assert.is(first.code, 1, first.output);
        const [hang] = first.messages;
        assert.match(hang ?? "", /^the main thread has hung for \d s: .*, at endless \(.*:\d+:\d+\) < /);
        if (body === "") assert.match(hang!, 'the reconciler (primary "default/bad", controller "page") is running');
        assert.match(JSON.stringify(await suspectsIn(server)), '"primary":"default/bad"');
        await runUntil(program, "the other is reconciled", () => isReconciled(server, "good"), 2);
      },
    );

  test("is only reported by the watchdog with onHang: report", async () => {
    await using server = await startServer();
    await createPages(server, "bad");
    const reconciler = "{ reconcile: () => block(2_500) }";
    const watchdog = "watchdog: { timeoutMs: 1_000 },";
    const { child, ended, lines } = run(programOf(server, { before: block, reconciler, options: watchdog }));
    // The thread and the main thread write beside each other, and on a busy machine the start takes longer than a second, too.
    const isNamed = (pattern: RegExp) =>
      lines().some(({ level, message }) => level === "error" && pattern.test(message));
    const hang = /^the main thread has hung for [12] s: the reconciler \(primary "default\/bad"/;
    await waitFor("it is named", () => isNamed(hang), { describe: lines });
    const stall = /^the event loop was blocked for [1-4]\.\d s: the reconciler/;
    await waitFor("it is named afterwards as well", () => isNamed(stall), { describe: lines });
    child.kill("SIGTERM");
    assert.is(await ended, 0);
  });

  test("is not reported for a nearly full heap, of which one warning names the reconcile in progress", async () => {
    await using server = await startServer();
    await createPages(server, "bad");
    const before = `
      import { getHeapSpaceStatistics } from "node:v8";
      const isFull = () => getHeapSpaceStatistics().reduce((sum, each) => sum + (each.space_name.startsWith("new_") ? 0 : each.space_used_size), 0) > 184 * 2 ** 20;
    `;
    const reconciler = `{ reconcile: async () => {
      const kept = [];
      for (; !isFull(); await new Promise(setImmediate)) kept.push(new Array(30_000).fill(1));
      await new Promise((resolve) => setTimeout(resolve, 300_000));
      return kept.length;
    } }`;
    const { child, ended, lines, output } = run(programOf(server, { before, reconciler }), {
      // With the default of Node 24 one collection moves more than what is left of the heap.
      NODE_OPTIONS: "--max-old-space-size=200 --max-semi-space-size=16",
    });
    await waitFor("it warns", () => lines().some(({ message }) => message.startsWith("the heap is nearly full")));
    assert.match(
      output(),
      /nearly full: 1[89]\d MiB of 200 MiB; in progress are: the reconciler \(primary \\"default\/bad\\", controller \\"page\\"\)/,
    );
    assert.is(lines().filter(({ level }) => level === "warn").length, 1);
    child.kill("SIGKILL");
    await ended;
  });

  test("is not reported for a suspended process, and no primary is suspected", async () => {
    await using server = await startServer();
    await createPages(server, "slow");
    const reconciler = "{ reconcile: () => new Promise((resolve) => setTimeout(resolve, 60_000)) }";
    const { child, ended, started, output } = run(programOf(server, { reconciler, options }));
    await started();
    await waitFor("the reconciler runs", () => hasText(server, "slow"));
    // Whoever is stopped at work cannot be told from whoever is blocked.
    await sleep(1_000);
    child.kill("SIGSTOP");
    await sleep(3_000);
    child.kill("SIGCONT");
    assert.is(await ended, 1);
    assert.match(output(), /the process was suspended for \d\.\d s, while no function of the operator was running/);
    assert.not.match(output(), /the event loop was blocked/);
    assert.equal(await suspectsIn(server), []);
  });

  test("is logged without leader election, and the process continues", async () => {
    await using server = await startServer();
    await createPages(server, "bad", "good");
    const { child, ended, output } = run(programOf(server, { before: block, dependents: blockingDesired }));
    await waitFor("both are reconciled", async () => (await hasText(server, "bad")) && (await hasText(server, "good")));
    assert.match(output(), /blocked for [12]\.\d s: desired\(\)/);
    child.kill("SIGTERM");
    assert.is(await ended, 0);
  });
});

suite("watchdog", (test) => {
  test("uses at most 12 MB of memory", async () => {
    // What the thread loads counts, and not what this process has collected or loaded meanwhile.
    const program = `
      import { setTimeout as sleep } from "node:timers/promises";
      import ${JSON.stringify(import.meta.resolve("#runtime/index.js"))};
      import { startWatchdog } from ${JSON.stringify(import.meta.resolve("#runtime/operate/event-loop-monitor.js"))};
      await sleep(300);
      globalThis.gc();
      const before = process.memoryUsage.rss();
      const stop = startWatchdog({ timeoutMs: 20_000, onHang: "report", onBroken() {} });
      const used = [];
      for (let left = 6; left > 0; left--) {
        await sleep(500);
        used.push((process.memoryUsage.rss() - before) / 1e6);
      }
      console.log(JSON.stringify(used));
      stop();
    `;
    const args = [...startFlags, "--expose-gc", "--input-type=module", "-e", program];
    const env = { ...process.env, ...imageEnvironment };
    const measure = async () => {
      const { stdout } = await promisify(execFile)(process.execPath, args, { env });
      return JSON.parse(stdout) as number[];
    };
    // The main thread takes some memory meanwhile, more in one process than in another.
    const runs = [await measure(), await measure(), await measure()];
    const [, median] = runs.map((used) => Math.max(...used)).sort((one, other) => one - other);
    assert.ok(median! <= 12 && runs.every((used) => used.at(-1)! > 2), JSON.stringify(runs));
  });
});
