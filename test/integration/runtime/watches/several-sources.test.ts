// Objects of one kind that one controller sees through several event sources: what it writes through one of them is its own in all of them.
import type { ObjectKey } from "#runtime/base/kubernetes-object.js";
import { waitFor } from "#apiserver/wait-for.js";
import { informerSource, type InformerSourceOptions } from "#runtime/sources/informer-source.js";
import { updateStatus } from "#runtime/reconcile/reconciler.js";
import type { Context } from "#runtime/workflow/context.js";
import { failuresOf } from "../../../support/runtime/recorded-operator.js";
import { assert, suite } from "../../../support/suite.js";
import {
  ConfigMap,
  configMapOf,
  createPage,
  createPageOperator,
  Page,
  setText,
  startPageServer,
  type DataObject,
  type PageOperator,
} from "../page-operator.js";

const ONE = { name: "one", namespace: "default" };
const mapper = ({ metadata }: DataObject) =>
  metadata.labels?.["page"] === undefined ? [] : [`default/${metadata.labels["page"]}`];
const source = (name: string, rest: Partial<InformerSourceOptions<DataObject>> = {}) =>
  informerSource({ name, resource: ConfigMap, mapper, ...rest });
const draftOf = (page: Page) => ({ metadata: { ...ONE, labels: { page: "one" } }, data: { text: page.spec.text } });

async function reconcilesUntil(page: PageOperator, text: string): Promise<number> {
  await waitFor(
    `the status says ${text}`,
    async () => (await page.operator.client.get(Page, ONE))?.status?.text === text,
  );
  await page.quiet();
  return page.events.length;
}

const applies = {
  reconcile: async ({ primary, context }: { primary: Page; context: Context<Page> }) => {
    await context.resources.of(ConfigMap, { source: "a" }).apply(draftOf(primary));
    return updateStatus({ text: primary.spec.text });
  },
};

