// The label by which a controller finds what it wrote: where it stands, what a watch selects by it, and how it comes back.
import type { ApiServer } from "#apiserver/index.js";
import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import { waitFor } from "#apiserver/wait-for.js";
import { createOperator } from "#runtime/api/operator.js";
import { assert, suite } from "../../../support/suite.js";
import {
  ConfigMap,
  configMapOf,
  createPage,
  createPageOperator,
  Page,
  Secret,
  startPageServer,
  untilText,
  type PageOperator,
  type PageOperatorOptions,
} from "../page-operator.js";

const LABEL = "gen-operator.dev/controller";
const at = (name: string) => ({ name, namespace: "default" });

async function startPages(server: ApiServer, options: PageOperatorOptions): Promise<PageOperator> {
  const page = createPageOperator(server, options);
  await page.operator.start();
  return page;
}

async function untilReady(page: PageOperator): Promise<void> {
  await waitFor("all is made", () => page.events.at(-1)?.workflow?.isReady === true);
  await page.quiet();
}

const get = ({ operator }: PageOperator, name: string) => operator.client.get(ConfigMap, at(name));
const patch = ({ operator }: PageOperator, name: string, metadata: object) =>
  operator.client.mergePatch(ConfigMap, at(name), { metadata });
const untilLabelled = (page: PageOperator, name: string) =>
  waitFor(`${name} has its label`, async () => {
    const live = await get(page, name);
    return live?.metadata.labels?.[LABEL] === "page" ? live : undefined;
  });
const keysIn = ({ operator }: PageOperator, source: string): string[] => {
  const { view } = operator.controller("page").sources.get(source) as unknown as { view: { keys(): Iterable<string> } };
  return [...view.keys()].sort();
};
const ordered = { deletion: "ordered" } as const;
const bulk = (rest: Parameters<typeof configMapOf>[1] = {}) =>
  configMapOf("many", {
    bulk: {},
    desired: ({ primary }) => ({ k: { metadata: { name: "one-many" }, data: { text: primary.spec.text } } }),
    ...rest,
  });

/** Dependents of all ways to write, each with the name of its object. */
const ways = {
  "an applied object": configMapOf("x"),
  "an object written by PUT": configMapOf("x", { serverSideApply: false }),
  "an object with mode: createOnly": configMapOf("x", { mode: "createOnly" }),
  "an object with mode: createOnly created by POST": configMapOf("x", { mode: "createOnly", serverSideApply: false }),
  "an object linked by annotations": configMapOf("x", { ...ordered, mode: "createOnly" }),
  "a bulk item": { ...bulk(), name: "x", desired: itemOf() },
};

function itemOf() {
  return () => ({ k: { metadata: { name: "one-x" }, data: {} } });
}

