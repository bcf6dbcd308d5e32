// When an object that is not wanted any more may go: only after what takes its place is written and ready, and its users have run.
import type { ApiServer } from "#apiserver/index.js";
import { waitFor } from "#apiserver/wait-for.js";
import type { KubernetesDependent, WorkflowDefinition } from "#runtime/workflow/workflow-definition.js";
import { assert, suite } from "../../../support/suite.js";
import {
  ConfigMap,
  configMapOf,
  createPage,
  createPageOperator,
  Page,
  Secret,
  startPageServer,
  type PageOperator,
} from "../page-operator.js";

const at = (name: string) => ({ name, namespace: "default" });
const ONE = at("one");

/** A ConfigMap that is named by the text of the page. */
const named = (rest: Parameters<typeof configMapOf>[1] = {}) =>
  configMapOf("named", { desired: ({ primary }) => ({ metadata: { name: primary.spec.text }, data: {} }), ...rest });
const isOpen = ({ primary }: { primary: Page }) => primary.spec.more === "open";

async function startVersion(
  server: ApiServer,
  dependents: readonly KubernetesDependent[],
  workflow: Partial<WorkflowDefinition> = {},
): Promise<PageOperator> {
  const page = createPageOperator(server, { dependents, workflow });
  await page.operator.start();
  return page;
}

const exists = async ({ operator }: PageOperator, name: string, kind = ConfigMap) =>
  (await operator.client.get(kind, at(name))) !== undefined;
const untilGone = (page: PageOperator, name: string, kind = ConfigMap) =>
  waitFor(`${name} is gone`, async () => !(await exists(page, name, kind)));
const untilExists = (page: PageOperator, name: string, kind = ConfigMap) =>
  waitFor(`${name} is there`, () => exists(page, name, kind));
const setSpec = ({ operator }: PageOperator, spec: object) => operator.client.mergePatch(Page, ONE, { spec });
const untilTried = (page: PageOperator, count: number) => {
  const before = page.events.length;
  return waitFor("it was tried", () => page.events.length >= before + count);
};

/** What keeps a successor from being written, and how that ends. */
const obstacles = {
  "a 422": (server: ApiServer) => refuse(server, { status: 422, reason: "Invalid" }),
  "a 500": (server: ApiServer) => refuse(server, { status: 500, reason: "InternalError" }),
  "a 403": (server: ApiServer) => {
    const fault = server.faults.add({ verb: ["create", "patch"], path: "/second", forbid: true });
    return async () => fault.remove();
  },
  "an existing object": async (_: ApiServer, { operator }: PageOperator, kind: typeof ConfigMap) => {
    await operator.client.create(kind, { metadata: at("second") });
    return () => operator.client.delete(kind, at("second"));
  },
};

function refuse(server: ApiServer, answer: { status: number; reason: string }) {
  const fault = server.faults.add({ verb: ["create", "patch"], path: "/second", answer });
  return async () => fault.remove();
}

