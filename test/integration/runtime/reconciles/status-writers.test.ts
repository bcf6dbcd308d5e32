// The reconciler and the runtime both write the status of a primary, by server-side apply.
import { waitFor } from "#apiserver/wait-for.js";
import type { KubernetesObject, StatusCondition } from "#runtime/base/kubernetes-object.js";
import { noUpdate, type ReconcileArguments } from "#runtime/reconcile/reconciler.js";
import { apiRequestOrThrow } from "../../../support/api/api-request.js";
import { startTestApiServer } from "../../../support/api/api-server.js";
import { assert, shared, suite } from "../../../support/suite.js";
import {
  ConfigMap,
  configMapOf,
  createPage,
  createPageOperator,
  Page,
  pageCrd,
  setText,
  type PageOperator,
  type PageOperatorOptions,
} from "../page-operator.js";

type Arguments = ReconcileArguments<Page, object>;

const server = shared(() => startTestApiServer({ crds: [pageCrd] }));
const path = (name: string) => `/apis/example.com/v1/namespaces/default/pages/${name}/status`;

/** Ready as soon as somebody labels it. */
const first = configMapOf("first", {
  readyPostcondition: ({ live }: { live: Partial<KubernetesObject> | undefined }) =>
    live?.metadata?.labels?.["a"] === "b",
});
const label = ({ operator }: PageOperator, name: string, value = "b") =>
  operator.client.mergePatch(
    ConfigMap,
    { name: `${name}-first`, namespace: "default" },
    { metadata: { labels: { a: value } } },
  );

async function start(options: PageOperatorOptions): Promise<PageOperator> {
  const page = createPageOperator(await server(), { dependents: [first], statusConditions: "managed", ...options });
  await page.operator.start();
  return page;
}

async function statusOf({ operator }: PageOperator, name: string) {
  const page = await operator.client.get(Page, { name, namespace: "default" });
  const { text, observedGeneration, conditions = [] } = page?.status ?? {};
  const found = conditions.map(({ type, status, reason }) => `${type}=${status} ${reason}`);
  return { ...(text && { text }), ...(observedGeneration && { observedGeneration }), conditions: found };
}

async function untilStatus(page: PageOperator, name: string, expected: object): Promise<void> {
  const isReached = async () => JSON.stringify(await statusOf(page, name)) === JSON.stringify(expected);
  await waitFor("the status is as expected", isReached).catch(async () =>
    assert.equal(await statusOf(page, name), expected),
  );
}

const statusWrites = ({ requests }: PageOperator, from = 0) =>
  requests.slice(from).filter((request) => request.startsWith("PATCH") && request.includes("/status"));

/** Returns which field managers have applied something of the status. */
async function managersOf(name: string): Promise<readonly string[]> {
  const { metadata } = await apiRequestOrThrow<{ metadata: { managedFields: readonly Managed[] } }>(
    await server(),
    `GET ${path(name)}`,
  );
  return metadata.managedFields
    .filter(({ operation, subresource }) => operation === "Apply" && subresource === "status")
    .map(({ manager }) => manager)
    .sort();
}

interface Managed {
  readonly manager: string;
  readonly operation: string;
  readonly subresource?: string;
}

const NOT_READY = ["Ready=False NotReady", "FirstReady=False NotReady"];
const READY = ["Ready=True Ready"];

const apply = async (fieldManager: string, name: string, status: object) =>
  apiRequestOrThrow(await server(), `PATCH ${path(name)}?fieldManager=${fieldManager}&force=true`, {
    contentType: "application/apply-patch+yaml",
    body: { apiVersion: "example.com/v1", kind: "Page", metadata: { name, namespace: "default" }, status },
  });