suite("controller label", (test) => {
  for (const [way, dependent] of Object.entries(ways)) {
    test(`is set on ${way}, and restored without other changes after another client removes or changes it`, async () => {
      await using server = await startPageServer();
      await using page = await startPages(server, { dependents: [dependent] });
      await createPage(page);
      await untilReady(page);
      const before = await untilLabelled(page, "one-x");
      for (const value of [null, "other"]) {
        await patch(page, "one-x", { labels: { [LABEL]: value } });
        const after = await untilLabelled(page, "one-x");
        assert.equal([after.data, after.metadata.uid], [before.data, before.metadata.uid]);
      }
      await page.quiet();
      assert.equal(keysIn(page, "x"), ["default/one-x"]);
      assert.equal(
        page.events.flatMap(({ error }) => error ?? []),
        [],
      );
    });

    test(`replaces the annotation that an earlier version set on ${way}`, async () => {
      await using server = await startPageServer();
      {
        await using page = await startPages(server, { dependents: [dependent] });
        await createPage(page);
        await untilReady(page);
        await page.operator.stop();
      }
      await using page = createPageOperator(server, { dependents: [dependent] });
      const before = await patch(page, "one-x", {
        labels: { [LABEL]: null },
        annotations: { [LABEL]: "page", "gen-operator.dev/object": null },
      });
      await page.operator.start();
      const after = await untilLabelled(page, "one-x");
      assert.equal([after.data, after.metadata.uid], [before.data, before.metadata.uid]);
      assert.is(after.metadata.annotations?.["gen-operator.dev/object"], "default/one-x");
      await page.quiet();
      assert.equal(keysIn(page, "x"), ["default/one-x"]);
    });
  }

  for (const serverSideApply of [true, false])
    test(`is restored on a terminating object, which is recreated ${serverSideApply ? "by apply" : "by POST"}`, async () => {
      await using server = await startPageServer();
      await using page = await startPages(server, { dependents: [configMapOf("x", { serverSideApply })] });
      await createPage(page);
      await untilReady(page);
      const before = await patch(page, "one-x", { finalizers: ["example.com/hold"] });
      await page.operator.client.delete(ConfigMap, at("one-x"));
      await page.quiet();
      await patch(page, "one-x", { labels: { [LABEL]: null } });
      await untilLabelled(page, "one-x");
      await page.quiet();
      await patch(page, "one-x", { finalizers: null });
      const after = await untilLabelled(page, "one-x");
      await waitFor("it is made anew", async () => (await get(page, "one-x"))?.metadata.uid !== before.metadata.uid);
      assert.ok(after);
    });

  test("is set on adopted objects", async () => {
    await using server = await startPageServer();
    const dependents = [
      configMapOf("x", { existing: "adopt" }),
      configMapOf("y", { existing: "adopt", mode: "createOnly" }),
      configMapOf("z", { existing: "adopt", serverSideApply: false }),
    ];
    await using page = createPageOperator(server, { dependents });
    for (const name of ["one-x", "one-y", "one-z"])
      await page.operator.client.create(ConfigMap, { metadata: at(name), data: { theirs: "theirs" } });
    await page.operator.start();
    await createPage(page);
    await untilReady(page);
    for (const name of ["one-x", "one-y", "one-z"])
      assert.is((await untilLabelled(page, name)).data?.["theirs"], name === "one-z" ? undefined : "theirs");
    assert.equal(keysIn(page, "x"), ["default/one-x", "default/one-y", "default/one-z"]);
  });
});

suite("watch by controller label", (test) => {
  test("excludes objects of other owners, also in combination with a labelSelector", async () => {
    await using server = await startPageServer();
    const labels = { app: "web" };
    const desired = () => ({ metadata: { name: "selected", labels }, data: {} });
    const dependents = [
      configMapOf("x"),
      configMapOf("y", { labelSelector: "app=web", desired }),
      configMapOf("theirs", { mode: "readOnly", labelSelector: "app=web", fieldSelector: "metadata.name=foreign" }),
    ];
    await using page = createPageOperator(server, { dependents });
    await page.operator.client.create(ConfigMap, { metadata: { ...at("foreign"), labels } });
    await page.operator.start();
    await createPage(page);
    await waitFor("all is made", () => get(page, "selected"));
    await page.quiet();
    assert.equal(keysIn(page, "x"), ["default/one-x", "default/selected"]);
    assert.equal(keysIn(page, "y"), ["default/selected"]);
    assert.equal(keysIn(page, "theirs"), ["default/foreign"]);
  });

  test("includes all objects if a read-only dependent shares the event source", async () => {
    await using server = await startPageServer();
    const theirs = configMapOf("theirs", { mode: "readOnly", eventSource: "x" });
    await using page = await startPages(server, { dependents: [configMapOf("x"), theirs] });
    const { metadata } = await createPage(page);
    const { apiVersion, kind } = Page.definition;
    const ownerReferences = [{ apiVersion, kind, name: "one", uid: metadata.uid ?? "" }];
    await page.operator.client.create(ConfigMap, { metadata: { ...at("foreign"), ownerReferences } });
    await untilReady(page);
    assert.equal(keysIn(page, "x"), ["default/foreign", "default/one-x"]);
  });

  test("is shared by all controllers of an operator", async () => {
    await using server = await startPageServer();
    const { url, token, ca } = server;
    const controllerOf = (name: string) => ({
      name,
      reconciler: { reconcile: () => {} },
      workflow: { primary: Page.definition, dependents: [{ ...configMapOf(name), name }] },
    });
    const seen: KubernetesObject[] = [];
    await using operator = createOperator({
      controllers: [controllerOf("b"), controllerOf("a")],
      connection: { url, token, ca },
      logger: { debug() {}, info() {}, warn() {}, error() {} },
    });
    await operator.start();
    await operator.client.create(Page, { metadata: at("one"), spec: { text: "first" } });
    for (const name of ["a", "b"])
      seen.push(await waitFor("it is made", () => operator.client.get(ConfigMap, at(`one-${name}`))));
    assert.equal(
      seen.map(({ metadata }) => metadata.labels?.[LABEL]),
      ["a", "b"],
    );
    assert.is(server.faults.endWatches({ path: "configmaps" }), 1);
  });

  test("retries when an unlabelled object of the desired name, which it does not include, is deleted", async () => {
    await using server = await startPageServer();
    await using page = createPageOperator(server, { dependents: [configMapOf("x")] });
    await page.operator.client.create(ConfigMap, { metadata: at("one-x") });
    await page.operator.start();
    await createPage(page);
    await waitFor("it is refused", () => page.events.find(({ error }) => error !== undefined));
    assert.match(
      String(page.events.at(-1)?.workflow?.errors.get("x")),
      "already exists and is not owned by this primary",
    );
    await page.operator.client.delete(ConfigMap, at("one-x"));
    await untilText(page, "first", "one-x");
  });

  test("needs no write or request for the primary", async () => {
    await using server = await startPageServer();
    await using page = await startPages(server, {
      dependents: [configMapOf("x")],
      reconciler: { reconcile: () => {} },
    });
    const before = await createPage(page);
    await untilReady(page);
    assert.equal(
      page.requests.filter((request) => !request.startsWith("GET") && !request.startsWith("POST")),
      ["PATCH /api/v1/namespaces/default/configmaps/one-x 201"],
    );
    assert.is(
      (await page.operator.client.get(Page, at("one")))?.metadata.resourceVersion,
      before.metadata.resourceVersion,
    );
  });
});