suite("several event sources of one kind", (test) => {
  for (const [what, rest] of [
    ["the same watch", {}],
    ["another selector", { labelSelector: "page" }],
    ["cache: metadata", { cache: "metadata" }],
    ["cached paths", { cache: { paths: ["data.text"] } }],
    ["one namespace", { namespaces: ["default"] }],
    ["bounded caches", { maxCachedObjects: 1 }],
  ] as const)
    test(`filter own writes through one source in another with ${what}, but not foreign changes`, async () => {
      await using server = await startPageServer();
      await using page = createPageOperator(server, {
        reconciler: applies,
        dependents: [],
        eventSources: () => [source("a"), source("b", rest)],
      });
      await page.operator.start();
      await createPage(page);
      assert.is(await reconcilesUntil(page, "first"), 1);
      await setText(page, "second");
      assert.is(await reconcilesUntil(page, "second"), 2);
      await page.operator.client.mergePatch(ConfigMap, ONE, { data: { more: "theirs" } });
      await waitFor("that is reconciled", () => page.events.length > 2);
    });

  test("emit a deletion if an own write no longer matches a selector", async () => {
    await using server = await startPageServer();
    const reconcile = async ({ primary, context }: { primary: Page; context: Context<Page> }) => {
      const labels = { page: "one", ...(primary.spec.text === "first" ? { chosen: "yes" } : {}) };
      await context.resources.of(ConfigMap, { source: "a" }).apply({ metadata: { ...ONE, labels } });
      return updateStatus({ text: primary.spec.text });
    };
    const chosen = source("b", { labelSelector: "chosen" });
    await using page = createPageOperator(server, {
      reconciler: { reconcile },
      dependents: [],
      eventSources: () => [source("a"), chosen],
    });
    await page.operator.start();
    await createPage(page);
    assert.is(await reconcilesUntil(page, "first"), 1);
    assert.is(chosen.list().length, 1);
    await setText(page, "second");
    await waitFor("it is gone there", () => chosen.list().length === 0);
    assert.is(await reconcilesUntil(page, "second"), 3);
  });

  test("filter writes and deletions of a dependent", async () => {
    await using server = await startPageServer();
    const dependent = configMapOf("text", {
      reconcilePrecondition: ({ primary }: { primary: Page }) => primary.spec.text !== "none",
      desired: ({ primary }) => ({
        metadata: { name: "one", labels: { page: "one" } },
        data: { text: primary.spec.text },
      }),
    });
    const eventSources = () => [source("b", { labelSelector: "page" })];
    await using page = createPageOperator(server, { dependents: [dependent], eventSources });
    await page.operator.start();
    await createPage(page);
    assert.is(await reconcilesUntil(page, "first"), 1);
    await setText(page, "second");
    assert.is(await reconcilesUntil(page, "second"), 2);
    await setText(page, "none");
    assert.is(await reconcilesUntil(page, "none"), 3);
    assert.is(await page.operator.client.get(ConfigMap, ONE), undefined);
  });

  test("filter the status of the primary in a source of its kind", async () => {
    await using server = await startPageServer();
    const peers = () => informerSource({ name: "peers", resource: Page, mapper: () => ["default/one"] });
    await using page = createPageOperator(server, { dependents: [], eventSources: () => [peers()] });
    await page.operator.start();
    await createPage(page);
    assert.is(await reconcilesUntil(page, "first"), 1);
    await setText(page, "second");
    assert.is(await reconcilesUntil(page, "second"), 2);
    await createPage(page, "two");
    await waitFor(
      "a peer of it is told",
      () => page.events.filter(({ primary }) => primary === "default/one").length > 2,
    );
  });

  test("deliver events of objects that primaryToSecondary finds through another source", async () => {
    await using server = await startPageServer();
    const links = source("links", { labelSelector: "page" });
    // The page has a link, and the link names the target.
    const primaryToSecondary = (): ObjectKey[] =>
      links
        .list()
        .flatMap(({ data }) => (data?.["target"] === undefined ? [] : [`default/${data["target"]}` as const]));
    const texts: (string | undefined)[] = [];
    await using page = createPageOperator(server, {
      reconciler: {
        reconcile: ({ context }: { context: Context<Page> }) =>
          void texts.push(context.secondary(ConfigMap, { source: "targets" })?.data?.["text"]),
      },
      dependents: [],
      eventSources: () => [links, informerSource({ name: "targets", resource: ConfigMap, primaryToSecondary })],
    });
    await page.operator.start();
    const { client } = page.operator;
    await createPage(page);
    type Texts = { [key: string]: string };
    const create = (name: string, data: Texts, labels: Texts = {}) =>
      client.create(ConfigMap, { metadata: { name, namespace: "default", labels }, data });
    const untilText = (text: string) => waitFor(`the reconcile sees ${text}`, () => texts.at(-1) === text);
    await create("target", { text: "first" });
    await create("link", { target: "target" }, { page: "one" });
    await untilText("first");
    await client.mergePatch(ConfigMap, { name: "target", namespace: "default" }, { data: { text: "second" } });
    await untilText("second");
  });
});

