// What an operator makes of errors that last: it says so once, goes on with the rest, and recovers without a restart.
import { requesterOf } from "#runtime/client/api-client.js";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startApiServer, type ApiServer } from "#apiserver/index.js";
import { keyOf } from "#runtime/base/kubernetes-object.js";
import { waitFor } from "#apiserver/wait-for.js";
import { loadConnection } from "#runtime/client/load-connection.js";
import { patchResourceAndStatus, updateStatus, type Reconciler } from "#runtime/reconcile/reconciler.js";
import { builtinDefinition, classOf, customDefinition } from "../../../support/kinds/kind-definitions.js";
import { createRecordedOperator } from "../../../support/runtime/recorded-operator.js";
import { assert, suite } from "../../../support/suite.js";
import {
  ConfigMap,
  createPage,
  createPageOperator,
  type DataObject,
  Page,
  pageCrd,
  type PageOperator,
  type PageOperatorOptions,
  Secret,
  setText,
  startPageOperator,
  startPageServer,
  textReconciler,
  untilText,
} from "../page-operator.js";

const ONE = { name: "one", namespace: "default" };
const DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const Namespace = classOf(builtinDefinition("v1", "Namespace"));
/** The longest time until a watch is tried again is 15 s; the first attempts come sooner. */
const RECOVERY = { timeoutMs: 15_000 };

const warningsOf = ({ logs }: PageOperator, words: string) =>
  logs.filter((line) => /^(warn|error)/.test(line) && line.includes(words));

const againOf = ({ logs }: PageOperator) =>
  logs.filter((line) => line.startsWith("info") && line.includes("watch restored"));

/** What is wrong with the watch of the primaries; undefined if nothing is. */
function problemOf({ operator }: PageOperator): string | undefined {
  const { status, controllers } = operator.health();
  const { sources } = controllers["page"]!;
  assert.is(
    status === "unhealthy",
    Object.values(sources).some((source) => source.status === "unhealthy"),
  );
  return sources["primary"]!.status === "unhealthy" ? sources["primary"]!.reason : undefined;
}

const statusOf = async ({ operator }: PageOperator, ref = ONE) => (await operator.client.get(Page, ref))?.status?.text;

/** Returns the definition of Pages as it is before somebody adds a status subresource. */
function pageCrdWithoutStatus() {
  const { subresources: _, ...version } = pageCrd.spec.versions[0];
  return { ...pageCrd, spec: { ...pageCrd.spec, versions: [version] } };
}

async function untilStatus(page: PageOperator, text: string, ref = ONE): Promise<void> {
  await waitFor(`the status says ${text}`, async () => (await statusOf(page, ref)) === text, RECOVERY);
}

async function startOperatorIn(server: ApiServer, namespaces: string[]): Promise<PageOperator> {
  const page = createPageOperator(server, { namespaces, dependents: [] });
  for (const name of namespaces.filter((each) => each !== "default"))
    await page.operator.client.create(Namespace, { metadata: { name } });
  await page.operator.start();
  return page;
}

const create = (page: PageOperator, namespace: string) =>
  page.operator.client.create(Page, { metadata: { name: "one", namespace }, spec: { text: "first" } });

const explicitReconciler: PageOperatorOptions["reconciler"] = {
  reconcile: async ({ context }: { readonly context: { readonly workflow: { reconcile(): Promise<unknown> } } }) => {
    await context.workflow.reconcile();
  },
};