suite("controller identity", (test) => {
  test("uses the full name, although two names share a long prefix", async () => {
    await using server = await startPageServer();
    const long = "page-".repeat(20);
    const start = async (name: string, dependents: readonly string[]) => {
      const named = dependents.map((each) => {
        const desired = () => ({ metadata: { name: `${each}-${name.slice(-1)}` }, data: {} });
        return configMapOf(each, { desired });
      });
      return startPages(server, { name, dependents: named });
    };
    await using first = await start(`${long}a`, ["x", "y"]);
    await using second = await start(`${long}b`, ["x", "y"]);
    await createPage(first);
    await untilReady(first);
    await untilReady(second);
    await first.operator.stop();
    await using next = await start(`${long}a`, ["x"]);
    await waitFor("it is pruned", async () => (await get(next, "y-a")) === undefined);
    await next.quiet();
    for (const name of ["x-a", "x-b", "y-b"]) assert.ok(await get(next, name), name);
  });

  for (const mode of ["managed", "createOnly"] as const)
    test(`needs no managed fields to delete ${mode} objects with their primary, and keeps copies of them`, async () => {
      await using server = await startPageServer();
      const dependents = [configMapOf("x", { ...ordered, mode }), bulk({ ...ordered, mode })];
      await using page = await startPages(server, { dependents });
      await createPage(page);
      await untilReady(page);
      await page.operator.stop();
      await using next = createPageOperator(server, { dependents });
      for (const name of ["one-x", "one-many"]) {
        // As backup tools do it: what is restored was written by them.
        const { metadata, data } = (await get(next, name))!;
        const { labels, annotations } = metadata;
        await next.operator.client.delete(ConfigMap, at(name));
        for (const each of [name, `${name}-copy`])
          await next.operator.client.create(ConfigMap, {
            metadata: { ...at(each), labels, annotations },
            data: data ?? {},
          });
        await patch(next, name, { managedFields: [{}] });
      }
      await next.operator.client.delete(Page, at("one"));
      await next.operator.start();
      await waitFor("the page is gone", async () => (await next.operator.client.get(Page, at("one"))) === undefined);
      const names = (await next.operator.client.list(ConfigMap, { namespace: "default" })).map(
        ({ metadata }) => metadata.name,
      );
      assert.equal(names.filter((name) => name.startsWith("one-")).sort(), ["one-many-copy", "one-x-copy"]);
    });

  test("rejects a copied object as the dependent of another primary, if it was written by PUT", async () => {
    await using server = await startPageServer();
    const dependents = [configMapOf("x", { ...ordered, serverSideApply: false })];
    await using page = await startPages(server, { dependents });
    await createPage(page);
    await untilReady(page);
    const { metadata, data } = (await get(page, "one-x"))!;
    const { labels, annotations = {} } = metadata;
    const { "gen-operator.dev/dependent": _, ...others } = annotations;
    // With all annotations, and with all but those that name a dependent and a primary.
    const kept = Object.entries(others).filter(([name]) => !name.includes("/primary-"));
    const copies = { two: annotations, three: Object.fromEntries(kept) };
    for (const [name, copied] of Object.entries(copies)) {
      await page.operator.client.create(ConfigMap, {
        ...{ metadata: { ...at(`${name}-x`), labels, annotations: copied }, data: data ?? {} },
      });
      await createPage(page, name);
      const last = () => page.events.findLast(({ primary }) => primary === `default/${name}`);
      const isRefused = () => /already exists and|is owned by/.test(String(last()?.workflow?.errors.get("x")));
      await waitFor(`the copy for ${name} is refused`, isRefused);
    }
  });

  test("uses the owner uid, so that objects of a deleted primary are left to the garbage collector", async () => {
    await using server = await startPageServer();
    await using page = await startPages(server, { dependents: [configMapOf("x"), configMapOf("y")] });
    await createPage(page);
    await untilReady(page);
    await page.operator.stop();
    await using next = createPageOperator(server, { dependents: [configMapOf("x")] });
    await next.operator.client.delete(Page, at("one"));
    await createPage(next, "one");
    await next.operator.start();
    await next.quiet();
    assert.equal(
      next.requests.filter((request) => request.startsWith("DELETE") && request.includes("one-y")),
      [],
    );
    assert.ok(await next.operator.client.get(ConfigMap, at("one-y")));
    assert.is(await next.operator.client.get(Secret, at("none")), undefined);
  });
});