suite("conditions beside an applied status", (test) => {
  test("are written with it in one request or alone, and keep a status that is not returned again", async () => {
    const reconciler = {
      reconcile: ({ primary }: Arguments) =>
        primary.status?.text === primary.spec.text ? noUpdate() : { status: { text: primary.spec.text } },
    };
    await using page = await start({ reconciler });
    await createPage(page, "kept");
    await untilStatus(page, "kept", { text: "first", conditions: NOT_READY });
    await page.quiet();
    assert.is(statusWrites(page).length, 1);
    const { length } = page.requests;
    await label(page, "kept");
    await untilStatus(page, "kept", { text: "first", conditions: READY });
    await page.quiet();
    assert.is(statusWrites(page, length).length, 1);
    assert.equal(await managersOf("kept"), ["page"]);
    const { length: asReady } = page.requests;
    await setText(page, "second", "kept");
    await untilStatus(page, "kept", { text: "second", conditions: READY });
    await page.quiet();
    assert.is(statusWrites(page, asReady).length, 1);
  });

  test("never revert a status that another replica wrote in the meantime", async () => {
    let steps = 0;
    let meanwhile = () => Promise.resolve();
    const reconciler = {
      reconcile: ({ primary }: Arguments) => {
        steps++;
        return primary.status?.text === undefined ? { status: { text: "first" } } : noUpdate();
      },
    };
    const slow = configMapOf("first", {
      readyPostcondition: async ({ live }: { live: Partial<KubernetesObject> | undefined }) => {
        if (live?.metadata?.labels?.["a"] !== "b") return false;
        await meanwhile();
        return true;
      },
    });
    await using page = await start({ reconciler, dependents: [slow] });
    await createPage(page, "stale");
    await untilStatus(page, "stale", { text: "first", conditions: NOT_READY });
    await page.quiet();
    // Another replica that still writes, under the same name, of which the watch tells only later.
    meanwhile = async () => {
      meanwhile = () => Promise.resolve();
      const { conditions } = (await page.operator.client.get(Page, { name: "stale", namespace: "default" }))!.status!;
      await apply("page", "stale", { text: "newer", conditions });
    };
    await label(page, "stale");
    await untilStatus(page, "stale", { text: "newer", conditions: READY });
    assert.ok(steps > 1);
  });

  test("under the field manager of an earlier version are kept until a condition changes", async () => {
    const reconciler = { reconcile: ({ primary }: Arguments) => ({ status: { text: primary.spec.text } }) };
    let conditions: readonly StatusCondition[] = [];
    {
      await using page = await start({ reconciler });
      await createPage(page, "earlier");
      await untilStatus(page, "earlier", { text: "first", conditions: NOT_READY });
      ({ conditions = [] } = (await page.operator.client.get(Page, {
        name: "earlier",
        namespace: "default",
      }))!.status!);
    }
    await apply("page-conditions", "earlier", { conditions });
    await apply("page", "earlier", { text: "first" });
    await using page = await start({ reconciler });
    await waitFor("it is reconciled", () => page.events.some(({ primary }) => primary === "default/earlier"));
    await page.quiet();
    assert.equal(statusWrites(page), []);
    assert.equal(await managersOf("earlier"), ["page", "page-conditions"]);
    await label(page, "earlier");
    await untilStatus(page, "earlier", { text: "first", conditions: READY });
    await page.quiet();
    assert.equal(await managersOf("earlier"), ["page"]);
    assert.is(statusWrites(page).length, 2);
    const { length } = page.requests;
    await label(page, "earlier", "c");
    await untilStatus(page, "earlier", { text: "first", conditions: NOT_READY });
    await page.quiet();
    assert.is(statusWrites(page, length).length, 1);
  });

  test("of a failure are written in one request, and those of the first success in two", async () => {
    let isFailing = true;
    const reconciler = {
      reconcile: ({ primary }: Arguments) => {
        if (isFailing) throw new Error("out of order");
        return { status: { text: primary.spec.text } };
      },
    };
    await using page = await start({ reconciler, dependents: [] });
    await createPage(page, "failing");
    await untilStatus(page, "failing", { conditions: ["Ready=False Failed"] });
    assert.equal(await managersOf("failing"), ["page-conditions"]);
    isFailing = false;
    await untilStatus(page, "failing", { text: "first", conditions: READY });
    await page.quiet();
    assert.equal(await managersOf("failing"), ["page"]);
    isFailing = true;
    const { length } = page.requests;
    await setText(page, "second", "failing");
    await untilStatus(page, "failing", { text: "first", conditions: ["Ready=False Failed"] });
    assert.is(statusWrites(page, length).length, 1);
    isFailing = false;
    await untilStatus(page, "failing", { text: "second", conditions: READY });
    await page.quiet();
    assert.is(statusWrites(page, length).length, 2);
  });

  test("are kept when user functions apply the status, with 3 writes for 3 changes", async () => {
    const reconciler = {
      async reconcile({ primary, context }: Arguments) {
        const { name, namespace } = primary.metadata;
        await context.resources
          .of(Page)
          .applyStatus({ metadata: { name, namespace: namespace! }, status: { text: primary.spec.text } } as never);
        return noUpdate();
      },
    };
    await using page = await start({ reconciler });
    await createPage(page, "applied");
    await untilStatus(page, "applied", { text: "first", conditions: NOT_READY });
    await label(page, "applied");
    await untilStatus(page, "applied", { text: "first", conditions: READY });
    await page.quiet();
    const { length } = page.requests;
    await setText(page, "second", "applied");
    await untilStatus(page, "applied", { text: "second", conditions: READY });
    await label(page, "applied", "c");
    await untilStatus(page, "applied", { text: "second", conditions: NOT_READY });
    await page.quiet();
    // The text, the new generation of the conditions, and the conditions of the label.
    assert.is(statusWrites(page, length).length, 3, statusWrites(page, length).join("\n"));
  });

  test("that are rejected do not prevent the status of the reconciler from being written", async () => {
    const crd = structuredClone(pageCrd) as unknown as {
      spec: { versions: { schema: { openAPIV3Schema: { properties: { status: { properties: Conditions } } } } }[] };
    };
    const { conditions } = crd.spec.versions[0]!.schema.openAPIV3Schema.properties.status.properties;
    conditions.items.properties.reason = { type: "string", maxLength: 3 };
    await using narrow = await startTestApiServer({ crds: [crd as never] });
    const reconciler = { reconcile: ({ primary }: Arguments) => ({ status: { text: primary.spec.text } }) };
    const options = { reconciler, dependents: [], statusConditions: "managed" as const };
    await using page = createPageOperator(narrow, options);
    await page.operator.start();
    await createPage(page, "narrow");
    await untilStatus(page, "narrow", { text: "first", conditions: [] });
    await waitFor("the failure is reported", () =>
      page.events.some(({ error }) => /status\.conditions\[0\]\.reason/.test(`${error as Error}`)),
    );
  });

  test("are written while the status of the reconciler is in a write loop", async () => {
    let texts = 0;
    const reconciler = { reconcile: () => ({ status: { text: `text ${texts++}` }, rescheduleAfterMs: 20 }) };
    await using page = await start({ reconciler });
    await createPage(page, "looping");
    const isFound = async () => (await statusOf(page, "looping")).conditions.includes("Ready=False WriteLoop");
    await waitFor("the loop is found", isFound, { timeoutMs: 20_000 });
    await label(page, "looping");
    const isReady = async () => {
      const { conditions } = await statusOf(page, "looping");
      return conditions.join() === "Ready=False WriteLoop";
    };
    await waitFor("the dependent is ready", isReady);
  });

  test("replace status fields of a former controller name that are no longer desired", async () => {
    const states = (more: object) => ({
      reconcile: ({ primary }: Arguments) => ({ status: { text: primary.spec.text, ...more } }),
    });
    {
      await using page = await start({ reconciler: states({ observedGeneration: 1 }) });
      await createPage(page, "renamed");
      await untilStatus(page, "renamed", { text: "first", observedGeneration: 1, conditions: NOT_READY });
    }
    const renamed = { name: "renamed", formerNames: ["page"], dependents: [configMapOf("other")] };
    await using page = await start({ ...renamed, workflow: { pruning: false }, reconciler: states({}) });
    await untilStatus(page, "renamed", { text: "first", conditions: READY });
    await page.quiet();
    assert.equal(await managersOf("renamed"), ["renamed"]);
  });

  test("keep status fields of a former controller name until the reconciler returns a status", async () => {
    {
      await using page = await start({});
      await createPage(page, "silent");
      await untilStatus(page, "silent", { text: "first", observedGeneration: 1, conditions: NOT_READY });
    }
    const renamed = { name: "renamed", formerNames: ["page"], reconciler: { reconcile: () => noUpdate() } };
    await using page = await start(renamed);
    await label(page, "silent");
    await untilStatus(page, "silent", { text: "first", observedGeneration: 1, conditions: READY });
    await page.quiet();
    assert.equal(await managersOf("silent"), ["renamed"]);
  });
});

interface Conditions {
  conditions: { items: { properties: { reason: object } } };
}