suite("primaries written by their controller", (test) => {
  const untilStatus = ({ operator }: PageOperator, name: string, text: string) =>
    waitFor(`${name} says ${text}`, async () => {
      const found = await operator.client.get(Page, { name, namespace: "default" });
      return found?.status?.text === text;
    });

  for (const serverSideApply of [true, false])
    test(`are reconciled if they are dependents of other primaries, ${serverSideApply ? "with apply" : "with PUT"}`, async () => {
      await using server = await startPageServer();
      const child = configMapOf("child", {
        ...{ resource: Page.definition, serverSideApply, deletion: "ordered" },
        reconcilePrecondition: ({ primary }: { primary: Page }) => primary.spec.text.length > 1,
        desired: ({ primary: { metadata, spec } }) => ({
          metadata: { name: `${metadata.name}-child` },
          spec: { text: spec.text.slice(1) },
        }),
      });
      await using page = createPageOperator(server, { dependents: [child] });
      await page.operator.start();
      await createPage(page);
      for (const [text, leaf] of [
        ["abc", "c"],
        ["uvw", "w"],
      ] as const) {
        await setText(page, text);
        await untilStatus(page, "one-child-child", leaf);
      }
      await setText(page, "xy");
      const gone = () => page.operator.client.get(Page, { name: "one-child-child", namespace: "default" });
      await waitFor("the last one is gone", async () => (await gone()) === undefined);
      await untilStatus(page, "one-child", "y");
      await page.quiet();
      assert.is(page.operator.controller("page").counts().states, 2, "what is gone is forgotten");
      await page.operator.client.delete(Page, ONE);
      await waitFor("all are gone", async () => (await page.operator.client.list(Page)).length === 0);
      assert.equal(failuresOf(page.events), []);
    });

  /** Writes the text of a ConfigMap named shared, of `found`, into the status. */
  const shows = (
    found: (args: { context: Context<Page>; secondary: { seen?: DataObject } }) => string | undefined,
  ) => ({
    reconcile: (args: { primary: Page; context: Context<Page>; secondary: { seen?: DataObject } }) =>
      updateStatus({ text: found(args) ?? "none" }),
  });
  const isOne = ({ primary }: { primary: Page }) => primary.metadata.name === "one" && primary.spec.text !== "none";
  const shared = configMapOf("shared", {
    reconcilePrecondition: isOne,
    desired: ({ primary }) => ({
      metadata: { name: "shared", labels: { page: "two" } },
      data: { text: primary.spec.text },
    }),
  });
  const seen = configMapOf("seen", { mode: "readOnly", ref: { name: () => "shared" } });

  for (const [way, dependents, reconciler] of [
    ["references", [shared, seen], shows(({ secondary }) => secondary.seen?.data?.["text"])],
    ["is mapped to", [shared], shows(({ context }) => context.secondary(ConfigMap, { source: "b" })?.data?.["text"])],
  ] as const)
    test(`are enqueued when a dependent of another primary changes: one that ${way} it`, async () => {
      await using server = await startPageServer();
      const eventSources = () => [source("b", { labelSelector: "page" })];
      await using page = createPageOperator(server, { dependents, reconciler, eventSources });
      await page.operator.start();
      await createPage(page, "two");
      await untilStatus(page, "two", "none");
      await page.quiet();
      await createPage(page);
      await untilStatus(page, "two", "first");
      await page.quiet();
      await setText(page, "second");
      await untilStatus(page, "two", "second");
      await page.quiet();
      await setText(page, "none");
      await untilStatus(page, "two", "none");
      await page.quiet();
      const ofOne = page.events.filter(({ primary }) => primary === "default/one");
      assert.is(ofOne.length, 3, "what its own reconcile wrote is no event for it");
    });

  test("are enqueued when the runtime writes the status of another primary they map", async () => {
    await using server = await startPageServer();
    const peers = () => informerSource({ name: "peers", resource: Page, mapper: () => ["default/two"] });
    const reconcile = ({ primary, context }: { primary: Page; context: Context<Page> }) => {
      const peer = context.primaries.get({ name: "one", namespace: "default" });
      return updateStatus({
        text: primary.metadata.name === "one" ? primary.spec.text : (peer?.status?.text ?? "none"),
      });
    };
    await using page = createPageOperator(server, {
      dependents: [],
      reconciler: { reconcile },
      eventSources: () => [peers()],
    });
    await page.operator.start();
    await createPage(page, "two");
    await untilStatus(page, "two", "none");
    await createPage(page);
    await untilStatus(page, "two", "first");
    await setText(page, "second");
    await untilStatus(page, "two", "second");
  });

  test("are enqueued by another reconcile that writes them, but not by their own", async () => {
    await using server = await startPageServer();
    const reconcile = async ({ primary, context }: { primary: Page; context: Context<Page> }) => {
      const { name, namespace } = primary.metadata;
      const pages = context.resources.of(Page);
      if (name === "one")
        await pages.apply({ metadata: { name: "two", namespace }, spec: { text: primary.spec.text } });
      await pages.apply({ metadata: { name, namespace }, spec: { more: primary.spec.text } });
      return updateStatus({ text: primary.spec.text });
    };
    await using page = createPageOperator(server, { reconciler: { reconcile }, dependents: [] });
    await page.operator.start();
    await createPage(page);
    await untilStatus(page, "two", "first");
    await setText(page, "second");
    await untilStatus(page, "two", "second");
    await page.quiet();
    assert.equal(
      page.events.map(({ primary }) => primary).sort(),
      ["one", "one", "two", "two"].map((name) => `default/${name}`),
    );
  });
});
