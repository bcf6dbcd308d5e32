// The conditions that the runtime keeps in the status of primaries.
import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import { TerminalError } from "#runtime/base/errors.js";
import { waitFor } from "#apiserver/wait-for.js";
import { apiRequestOrThrow } from "../../../support/api/api-request.js";
import { failureOf } from "../../../support/runtime/failures.js";
import { assert, suite } from "../../../support/suite.js";
import {
  ConfigMap,
  configMapOf,
  createPage,
  createPageOperator,
  Page,
  pageSpacesOf,
  setText,
  startInSpace,
  type PageOperator,
} from "../page-operator.js";

const openSpace = pageSpacesOf();
const one = ({ namespace = "" }: PageOperator) => ({ name: "one", namespace });

/** Ready as soon as somebody labels it. */
const first = configMapOf("first", {
  readyPostcondition: ({ live }: { live: Partial<KubernetesObject> | undefined }) =>
    live?.metadata?.labels?.["a"] === "b",
});
const second = configMapOf("second", { dependsOn: ["first"] });

async function conditionsOf(page: PageOperator): Promise<string[] | undefined> {
  const found = await page.operator.client.get(Page, one(page));
  return found?.status?.conditions?.map(
    ({ type, status, reason, message }) => `${type}=${status} ${reason}: ${message}`,
  );
}

async function untilConditions(page: PageOperator, expected: readonly string[]): Promise<void> {
  let last: string[] | undefined;
  await waitFor("the conditions are as expected", async () => {
    last = await conditionsOf(page);
    return JSON.stringify(last) === JSON.stringify(expected);
  }).catch(() => assert.equal(last, expected));
}

const label = (page: PageOperator) =>
  page.operator.client.mergePatch(ConfigMap, { ...one(page), name: "one-first" }, { metadata: { labels: { a: "b" } } });

suite("reconcile reasons", (test) => {
  test("contain kind and key of the changed object, and the dependent it belongs to", async () => {
    await using page = await startInSpace(await openSpace(), {
      dependents: [configMapOf("first"), configMapOf("second")],
    });
    await createPage(page);
    await waitFor("the page is reconciled", () => page.events.length > 0);
    await page.quiet();
    const { length } = page.events;
    const patch = { data: { text: "theirs" } };
    await page.operator.client.mergePatch(ConfigMap, { ...one(page), name: "one-second" }, patch);
    await waitFor("it is reconciled again", () => page.events.length > length);
    assert.equal(page.events[length]?.reasons, [
      {
        kind: "secondary",
        source: "second",
        type: "ConfigMap",
        object: `${page.namespace}/one-second`,
        isInitial: false,
      },
    ]);
  });
});

