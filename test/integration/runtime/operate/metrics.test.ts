// What Prometheus finds at an operator.
import { once } from "node:events";
import { waitFor } from "#apiserver/wait-for.js";
import { METRICS } from "#runtime/operate/metrics.js";
import { TerminalError } from "#runtime/base/errors.js";
import { startAccountService } from "../dependents/account-service.js";
import { accountOf } from "../dependents/sample-externals.js";
import { assert, suite } from "../../../support/suite.js";
import {
  configMapOf,
  createPage,
  createPageOperator,
  Page,
  setText,
  startPageOperator,
  startPageServer,
  textReconciler,
  untilText,
} from "../page-operator.js";
import type { PageOperator } from "../page-operator.js";

const metrics = { metricsBindAddress: "127.0.0.1:0" };

async function scrape({ logs }: PageOperator, authorization?: string) {
  const line = logs.findLast((each) => each.startsWith("info serves the metrics")) ?? "";
  const url = `http://${/at (127\.0\.0\.1:\d+)$/.exec(line)?.[1]}/metrics`;
  const response = await fetch(url, authorization === undefined ? {} : { headers: { authorization } });
  const text = await response.text();
  const valueOf = (series: string) => {
    const found = text.split("\n").find((each) => each.startsWith(`${series} `));
    return found === undefined ? undefined : Number(found.slice(series.length + 1));
  };
  // What Node says of its own resources comes and goes.
  const series = text.split("\n").filter((each) => each !== "" && !/^(#|nodejs_|process_)/.test(each)).length;
  return { status: response.status, type: response.headers.get("content-type"), text, valueOf, series };
}

const queue = '{name="page",controller="page"}';

const OUTCOMES = ["created", "updated", "unchanged", "waiting", "deleted", "inactive", "left", "failed"];

suite("metrics", (test) => {
  test("count reconciles, requests and dependents under the names of controller-runtime", async () => {
    await using page = await startPageOperator({ operator: metrics });
    await createPage(page);
    await untilText(page, "first");
    await setText(page, "second");
    await untilText(page, "second");
    await page.quiet();
    const { status, type, text, valueOf } = await scrape(page);
    assert.is(status, 200);
    assert.match(type ?? "", /^text\/plain; version=0\.0\.4/);
    const reconciles = page.events.length;
    assert.is(valueOf('controller_runtime_reconcile_total{controller="page",result="success"}'), reconciles);
    assert.is(valueOf('controller_runtime_reconcile_time_seconds_count{controller="page"}'), reconciles);
    assert.is(valueOf(`workqueue_queue_duration_seconds_count${queue}`), reconciles);
    assert.is(valueOf(`workqueue_adds_total${queue}`), reconciles);
    assert.is(valueOf(`workqueue_depth${queue}`), 0);
    assert.is(valueOf('controller_runtime_active_workers{controller="page"}'), 0);
    assert.is(valueOf('controller_runtime_max_concurrent_reconciles{controller="page"}'), 50);
    const dependent = 'controller="page",dependent="text"';
    assert.is(valueOf(`gen_operator_dependent_duration_seconds_count{${dependent},outcome="created"}`), 1);
    assert.is(valueOf(`gen_operator_dependent_duration_seconds_count{${dependent},outcome="updated"}`), 1);
    assert.is(valueOf('gen_operator_cached_objects{kind="Page.v1.example.com"}'), 1);
    assert.is(valueOf('gen_operator_cached_objects{kind="ConfigMap.v1"}'), 1);
    assert.ok(valueOf('gen_operator_watch_last_event_age_seconds{kind="ConfigMap.v1"}')! < 10);
    const patches = page.requests.filter((line) => line.startsWith("PATCH") && line.endsWith("200")).length;
    const host = new URL(page.server.url).host;
    assert.is(valueOf(`rest_client_requests_total{code="200",method="PATCH",host="${host}"}`), patches);
    for (const name of [
      "process_cpu_seconds_total",
      "process_resident_memory_bytes",
      "nodejs_eventloop_lag_max_seconds",
    ])
      assert.ok(valueOf(name) !== undefined, name);
    for (const name of Object.keys(METRICS)) assert.ok(text.includes(`# HELP ${name} `), name);
  });

  test("start at 0", async () => {
    await using page = await startPageOperator({ operator: metrics });
    const { valueOf } = await scrape(page);
    for (const result of ["success", "error", "requeue", "requeue_after"])
      assert.is(valueOf(`controller_runtime_reconcile_total{controller="page",result="${result}"}`), 0, result);
    const own = '{controller="page"}';
    assert.is(valueOf(`controller_runtime_reconcile_errors_total${own}`), 0);
    assert.is(valueOf(`controller_runtime_terminal_reconcile_errors_total${own}`), 0);
    assert.is(valueOf(`controller_runtime_reconcile_time_seconds_count${own}`), 0);
    assert.is(valueOf('controller_runtime_reconcile_time_seconds_bucket{controller="page",le="+Inf"}'), 0);
    for (const name of ["queue_duration_seconds_count", "work_duration_seconds_count", "retries_total", "adds_total"])
      assert.is(valueOf(`workqueue_${name}${queue}`), 0, name);
    for (const outcome of OUTCOMES) {
      const labels = `{controller="page",dependent="text",outcome="${outcome}"}`;
      assert.is(valueOf(`gen_operator_dependent_duration_seconds_count${labels}`), 0, outcome);
    }
    const loops = 'controller="page",dependent="text",kind="ConfigMap.v1"';
    assert.is(valueOf(`gen_operator_write_loops_total{${loops}}`), 0);
    assert.is(valueOf('gen_operator_write_loops_total{controller="page",dependent="",kind="Page.v1.example.com"}'), 0);
  });

  test("start at 0 for external dependents and named workflows", async () => {
    await using service = await startAccountService();
    await using page = await startPageOperator({
      dependents: [configMapOf("text"), accountOf("account", service)],
      workflows: {
        backup: {
          primary: Page.definition,
          dependents: [configMapOf("copy"), accountOf("archive", service)],
        },
      },
      operator: metrics,
    });
    const { valueOf, text } = await scrape(page);
    for (const dependent of ["text", "account", "copy", "archive"]) {
      const labels = `controller="page",dependent="${dependent}"`;
      for (const outcome of OUTCOMES)
        assert.is(
          valueOf(`gen_operator_dependent_duration_seconds_count{${labels},outcome="${outcome}"}`),
          0,
          `${dependent} ${outcome}`,
        );
      const isExternal = ["account", "archive"].includes(dependent);
      const kind = isExternal ? "ExternalResource" : "ConfigMap.v1";
      assert.is(valueOf(`gen_operator_write_loops_total{${labels},kind="${kind}"}`), 0, dependent);
      for (const verb of ["created", "updated", "deleted"])
        assert.is(
          valueOf(`gen_operator_external_writes_total{${labels},verb="${verb}"}`),
          isExternal ? 0 : undefined,
          `${dependent} ${verb}`,
        );
    }
    // A metric that is added later has its series, too.
    for (const [name, { type, labels }] of Object.entries(METRICS)) {
      if (type === "gauge" || !labels.includes("controller")) continue;
      assert.match(text, new RegExp(`^${name}(_count)?\\{.*controller="page"`, "m"), name);
    }
  });

  test("include an event loop delay before the first scrape", async () => {
    await using page = await startPageOperator({ operator: metrics });
    for (const end = performance.now() + 1_500; performance.now() < end;);
    const { valueOf } = await scrape(page);
    assert.ok(valueOf("nodejs_eventloop_lag_max_seconds")! >= 0.9, String(valueOf("nodejs_eventloop_lag_max_seconds")));
  });

  test("count no error if a reconcile is aborted by the deletion of its primary", async () => {
    await using server = await startPageServer();
    let hasBegun = false;
    const dependents = [
      configMapOf("text", {
        desired: async ({ context: { signal } }) => {
          hasBegun = true;
          await once(signal, "abort");
          throw signal.reason;
        },
      }),
    ];
    const reconciler = { ...textReconciler, cleanup: () => {} };
    await using page = createPageOperator(server, { dependents, reconciler, operator: metrics });
    await page.operator.start();
    await createPage(page);
    await waitFor("it is reconciled", () => hasBegun);
    await page.operator.client.delete(Page, { name: "one", namespace: "default" });
    await waitFor("it is cleaned up", () => page.events.some(({ kind }) => kind === "cleanup"));
    await page.quiet();
    const ends = page.events.map(({ kind, error, isEnded }) => [kind, error !== undefined, isEnded]);
    assert.equal(ends, [
      ["reconcile", true, true],
      ["cleanup", false, undefined],
    ]);
    const { valueOf } = await scrape(page);
    assert.is(valueOf('controller_runtime_reconcile_errors_total{controller="page"}'), 0);
    assert.is(valueOf('controller_runtime_reconcile_total{controller="page",result="requeue"}'), 1);
  });

  test("count requests by status, including watches and requests without a response", async () => {
    await using server = await startPageServer();
    await using page = createPageOperator(server, { operator: metrics });
    // The state of each kind comes by a watch, or by a list before it.
    server.faults.add({ verb: "watch", path: "/pages", times: 2, answer: { status: 503, message: "not yet" } });
    await page.operator.start();
    await page.quiet();
    const host = new URL(server.url).host;
    const counted = async (code: string) => {
      const { valueOf } = await scrape(page);
      return valueOf(`rest_client_requests_total{code="${code}",method="GET",host="${host}"}`) ?? 0;
    };
    const answered = (status: number) =>
      server.requests.filter(({ method, status: given }) => method === "GET" && given === status).length;
    assert.ok(server.requests.some(({ verb }) => verb === "watch"));
    for (const status of [200, 503]) assert.is(await counted(`${status}`), answered(status));
    assert.ok(answered(503) > 0);
    assert.is(await counted("<error>"), 0);
    await server.close();
    await waitFor("a watch finds no server", async () => (await counted("<error>")) > 0);
  });

  test("count requests for the Lease", async () => {
    await using server = await startPageServer();
    const leaderElection = { namespace: "default", leaseDurationMs: 3_000, renewDeadlineMs: 2_000, retryPeriodMs: 50 };
    await using page = createPageOperator(server, { operator: { ...metrics, leaderElection }, dependents: [] });
    await page.operator.start();
    const host = new URL(server.url).host;
    const renewals = () =>
      server.requests.filter(
        ({ method, path, status }) => method === "PUT" && path.includes("/leases/") && status === 200,
      ).length;
    await waitFor("the Lease is renewed", () => renewals() >= 3);
    const before = renewals();
    const { valueOf } = await scrape(page);
    const counted = valueOf(`rest_client_requests_total{code="200",method="PUT",host="${host}"}`) ?? 0;
    // An answer may be under way.
    assert.ok(before - 1 <= counted && counted <= renewals(), `${counted} of ${renewals()}`);
    const created = `rest_client_requests_total{code="201",method="POST",host="${host}"}`;
    assert.is(
      valueOf(created),
      server.requests.filter(({ method, status }) => method === "POST" && status === 201).length,
    );
  });

  test("count errors, terminal errors and retries", async () => {
    await using server = await startPageServer();
    let failures = 0;
    const reconcile = () => {
      throw ++failures < 3 ? new Error("not yet") : new TerminalError("never");
    };
    const retry = { initialIntervalMs: 1, maxIntervalMs: 5, maxRetries: 10 };
    await using page = createPageOperator(server, { operator: metrics, reconciler: { reconcile }, retry });
    await page.operator.start();
    await createPage(page);
    await waitFor("it is given up", () => page.operator.controller("page").givenUp.count === 1);
    const { valueOf } = await scrape(page);
    assert.is(valueOf('controller_runtime_reconcile_total{controller="page",result="error"}'), 3);
    assert.is(valueOf('controller_runtime_reconcile_errors_total{controller="page"}'), 3);
    assert.is(valueOf('controller_runtime_terminal_reconcile_errors_total{controller="page"}'), 1);
    assert.is(valueOf(`workqueue_retries_total${queue}`), 2);
    assert.is(valueOf('gen_operator_given_up_primaries{controller="page"}'), 1);
  });

  test("report running and queued work and leadership at scrape time", async () => {
    await using server = await startPageServer();
    let finish = () => {};
    const reconciler = { reconcile: () => new Promise<void>((resolve) => (finish = resolve)) };
    const operator = { ...metrics, leaderElection: { namespace: "default" } };
    await using page = createPageOperator(server, { operator, reconciler, maxConcurrentReconciles: 1, dependents: [] });
    await page.operator.start();
    await waitFor("it leads", () => page.operator.health().leadership?.isLeading);
    await createPage(page, "one");
    await createPage(page, "two");
    await waitFor("one waits", () => page.operator.controller("page").counts().queued === 1);
    const { valueOf } = await scrape(page);
    assert.is(valueOf('controller_runtime_active_workers{controller="page"}'), 1);
    assert.is(valueOf(`workqueue_depth${queue}`), 1);
    assert.ok(valueOf(`workqueue_longest_running_processor_seconds${queue}`)! > 0);
    assert.ok(valueOf(`workqueue_unfinished_work_seconds${queue}`)! > 0);
    assert.is(valueOf('leader_election_master_status{name="page-leader"}'), 1);
    await using other = createPageOperator(server, { operator });
    await other.operator.start();
    assert.is((await scrape(other)).valueOf('leader_election_master_status{name="page-leader"}'), 0);
    finish();
    await waitFor("the other one runs", () => page.events.length === 1);
    finish();
  });

  test("count ended watches by reason, and write loops", async () => {
    await using server = await startPageServer();
    const desired = () => ({ metadata: { name: "one-text" }, data: { text: String(Math.random()) } });
    const dependents = [configMapOf("text", { desired })];
    await using page = createPageOperator(server, { operator: metrics, dependents, maxReconciliationIntervalMs: 20 });
    await page.operator.start();
    await createPage(page);
    const endsOf = (reason: string) => `gen_operator_watch_ends_total{kind="Page.v1.example.com",reason="${reason}"}`;
    server.faults.endWatches();
    await waitFor("a watch has ended", async () => (await scrape(page)).valueOf(endsOf("ended")) === 1);
    assert.is((await scrape(page)).valueOf(endsOf("failed")), 0);
    const loops = 'gen_operator_write_loops_total{controller="page",dependent="text",kind="ConfigMap.v1"}';
    await waitFor("a loop is noticed", async () => ((await scrape(page)).valueOf(loops) ?? 0) > 0);
    const postponed = 'gen_operator_postponed_writes{controller="page"}';
    await waitFor("a write waits", async () => (await scrape(page)).valueOf(postponed) === 1);
  });

  test("have the same number of series for 5 and 200 primaries", async () => {
    await using page = await startPageOperator({ operator: metrics, dependents: [] });
    const create = async (from: number, to: number) => {
      for (let index = from; index < to; index++) await createPage(page, `page-${index}`);
      await waitFor("all are reconciled", () => new Set(page.events.map(({ primary }) => primary)).size === to);
      await page.quiet();
    };
    await create(0, 5);
    const { series } = await scrape(page);
    await create(5, 200);
    assert.is((await scrape(page)).series, series);
  });

  test("require an authorized token with metricsAuthentication (401, 403, 500)", async () => {
    await using server = await startPageServer();
    const kinds = { t: "authentication.k8s.io/v1", a: "authorization.k8s.io/v1" };
    const answers = { authenticated: true, allowed: true };
    const review = (apiVersion: string, kind: string, status: object) => ({
      status: 201,
      body: JSON.stringify({ apiVersion, kind, metadata: {}, status }),
    });
    const user = { username: "prometheus", groups: ["monitoring"] };
    const play = () => {
      server.faults.clear();
      const identity = { authenticated: answers.authenticated, ...(answers.authenticated && { user }) };
      server.faults.add({ path: "/tokenreviews", answer: review(kinds.t, "TokenReview", identity) });
      const access = review(kinds.a, "SubjectAccessReview", { allowed: answers.allowed });
      server.faults.add({ path: "/subjectaccessreviews", answer: access });
    };
    play();
    await using page = createPageOperator(server, { operator: { ...metrics, metricsAuthentication: true } });
    await page.operator.start();
    assert.is((await scrape(page)).status, 401);
    assert.is((await scrape(page, "Basic abc")).status, 401);
    assert.is((await scrape(page, "Bearer good")).status, 200);
    const asked = () => server.requests.filter(({ path }) => path.includes("reviews")).length;
    const before = asked();
    assert.is((await scrape(page, "Bearer good")).status, 200);
    assert.is(asked(), before, "an answer holds for a while");
    answers.allowed = false;
    play();
    assert.is((await scrape(page, "Bearer other")).status, 403);
    answers.authenticated = false;
    play();
    assert.is((await scrape(page, "Bearer unknown")).status, 401);
    server.faults.clear();
    server.faults.add({ path: "/tokenreviews", answer: { status: 403 } });
    assert.is((await scrape(page, "Bearer more")).status, 500);
  });

  for (const denied of [["tokenreviews.authentication.k8s.io"], ["subjectaccessreviews.authorization.k8s.io"]])
    test(`fail the start with metricsAuthentication if creating ${denied.join()} is forbidden`, async () => {
      await using server = await startPageServer();
      const answer = (allowed: boolean) => ({
        status: 201,
        body: JSON.stringify({
          ...{ apiVersion: "authorization.k8s.io/v1", kind: "SelfSubjectAccessReview", metadata: {} },
          status: { allowed },
        }),
      });
      // The questions about both rights leave in this order.
      const [first = ""] = denied;
      const answers = first.startsWith("token") ? [false, true] : [true, false];
      // After four about the Lease.
      for (const allowed of [true, true, true, true, ...answers])
        server.faults.add({ path: "/selfsubjectaccessreviews", times: 1, answer: answer(allowed) });
      // The leader election holds back all writes until it leads, and these questions are no writes.
      const operator = { ...metrics, metricsAuthentication: true, leaderElection: { namespace: "default" } };
      await using page = createPageOperator(server, { operator });
      const error = await page.operator.start().then(
        () => undefined,
        (reason: unknown) => reason as Error,
      );
      assert.match(error?.message ?? "it started", `metricsAuthentication: the operator may not create ${first}, so`);
      assert.match(error?.message ?? "", "deploy/metrics-authentication");
    });

  test("send no access reviews without metricsAuthentication", async () => {
    await using server = await startPageServer();
    await using page = createPageOperator(server, { operator: metrics });
    await page.operator.start();
    assert.equal(
      server.requests.filter(({ path }) => path.includes("reviews")),
      [],
    );
  });
});