suite("lasting errors", (test) => {
  test("in one namespace do not affect others, and are logged once until the watch is restored", async () => {
    await using server = await startPageServer();
    await using page = await startOperatorIn(server, ["ours", "theirs"]);
    const [ours, theirs] = ["ours", "theirs"].map((namespace) => ({ name: "one", namespace })) as [
      typeof ONE,
      typeof ONE,
    ];
    for (const { namespace } of [ours, theirs]) await create(page, namespace);
    for (const ref of [ours, theirs]) await untilStatus(page, "first", ref);
    const fault = server.faults.add({ verb: ["list", "watch"], namespace: "theirs", forbid: true });
    server.faults.endWatches({ path: "/namespaces/theirs/" });
    const line = await waitFor("it is said", () => warningsOf(page, "not allowed")[0], RECOVERY);
    assert.match(line, "not allowed to list and watch Page.v1.example.com");
    assert.match(line, 'in the namespace "theirs"');
    for (const ref of [ours, theirs]) await page.operator.client.mergePatch(Page, ref, { spec: { text: "second" } });
    await untilStatus(page, "second", ours);
    await waitFor("it is tried again and again", () => fault.hits >= 2, RECOVERY);
    assert.is(await statusOf(page, theirs), "first");
    assert.match(problemOf(page)!, 'in the namespace "theirs"');
    assert.not.match(problemOf(page)!, "ours");
    fault.remove();
    await untilStatus(page, "second", theirs);
    assert.equal([warningsOf(page, "not allowed"), problemOf(page)], [[line], undefined]);
    assert.equal(againOf(page), ['info Page.v1.example.com in namespace "theirs": watch restored']);
  });

  test("of missing write permission fail reconciles until it is granted", async () => {
    await using page = await startPageOperator();
    const fault = page.server.faults.add({ verb: "patch", path: "/configmaps/", forbid: true });
    await createPage(page);
    const { error, workflow } = await waitFor("a reconcile", () => page.events[0]);
    assert.ok(error);
    assert.match(
      ([...workflow!.errors.values()][0] as Error).message,
      'apply of ConfigMap "default/one-text" failed: 403 Forbidden: configmaps "one-text" is forbidden: User "admin" cannot patch',
    );
    await waitFor("another attempt", () => page.events.length >= 2);
    fault.remove();
    await untilText(page, "first");
    await untilStatus(page, "first");
  });

  const hintsOf = ({ logs }: PageOperator) => logs.filter((line) => line.includes("updateErrorStatus"));

  test("of a workflow log one hint that reconcile() is not called", async () => {
    await using page = await startPageOperator();
    const fault = page.server.faults.add({ verb: "patch", path: "/configmaps/", forbid: true });
    for (const name of ["one", "two"]) await createPage(page, name);
    const failed = (name: string) => page.events.filter(({ primary }) => primary === `default/${name}`).length >= 2;
    await waitFor("both fail again", () => failed("one") && failed("two"));
    assert.is(await statusOf(page), undefined);
    assert.equal(hintsOf(page), [
      "info reconcile() is not called when the workflow fails, so the status stays as it is; add updateErrorStatus() to the " +
        "reconciler to write it after failures",
    ]);
    fault.remove();
    await untilStatus(page, "first");
  });

  const withoutHint: readonly [string, PageOperatorOptions][] = [
    ["updateErrorStatus() exists", { reconciler: { ...textReconciler, updateErrorStatus: () => undefined } }],
    ["exceptions: result is set", { workflow: { exceptions: "result" } }],
    ["the reconciler invokes the workflow", { workflow: { invocation: "explicit" }, reconciler: explicitReconciler }],
  ];
  for (const [title, options] of withoutHint)
    test(`of a workflow log no hint if ${title}`, async () => {
      await using page = await startPageOperator(options);
      page.server.faults.add({ verb: "patch", path: "/configmaps/", forbid: true });
      await createPage(page);
      await waitFor("it fails", () => page.events.length > 0);
      assert.equal(hintsOf(page), []);
    });

  test("of a deleted CRD are logged once, and the watch is restored when it is recreated", async () => {
    await using page = await startPageOperator();
    await createPage(page);
    await untilStatus(page, "first");
    const requester = requesterOf(page.operator.client);
    await requester.send({ method: "DELETE", path: `${DEFINITIONS}/pages.example.com` });
    const line = await waitFor("it is said", () => warningsOf(page, "is not installed")[0], RECOVERY);
    assert.match(line, "the CustomResourceDefinition pages.example.com is not installed");
    const watches = () =>
      page.server.requests.filter(
        ({ path, verb, status }) => path.endsWith("/pages") && verb === "watch" && status === 404,
      );
    await waitFor("it is tried again and again", () => watches().length >= 2, RECOVERY);
    assert.equal(warningsOf(page, "is not installed"), [line]);
    assert.match(problemOf(page)!, "pages.example.com is not installed");
    await requester.send({ method: "POST", path: DEFINITIONS, body: JSON.stringify(pageCrd) });
    // Its owner is gone, so the garbage collector deletes it.
    await page.operator.client.delete(ConfigMap, { name: "one-text", namespace: "default" });
    await waitFor("pages are taken", () => createPage(page), RECOVERY);
    await untilStatus(page, "first");
    await setText(page, "second");
    await untilStatus(page, "second");
    assert.equal([problemOf(page), againOf(page)], [undefined, ["info Page.v1.example.com: watch restored"]]);
  });

  test("of one controller at startup do not block another controller", async () => {
    await using server = await startPageServer();
    const fault = server.faults.add({ verb: ["list", "watch"], path: "/secrets", namespace: "closed", forbid: true });
    const pages = {
      name: "page",
      workflow: { primary: Page.definition, dependents: [] },
      reconciler: textReconciler,
    };
    const seen: string[] = [];
    const secrets = {
      name: "secret",
      namespaces: ["closed"],
      workflow: { primary: Secret.definition, dependents: [] },
      reconciler: {
        reconcile: ({ primary }: { primary: DataObject }) => void seen.push(keyOf(primary.metadata)),
      },
    };
    await using page = createPageOperator(server, { operator: { controllers: [pages, secrets] } });
    const { operator } = page;
    await operator.client.create(Namespace, { metadata: { name: "closed" } });
    await operator.client.create(Secret, { metadata: { name: "one", namespace: "closed" } });
    let isStarted = false;
    const started = operator.start().then(() => (isStarted = true));
    await waitFor("pages are reconciled", () => operator.health().controllers["page"]?.isStarted, RECOVERY);
    await createPage(page);
    await untilStatus(page, "first");
    const line = await waitFor("it is said", () => warningsOf(page, "not allowed")[0], RECOVERY);
    assert.match(line, 'Secret.v1 in namespace "closed"');
    const { status, controllers } = operator.health();
    assert.equal([status, controllers["secret"]!.isStarted, isStarted], ["unhealthy", false, false]);
    assert.match(controllers["secret"]!.sources["primary"]!.reason!, 'namespace "closed"');
    assert.equal(seen, []);
    fault.remove();
    await waitFor("it has started", () => isStarted, RECOVERY);
    await started;
    await waitFor("secrets are reconciled", () => seen.length === 1);
    assert.equal([seen, operator.health().status], [["closed/one"], "healthy"]);
    assert.equal(warningsOf(page, "not allowed"), [line]);
  });

  test("of an expired token are logged once, and a new token is used without a restart", async () => {
    await using server = await startPageServer();
    const folder = await mkdtemp(join(tmpdir(), "gen-operator-errors-"));
    const config = {
      "current-context": "c",
      contexts: [{ name: "c", context: { cluster: "x", user: "u" } }],
      clusters: [{ name: "x", cluster: { server: server.url } }],
      users: [{ name: "u", user: { tokenFile: "token" } }],
    };
    const [kubeconfig, tokenFile] = [join(folder, "config"), join(folder, "token")];
    await writeFile(tokenFile, server.token);
    await writeFile(kubeconfig, JSON.stringify(config));
    const connection = await loadConnection({ kubeconfig });
    await using page = createPageOperator(server, { operator: { connection }, dependents: [] });
    await page.operator.start();
    await createPage(page);
    await untilStatus(page, "first");
    server.faults.replaceToken("fresh");
    server.faults.endWatches();
    const line = await waitFor("it is said", () => warningsOf(page, "rejects the credentials")[0], RECOVERY);
    assert.match(line, "(401 Unauthorized)");
    // Before a watch is resumed the server is asked for its version.
    const refused = () => server.requests.filter(({ status, verb }) => status === 401 && verb === "list");
    await waitFor("it is tried again", () => refused().length >= 2, RECOVERY);
    assert.is(warningsOf(page, "rejects the credentials").length, 1);
    await writeFile(tokenFile, "fresh");
    await waitFor("the client is let in", () => page.operator.client.get(Page, ONE), RECOVERY);
    await setText(page, "second");
    await untilStatus(page, "second");
    assert.equal([problemOf(page), againOf(page).length], [undefined, 1]);
    await rm(folder, { recursive: true });
  });

  test("of a rejected status name its field, and the status is written once it is valid", async () => {
    await using server = await startPageServer();
    let observedGeneration: unknown = "a word";
    const reconciler = { reconcile: () => updateStatus({ observedGeneration }) };
    await using page = createPageOperator(server, { reconciler, dependents: [] });
    await page.operator.start();
    await createPage(page);
    const { error, retryAfterMs } = await waitFor("a reconcile", () => page.events[0]);
    assert.match((error as Error).message, 'apply of the status of Page "default/one" failed: ');
    assert.match((error as Error).message, "status.observedGeneration");
    assert.ok(retryAfterMs! >= 100 && retryAfterMs! <= 120);
    observedGeneration = 7;
    await waitFor("the status is there", async () => {
      return (await page.operator.client.get(Page, ONE))?.status?.observedGeneration === 7;
    });
    await page.quiet();
    assert.is(page.events.at(-1)?.error, undefined);
  });

  test("of a missing status subresource name the remedy", async () => {
    await using server = await startApiServer({ tls: false, crds: [pageCrdWithoutStatus()] });
    await using page = createPageOperator(server, { dependents: [] });
    await page.operator.start();
    await createPage(page);
    const { error } = await waitFor("a reconcile", () => page.events[0]);
    assert.match(
      (error as Error).message,
      "pages.example.com has no status subresource in the cluster; add subresources: { status: {} } to its definition",
    );
  });

  for (const [how, serverSideApply] of [
    ["server-side apply", true],
    ["JSON patch", false],
  ] as const) {
    const primary = customDefinition(pageCrdWithoutStatus());
    const workflow = { primary, dependents: [] };
    const connected = ({ url, token }: ApiServer, reconciler: Reconciler<Page, object, object>) =>
      createRecordedOperator({
        controllers: [{ name: "page", workflow, reconciler, serverSideApply }],
        connection: { url, token },
      });

    test(`of a status subresource that only the cluster has fail the reconcile: ${how}`, async () => {
      await using server = await startPageServer();
      await using page = connected(server, { reconcile: () => updateStatus({ text: "seen" }) });
      await page.operator.start();
      await createPage(page);
      const { error } = await waitFor("a reconcile", () => page.events[0]);
      const problem =
        'the API server stored no status of Page "default/one": pages.example.com has a status subresource in the cluster';
      assert.match((error as Error).message, problem);
    });

    test(`do not occur if a resource without status subresource and its status are written together: ${how}`, async () => {
      await using server = await startApiServer({ tls: false, crds: [pageCrdWithoutStatus()] });
      await using page = connected(server, {
        reconcile: ({ primary }) => {
          const { spec, ...rest } = primary;
          const resource = { ...(serverSideApply ? {} : rest), spec: { ...spec, text: "ours" } };
          return patchResourceAndStatus(resource, { text: "seen" });
        },
      });
      await page.operator.start();
      await createPage(page);
      const { error } = await waitFor("a reconcile", () => page.events[0]);
      assert.is(error, undefined);
      const { spec, status } = (await page.operator.client.get(Page, ONE)) ?? {};
      assert.equal([spec?.text, status?.text], ["ours", "seen"]);
    });
  }

  test("of optimistic locking (409) are retried with the latest object", async () => {
    await using server = await startPageServer();
    let conflicts = 2;
    const reconciler = {
      reconcile: async (args: Parameters<typeof textReconciler.reconcile>[0]) => {
        const { primary, context } = args;
        // Somebody changes the object between the read and a write that is locked to the version read.
        if (conflicts-- > 0) await setText(page, `theirs ${conflicts}`);
        const { resourceVersion } = primary.metadata;
        await context.client.mergePatch(Page, ONE, { metadata: { resourceVersion, annotations: { seen: "yes" } } });
        return textReconciler.reconcile(args);
      },
    };
    await using page = createPageOperator(server, { reconciler, dependents: [] });
    await page.operator.start();
    await createPage(page);
    await untilStatus(page, "theirs 0");
    await page.quiet();
    const failures = page.events.filter(({ error }) => error !== undefined);
    assert.is(failures.length, 2);
    for (const { error } of failures) assert.match((error as Error).message, "409 Conflict");
    assert.is(page.logs.filter((line) => line.startsWith("error")).length, 0);
  });
});