suite("status conditions", (test) => {
  for (const serverSideApply of [true, false])
    test(`follow the workflow beside the status of the reconciler, ${serverSideApply ? "with server-side apply" : "with patches"}`, async () => {
      const space = await openSpace();
      const reconciler = {
        // Without server-side apply a status is stated as a whole.
        reconcile: ({ primary }: { primary: Page }) => ({
          status: { ...(serverSideApply ? {} : primary.status), text: primary.spec.text },
        }),
      };
      const options = {
        dependents: [first, second],
        statusConditions: "managed" as const,
        serverSideApply,
        reconciler,
      };
      await using page = createPageOperator(space, options);
      await page.operator.start();
      await createPage(page);
      await untilConditions(page, [
        "Ready=False NotReady: first: its readyPostcondition is false; second: waits for first",
        "FirstReady=False NotReady: its readyPostcondition is false",
        "SecondReady=False DependencyNotReady: waits for first",
      ]);
      const before = (await page.operator.client.get(Page, one(page)))?.status;
      assert.is(before?.text, "first");
      await label(page);
      await untilConditions(page, ["Ready=True Ready: everything is as desired"]);
      const after = (await page.operator.client.get(Page, one(page)))?.status;
      assert.is(after?.conditions?.[0]?.observedGeneration, 1);
      await setText(page, "changed");
      await waitFor("the new generation is observed", async () => {
        const { status } = (await page.operator.client.get(Page, one(page))) ?? {};
        return status?.conditions?.[0]?.observedGeneration === 2 && status.text === "changed";
      });
      const last = (await page.operator.client.get(Page, one(page)))?.status;
      assert.is(last?.conditions?.[0]?.lastTransitionTime, after?.conditions?.[0]?.lastTransitionTime);
      await page.quiet();
      const { length } = page.requests;
      await label(page);
      await page.quiet();
      assert.equal(
        page.requests.slice(length).filter((request) => !request.includes("configmaps")),
        [],
      );
    });

  const isStatusWrite = (request: string) => request.startsWith("PATCH") && request.includes("/status");

  const statusOf: Record<string, (primary: Page) => object> = {
    "contains the whole status": ({ status, spec }) => ({ ...status, text: spec.text }),
    "contains only its own fields": ({ spec }) => ({ text: spec.text }),
  };
  for (const [way, serverSideApply] of Object.entries({ "an apply": true, "a patch": false }))
    for (const [title, status] of Object.entries(statusOf))
      test(`are written by ${way} in one request with a status of the reconciler that ${title}`, async () => {
        const space = await openSpace();
        const reconciler = { reconcile: ({ primary }: { primary: Page }) => ({ status: status(primary) }) };
        const options = { dependents: [], statusConditions: "managed" as const, serverSideApply, reconciler };
        await using page = createPageOperator(space, options);
        await page.operator.start();
        await createPage(page);
        await untilConditions(page, ["Ready=True Ready: everything is as desired"]);
        await page.quiet();
        assert.is(page.requests.filter(isStatusWrite).length, 1, page.requests.join("\n"));
        const since = (await page.operator.client.get(Page, one(page)))?.status?.conditions?.[0]?.lastTransitionTime;
        await setText(page, "second");
        await waitFor("the new generation is observed", async () => {
          const now = (await page.operator.client.get(Page, one(page)))?.status;
          return now?.text === "second" && now.conditions?.[0]?.observedGeneration === 2;
        });
        await page.quiet();
        assert.is(page.requests.filter(isStatusWrite).length, 2, page.requests.join("\n"));
        assert.is(
          (await page.operator.client.get(Page, one(page)))?.status?.conditions?.[0]?.lastTransitionTime,
          since,
        );
        // The conditions of the write are known to be its own: a change that concerns nothing causes no reconcile.
        const { length } = page.events;
        await page.operator.client.mergePatch(Page, one(page), { metadata: { labels: { a: "b" } } });
        await page.quiet();
        assert.is(page.events.length, length);
      });

  for (const serverSideApply of [true, false]) {
    const by = serverSideApply ? "by server-side apply" : "by patches";
    test(`are written in one request with the status of updateErrorStatus(), ${by}`, async () => {
      const space = await openSpace();
      const reconciler = {
        reconcile() {
          throw new TerminalError("out of order");
        },
        updateErrorStatus: ({ primary }: { primary: Page }) => ({ status: { text: `failed ${primary.spec.text}` } }),
      };
      const options = { dependents: [], statusConditions: "managed" as const, serverSideApply, reconciler };
      await using page = createPageOperator(space, options);
      await page.operator.start();
      await createPage(page);
      await untilConditions(page, ["Ready=False Failed: out of order"]);
      await page.quiet();
      assert.is(page.requests.filter(isStatusWrite).length, 1, page.requests.join("\n"));
      assert.is((await page.operator.client.get(Page, one(page)))?.status?.text, "failed first");
    });

    test(`are written alone if the status of the reconciler is rejected or unchanged, ${by}`, async () => {
      const space = await openSpace();
      const reconciler = {
        reconcile: ({ primary: { spec, status } }: { primary: Page }) => ({
          status: { ...status, text: spec.text === "bad" ? (1 as unknown as string) : "fixed" },
        }),
      };
      const options = { dependents: [first], statusConditions: "managed" as const, serverSideApply, reconciler };
      await using page = createPageOperator(space, options);
      await page.operator.start();
      await createPage(page);
      await waitFor("it waits", async () => (await conditionsOf(page))?.some((each) => each.startsWith("FirstReady=")));
      await page.quiet();
      const { length } = page.requests;
      await label(page);
      await untilConditions(page, ["Ready=True Ready: everything is as desired"]);
      await page.quiet();
      assert.is(page.requests.slice(length).filter(isStatusWrite).length, 1);
      assert.is((await page.operator.client.get(Page, one(page)))?.status?.text, "fixed");
      await setText(page, "bad");
      await waitFor("the failure shows", async () =>
        (await conditionsOf(page))?.[0]?.startsWith("Ready=False Failed: "),
      );
      assert.is((await page.operator.client.get(Page, one(page)))?.status?.text, "fixed");
    });
  }

  test("report an error of the reconciler until it succeeds", async () => {
    const space = await openSpace();
    let isFailing = true;
    const reconciler = {
      reconcile() {
        if (isFailing) throw new Error("out of order");
      },
    };
    await using page = createPageOperator(space, { dependents: [], statusConditions: "managed", reconciler });
    await page.operator.start();
    await createPage(page);
    await untilConditions(page, ["Ready=False Failed: out of order"]);
    isFailing = false;
    await untilConditions(page, ["Ready=True Ready: everything is as desired"]);
  });

  test("keep lastTransitionTime if the reconciler returns a status without conditions", async () => {
    const space = await openSpace();
    const reconciler = { reconcile: ({ primary }: { primary: Page }) => ({ status: { text: primary.spec.text } }) };
    const options = { dependents: [], statusConditions: "managed" as const, serverSideApply: false, reconciler };
    await using page = createPageOperator(space, options);
    const since = "2026-01-02T03:04:05Z";
    await page.operator.start();
    await createPage(page);
    await untilConditions(page, ["Ready=True Ready: everything is as desired"]);
    const { status } = (await page.operator.client.get(Page, one(page)))!;
    const old = status!.conditions!.map((condition) => ({ ...condition, lastTransitionTime: since }));
    const path = `/apis/example.com/v1/namespaces/${space.namespace}/pages/one/status`;
    const patch = { contentType: "application/merge-patch+json", body: { status: { conditions: old } } };
    await apiRequestOrThrow(space, `PATCH ${path}`, patch);
    await setText(page, "second");
    await waitFor("the new generation is observed", async () => {
      const now = (await page.operator.client.get(Page, one(page)))?.status;
      return now?.text === "second" && now.conditions?.[0]?.observedGeneration === 2;
    });
    assert.is((await page.operator.client.get(Page, one(page)))?.status?.conditions?.[0]?.lastTransitionTime, since);
  });

  test("are kept without another write if the reconciler returns a status without conditions", async () => {
    const space = await openSpace();
    const reconciler = { reconcile: ({ primary }: { primary: Page }) => ({ status: { text: primary.spec.text } }) };
    const options = { dependents: [], statusConditions: "managed" as const, serverSideApply: false, reconciler };
    const ready = ["Ready=True Ready: everything is as desired"];
    {
      await using page = createPageOperator(space, options);
      await page.operator.start();
      await createPage(page);
      await untilConditions(page, ready);
      await page.quiet();
    }
    await using page = createPageOperator(space, options);
    await page.operator.start();
    await waitFor("the page is reconciled again", () => page.events.length > 0);
    await page.quiet();
    assert.equal(
      page.requests.filter((request) => !request.startsWith("GET")),
      [],
    );
    assert.equal(await conditionsOf(page), ready);
  });

  test("are False for a terminating primary with a foreign finalizer", async () => {
    const space = await openSpace();
    const dependents = [configMapOf("text", { deletion: "ordered" })];
    await using page = createPageOperator(space, { dependents, statusConditions: "managed" });
    await page.operator.start();
    await createPage(page, "one", { finalizers: ["example.com/hold"] });
    await untilConditions(page, ["Ready=True Ready: everything is as desired"]);
    await page.operator.client.delete(Page, one(page));
    await waitFor("the own finalizer is removed", async () => {
      return (await page.operator.client.get(Page, one(page)))?.metadata.finalizers?.length === 1;
    });
    await untilConditions(page, ["Ready=False Deleting: the primary is being deleted"]);
  });

  const isFirst = ({ primary }: { primary: Page }) => primary.spec.text === "first";
  const wanted = { metadata: { name: "one-a" }, data: {} };
  const because = { precondition: "its reconcilePrecondition is false", item: "desired() does not return it" };
  const held: readonly [string, Parameters<typeof configMapOf>[1], string, object?][] = [
    ["an excluded object", { reconcilePrecondition: isFirst }, `a: is being deleted, because ${because.precondition}`],
    [
      "an excluded item",
      { bulk: {}, desired: (args) => (isFirst(args) ? { key: wanted } : {}) },
      `a: item "key": is being deleted, because ${because.item}`,
    ],
    [
      "a renamed object",
      { desired: (args) => (isFirst(args) ? wanted : { ...wanted, metadata: { name: "one-b" } }) },
      "waiting for objects to be deleted",
    ],
    [
      "an object of a removed dependent",
      {},
      "waiting for objects to be deleted",
      { dependents: [], workflow: { removed: { a: { resource: ConfigMap.definition, deletion: "ordered" } } } },
    ],
  ];
  for (const [what, dependent, message, second] of held)
    test(`are False while ${what} has a foreign finalizer, and True after its deletion`, async () => {
      const space = await openSpace();
      const options = {
        dependents: [configMapOf("a", { deletion: "ordered", ...dependent })],
        statusConditions: "managed" as const,
      };
      const ready = ["Ready=True Ready: everything is as desired"];
      const hold = (page: PageOperator, finalizers: readonly string[]) =>
        page.operator.client.mergePatch(ConfigMap, { ...one(page), name: "one-a" }, { metadata: { finalizers } });
      {
        await using page = createPageOperator(space, options);
        await page.operator.start();
        await createPage(page);
        await untilConditions(page, ready);
        await hold(page, ["example.com/hold"]);
        await page.quiet();
      }
      await using page = createPageOperator(space, { ...options, ...second });
      await page.operator.start();
      await setText(page, "second");
      const isFalse = async () => (await conditionsOf(page))?.[0] === `Ready=False Deleting: ${message}`;
      await waitFor("it is not ready", isFalse).catch(async () => assert.equal(await conditionsOf(page), message));
      await page.quiet();
      assert.ok(await isFalse());
      await hold(page, []);
      await untilConditions(page, ready);
    });

  test("report NotRun if the reconciler did not invoke the workflow", async () => {
    const space = await openSpace();
    const reconciler = {
      async reconcile({
        primary,
        context,
      }: {
        primary: Page;
        context: { workflow: { reconcile(): Promise<unknown> } };
      }) {
        if (primary.spec.text === "bad") throw new Error("out of order");
        if (primary.spec.text === "run") await context.workflow.reconcile();
      },
    };
    await using page = createPageOperator(space, {
      dependents: [configMapOf("first")],
      workflow: { invocation: "explicit" },
      statusConditions: "managed",
      reconciler,
    });
    await page.operator.start();
    await createPage(page);
    const unknown = ["Ready=Unknown NotRun: the reconciler did not run the workflow"];
    await untilConditions(page, unknown);
    await setText(page, "run");
    await untilConditions(page, ["Ready=True Ready: everything is as desired"]);
    await setText(page, "paused");
    await page.quiet();
    const { status } = (await page.operator.client.get(Page, one(page)))!;
    assert.equal([status?.conditions?.[0]?.status, status?.conditions?.[0]?.observedGeneration], ["True", 2]);
    await setText(page, "bad");
    await untilConditions(page, ["Ready=False Failed: out of order"]);
    await setText(page, "paused");
    await untilConditions(page, unknown);
  });

  test("keep conditions of other field managers", async () => {
    const space = await openSpace();
    await using page = createPageOperator(space, {
      dependents: [],
      statusConditions: "managed",
      reconciler: { reconcile() {} },
    });
    await page.operator.start();
    await createPage(page);
    await untilConditions(page, ["Ready=True Ready: everything is as desired"]);
    const theirs = {
      type: "Audited",
      status: "True",
      reason: "Seen",
      message: "",
      lastTransitionTime: "2026-05-04T09:00:00Z",
    } as const;
    const object = { metadata: one(page), status: { conditions: [theirs] } };
    const apply = { fieldManager: "auditor", fieldManagers: [], subresource: "status" } as const;
    await page.operator.client.apply(Page, object, apply);
    await setText(page, "changed");
    await waitFor("the new generation is observed", async () => {
      const conditions = (await page.operator.client.get(Page, one(page)))?.status?.conditions;
      return conditions?.some(({ type, observedGeneration }) => type === "Ready" && observedGeneration === 2);
    });
    assert.equal((await conditionsOf(page))?.sort(), [
      "Audited=True Seen: ",
      "Ready=True Ready: everything is as desired",
    ]);
  });

  test("are rejected for a kind without a list map status.conditions", async () => {
    const space = await openSpace();
    const definition = { ...Page.definition, schema: {} };
    const page = createPageOperator(space, { dependents: [] });
    const { workflow, ...rest } = { workflow: { primary: definition, dependents: [] }, name: "page" };
    const { createOperator } = await import("#runtime/api/operator.js");
    const failure = await failureOf(async () =>
      createOperator({ controllers: [{ ...rest, workflow, statusConditions: "managed" }] }),
    );
    assert.is(
      failure,
      'controller "page" keeps conditions in the status of pages, which lack a list status.conditions that several can write ' +
        "(x-kubernetes-list-type: map, with the key type); add it to the definition, or set no statusConditions",
    );
    await page.operator.stop();
  });
});

suite("conditions of a renamed controller", (test) => {
  test("replace those written under its former name", async () => {
    const space = await openSpace();
    const options = { dependents: [first, second], statusConditions: "managed" } as const;
    {
      await using page = createPageOperator(space, options);
      await page.operator.start();
      await createPage(page);
      await waitFor("it waits", async () => (await conditionsOf(page))?.some((each) => each.startsWith("FirstReady=")));
      await page.quiet();
    }
    // The new version has another dependent in its place.
    const renamed = { ...options, name: "renamed", formerNames: ["page"], dependents: [configMapOf("third")] };
    await using page = createPageOperator(space, { ...renamed, workflow: { pruning: false } });
    await page.operator.start();
    await untilConditions(page, ["Ready=True Ready: everything is as desired"]);
    await page.quiet();
    const { length } = page.requests;
    await page.operator.client.mergePatch(Page, one(page), { metadata: { labels: { a: "b" } } });
    await page.quiet();
    assert.equal(
      page.requests.slice(length).filter((line) => line.includes("/status")),
      [],
    );
  });
});
