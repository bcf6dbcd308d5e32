// The probes of an operator, over HTTP.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { waitFor } from "#apiserver/wait-for.js";
import { failureOf } from "../../../support/runtime/failures.js";
import { assert, suite } from "../../../support/suite.js";
import {
  createPage,
  createPageOperator,
  type PageOperator,
  startPageOperator,
  startPageServer,
} from "../page-operator.js";

/** The port that the operator says it serves at. */
const portOf = ({ logs }: PageOperator) =>
  Number(/at 127\.0\.0\.1:(\d+)$/.exec(logs.findLast((line) => line.startsWith("info serves the probes")) ?? "")?.[1]);

async function ask(operator: PageOperator, path: string, method = "GET") {
  const response = await fetch(`http://127.0.0.1:${portOf(operator)}${path}`, { method });
  return { status: response.status, text: await response.text() };
}

const probes = { healthProbeBindAddress: "127.0.0.1:0" };

suite("probes", (test) => {
  test("return 200, and list each check with ?verbose", async () => {
    await using page = await startPageOperator({ operator: probes });
    for (const path of ["/livez", "/readyz", "/startupz", "/healthz"])
      assert.equal(await ask(page, path), { status: 200, text: "ok" });
    assert.equal((await ask(page, "/readyz?verbose")).text.split("\n"), [
      ...["[+]operator ok", "[+]controller/page ok", "[+]controller/page/primary ok", "[+]controller/page/text ok"],
      ...["readyz check passed", ""],
    ]);
    assert.is((await ask(page, "/startupz?verbose")).text, "[+]started ok\nstartupz check passed\n");
    assert.equal(await ask(page, "/other"), { status: 404, text: "404 page not found\n" });
    assert.equal(await ask(page, "/constructor"), { status: 404, text: "404 page not found\n" });
    assert.equal(await ask(page, "/livez", "POST"), { status: 405, text: "only GET and HEAD\n" });
    assert.equal(await ask(page, "/livez", "HEAD"), { status: 200, text: "" });
  });

  test("return 503 for startupz and readyz during the start, with the reason, and 200 for livez", async () => {
    await using server = await startPageServer({ withoutCrd: true });
    await using page = createPageOperator(server, { operator: probes });
    const started = page.operator.start().catch(() => {});
    await waitFor("it serves", () => !Number.isNaN(portOf(page)));
    await waitFor("it says what it waits for", async () => /pages/.test((await ask(page, "/startupz")).text));
    assert.is((await ask(page, "/livez")).status, 200);
    for (const path of ["/startupz", "/readyz"]) {
      const { status, text } = await ask(page, path);
      assert.is(status, 503);
      assert.match(text, /^\[-\]controller\/page failed: .*pages/m);
    }
    await page.operator.stop();
    await started;
  });

  test("return 503 for readyz with the failed watch, and 200 for livez", async () => {
    await using page = await startPageOperator({ operator: probes });
    page.server.faults.add({ verb: ["list", "watch"], forbid: true });
    page.server.faults.cutWatches();
    const isForbidden = /^\[-\]controller\/page\/primary failed: .*forbidden/m;
    const read = async () => (await ask(page, "/readyz?verbose")).text;
    const text = await waitFor("it is not ready", async () => (isForbidden.test(await read()) ? read() : undefined));
    assert.match(text, /^readyz check failed$/m);
    assert.equal(await ask(page, "/livez"), { status: 200, text: "ok" });
    assert.is((await ask(page, "/startupz")).status, 200);
  });

  test("return 200 on a standby, and name the leader", async () => {
    await using server = await startPageServer();
    const operator = { ...probes, leaderElection: { namespace: "default" } };
    await using leader = createPageOperator(server, { operator });
    await leader.operator.start();
    await waitFor("it leads", () => leader.operator.health().leadership?.isLeading);
    await using other = createPageOperator(server, { operator });
    await other.operator.start();
    assert.equal(await ask(other, "/readyz"), { status: 200, text: "ok" });
    const { identity } = leader.operator.health().leadership!;
    await waitFor("it knows the leader", () => other.operator.health().leadership?.leader === identity);
    assert.ok(
      (await ask(other, "/readyz?verbose")).text.includes(
        `[+]leader-election ok: standing by, leader is "${identity}"`,
      ),
    );
    assert.ok(
      (await ask(leader, "/readyz?verbose")).text.includes("[+]leader-election ok: this replica is the leader"),
    );
  });

  test("return 503 for readyz while the Lease cannot be acquired, with the reason", async () => {
    await using server = await startPageServer();
    const refused = server.faults.add({ verb: "create", path: "/leases", forbid: true });
    await using page = createPageOperator(server, {
      operator: { ...probes, leaderElection: { namespace: "default" } },
    });
    await page.operator.start();
    const read = async () => (await ask(page, "/readyz?verbose")).text;
    const failed =
      /^\[-\]leader-election failed: no leader is known to this replica: Lease "default\/page-leader" could not be acquired .*403/m;
    await waitFor("it is not ready", async () => failed.test(await read()));
    assert.is((await ask(page, "/livez")).status, 200);
    refused.remove();
    await waitFor("it leads", async () => (await read()).includes("[+]leader-election ok: this replica is the leader"));
  });

  test("readyz fails during shutdown, and the endpoint is closed afterwards", async () => {
    await using server = await startPageServer();
    let finish = () => {};
    const reconciler = { reconcile: () => new Promise<void>((resolve) => (finish = resolve)) };
    await using page = createPageOperator(server, { operator: probes, reconciler });
    await page.operator.start();
    await createPage(page);
    await waitFor("it reconciles", () => page.operator.controller("page").counts().running === 1);
    const stopped = page.operator.stop();
    assert.equal((await ask(page, "/readyz")).text.split("\n")[0], "[-]operator failed: it is stopped, or stops");
    assert.is((await ask(page, "/livez")).status, 200);
    finish();
    await stopped;
    assert.match(await failureOf(() => ask(page, "/livez")), /fetch failed/);
    await page.operator.start();
    assert.is((await ask(page, "/livez")).status, 200, "a second start opens them again");
  });

  test("run user-defined checks with a timeout", async () => {
    await using server = await startPageServer();
    const checks = {
      ready: { database: () => Promise.reject(new Error("no route to the database")) },
      live: { slow: () => new Promise(() => {}), fine: () => {} },
    };
    await using page = createPageOperator(server, { operator: { ...probes, checks } });
    await page.operator.start();
    assert.match((await ask(page, "/readyz")).text, /^\[-\]database failed: no route to the database$/m);
    assert.is((await ask(page, "/readyz?exclude=database")).text, "ok");
    const { status, text } = await ask(page, "/livez");
    assert.is(status, 503);
    assert.match(text, /^\[\+\]fine ok$/m);
    assert.match(text, /^\[-\]slow failed: no answer within 900 ms$/m);
  });

  test("fail the start if their address is in use", async () => {
    await using server = await startPageServer();
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
    const { port } = other.address() as AddressInfo;
    await using page = createPageOperator(server, { operator: { healthProbeBindAddress: `127.0.0.1:${port}` } });
    assert.is(
      await failureOf(() => page.operator.start()),
      `the probes cannot be served at 127.0.0.1:${port}: another process listens there; ` +
        'set healthProbeBindAddress to another address, or to "0" to disable it',
    );
    other.close();
  });
});