suite("renamed object", (test) => {
  test("of an item is deleted with the item while other dependents wait", async () => {
    await using server = await startPageServer();
    const items = named({
      bulk: {},
      desired: ({ primary: { spec } }) =>
        spec.text === "none" ? {} : { 0: { metadata: { name: spec.text }, data: {} } },
    });
    const missing = configMapOf("missing", { mode: "readOnly", ref: { name: () => "missing" } });
    const dependents = [items, missing, configMapOf("late", { dependsOn: ["missing"] })];
    await using page = await startVersion(server, dependents);
    await createPage(page);
    await untilExists(page, "first");
    await setSpec(page, { text: "second" });
    await untilExists(page, "second");
    await page.quiet();
    assert.ok(await exists(page, "first"), "it could be the one that the dependent wants that waits");
    await setSpec(page, { text: "none" });
    await untilGone(page, "second");
    await untilGone(page, "first");
  });

  for (const [name, begin] of Object.entries(obstacles))
    test(`is kept while its successor fails with ${name}`, async () => {
      await using server = await startPageServer();
      await using page = await startVersion(server, [named()]);
      await createPage(page);
      await untilExists(page, "first");
      const end = await begin(server, page, ConfigMap);
      await setSpec(page, { text: "second" });
      await untilTried(page, 3);
      assert.ok(await exists(page, "first"));
      await end();
      await untilGone(page, "first");
      assert.ok(await exists(page, "second"));
    });

  test("is kept until its successor is ready", async () => {
    await using server = await startPageServer();
    await using page = await startVersion(server, [named({ readyPostcondition: isOpen })]);
    await createPage(page);
    await untilExists(page, "first");
    await setSpec(page, { text: "second" });
    await untilExists(page, "second");
    await page.quiet();
    assert.ok(await exists(page, "first"));
    await setSpec(page, { more: "open" });
    await untilGone(page, "first");
  });

  test("is kept until the dependents of its successor are reconciled", async () => {
    await using server = await startPageServer();
    const between = configMapOf("between", { dependsOn: ["named"] });
    const desired = () => ({ metadata: { name: "second-user" }, data: {} });
    const user = configMapOf("user", { dependsOn: ["between"], desired });
    await using page = await startVersion(server, [named(), between, user]);
    await createPage(page);
    await untilExists(page, "second-user");
    await page.quiet();
    const held = server.faults.add({ verb: "patch", path: "/second-user", forbid: true });
    await page.operator.client.delete(ConfigMap, at("second-user"));
    await setSpec(page, { text: "second" });
    await untilExists(page, "second");
    await untilTried(page, 2);
    assert.ok(await exists(page, "first"));
    held.remove();
    await untilGone(page, "first");
  });

  test("is kept while an item of its bulk dependent is not ready", async () => {
    await using server = await startPageServer();
    const items = configMapOf("items", {
      bulk: {},
      desired: ({ primary: { spec } }) => ({ a: { metadata: { name: spec.text } }, b: { metadata: { name: "same" } } }),
      readyPostcondition: isOpen,
    });
    await using page = await startVersion(server, [items]);
    await createPage(page);
    await untilExists(page, "first");
    await setSpec(page, { text: "second" });
    await untilExists(page, "second");
    await page.quiet();
    assert.ok(await exists(page, "first"));
    await setSpec(page, { more: "open" });
    await untilGone(page, "first");
    assert.ok(await exists(page, "same"));
  });

  test("is kept for another dependent that claims it and cannot be written yet", async () => {
    await using server = await startPageServer();
    await using page = await startVersion(server, [named()]);
    await createPage(page);
    await untilExists(page, "first");
    await page.quiet();
    await page.operator.stop();
    const heir = configMapOf("heir", { desired: () => ({ metadata: { name: "first" }, data: { text: "heir" } }) });
    const fault = server.faults.add({ verb: "patch", path: "configmaps/first", forbid: true });
    await using next = await startVersion(server, [named(), heir]);
    await setSpec(next, { text: "second" });
    await untilExists(next, "second");
    await untilTried(next, 2);
    const before = await next.operator.client.get(ConfigMap, at("first"));
    fault.remove();
    const after = await waitFor("it has the object", async () => {
      const live = await next.operator.client.get(ConfigMap, at("first"));
      return live?.data?.["text"] === "heir" ? live : undefined;
    });
    assert.is(after.metadata.uid, before?.metadata.uid);
  });
});

suite("removed dependent", (test) => {
  const removed = { old: { resource: ConfigMap.definition, deletion: "ordered" } } as const;
  const successor = (rest: Partial<KubernetesDependent> = {}) =>
    configMapOf("next", {
      resource: Secret.definition,
      desired: () => ({ metadata: { name: "second" } }),
      ...(rest as object),
    });

  async function runFirst(server: ApiServer): Promise<void> {
    await using page = await startVersion(server, [configMapOf("old")]);
    await createPage(page);
    await waitFor("all is made", () => page.events.at(-1)?.workflow?.isReady === true);
    await page.quiet();
  }

  for (const [name, begin] of Object.entries(obstacles))
    test(`is kept while its successor of another kind fails with ${name}`, async () => {
      await using server = await startPageServer();
      await runFirst(server);
      await using page = createPageOperator(server, { dependents: [successor()], workflow: { removed } });
      const end = await begin(server, page, Secret);
      await page.operator.start();
      await untilTried(page, 3);
      assert.ok(await exists(page, "one-old"));
      await end();
      await untilGone(page, "one-old");
      assert.ok(await exists(page, "second", Secret));
    });

  test("is kept in its former kind until its successor in another kind is ready", async () => {
    await using server = await startPageServer();
    const keep = configMapOf("keep");
    {
      await using page = await startVersion(server, [keep, configMapOf("same")]);
      await createPage(page);
      await waitFor("all is made", () => page.events.at(-1)?.workflow?.isReady === true);
    }
    const same = { ...successor({ readyPostcondition: isOpen }), name: "same" };
    await using page = await startVersion(server, [keep, same]);
    await untilExists(page, "second", Secret);
    await page.quiet();
    assert.ok(await exists(page, "one-same"));
    await setSpec(page, { more: "open" });
    await untilGone(page, "one-same");
    assert.ok(await exists(page, "one-keep"));
  });

  test("is kept while any dependent waits or is not ready, and names those", async () => {
    await using server = await startPageServer();
    await runFirst(server);
    const gate = configMapOf("gate", { readyPostcondition: isOpen });
    await using page = await startVersion(server, [gate, successor({ dependsOn: ["gate"] })], { removed });
    await waitFor("the successor waits", () => page.events.at(-1)?.workflow?.dependents["next"]?.kind === "waiting");
    await page.quiet();
    assert.ok(await exists(page, "one-old"));
    assert.equal(page.events.at(-1)?.workflow?.removed, { old: { kind: "waiting", for: ["gate", "next"] } });
    await setSpec(page, { more: "open" });
    await untilGone(page, "one-old");
    assert.ok(await exists(page, "second", Secret));
  });
});