suite("item without controller label and claim", (test) => {
  /** Items that a page has only while its text is "first". */
  const items = (namespace: string) =>
    configMapOf("many", {
      ...{ bulk: {}, ...ordered },
      desired: ({ primary: { metadata, spec } }) =>
        spec.text === "first" ? { k: { metadata: { name: `${metadata.name}-k`, namespace } } } : {},
    });

  // A namespace that desired() computes is one where a link needs a proof.
  for (const namespace of ["default", "kube-public"])
    test(`is deleted with its primary after one list for all primaries, and copies of it are kept (${namespace})`, async () => {
      await using server = await startPageServer();
      const names = ["one", "two", "three"];
      const atItem = (name: string) => ({ name: `${name}-k`, namespace });
      const dependents = [items(namespace)];
      {
        await using page = await startPages(server, { dependents });
        for (const name of names) await createPage(page, name);
        await waitFor("all is made", async () => {
          const all = await Promise.all(names.map((name) => page.operator.client.get(ConfigMap, atItem(name))));
          return all.every((each) => each !== undefined);
        });
      }
      await using page = createPageOperator(server, { dependents });
      const { client } = page.operator;
      const unlabelled = { metadata: { labels: { [LABEL]: null } } };
      for (const name of names) {
        const { metadata } = await client.mergePatch(ConfigMap, atItem(name), unlabelled);
        const copy = { name: `copy-${name}`, namespace, annotations: metadata.annotations! };
        await client.create(ConfigMap, { metadata: copy });
        await client.mergePatch(Page, at(name), { spec: { text: "second" } });
      }
      await page.operator.start();
      await page.quiet();
      assert.ok(await client.get(ConfigMap, atItem("one")));
      page.requests.length = 0;
      for (const name of names) {
        await client.delete(Page, at(name));
        await waitFor("the page is gone", async () => (await client.get(Page, at(name))) === undefined);
      }
      const lists = page.requests.filter((each) => /^GET \S*\/configmaps /.test(each));
      assert.is(lists.length, 1);
      for (const name of names) {
        assert.is(await client.get(ConfigMap, atItem(name)), undefined);
        assert.ok(await client.get(ConfigMap, { name: `copy-${name}`, namespace }));
      }
    });
});
