// Writes that are held back because they are made over and over: everybody who should know does, and they are made later.
import { ApiClient } from "#runtime/client/api-client.js";
import { createConnection } from "#runtime/client/connection.js";
import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import { sleep } from "#runtime/base/wait.js";
import { messageOf } from "#runtime/base/logger.js";
import { waitFor } from "#apiserver/wait-for.js";
import type { LoopEvent } from "#runtime/base/activity.js";
import { noUpdate, patchResource, updateStatus, type Reconciler } from "#runtime/reconcile/reconciler.js";
import { informerSource } from "#runtime/sources/informer-source.js";
import { assert, shared, suite } from "../../../support/suite.js";
import { openWatch } from "../../../support/api/watch-client.js";
import {
  ConfigMap,
  configMapOf,
  createPage,
  createPageOperator,
  Page,
  setText,
  startPageServer,
  untilText,
  type PageOperator,
  type PageOperatorOptions,
} from "../page-operator.js";

const server = shared(() => startPageServer());

/** Somebody who answers states of objects of one kind, as the field manager "opponent". */
async function startOpponent<Kind extends KubernetesObject>(
  plural: string,
  answer: (client: ApiClient, object: Kind) => Promise<unknown> | undefined,
): Promise<AsyncDisposable & { answers: () => number }> {
  const { url, token } = await server();
  const client = new ApiClient(createConnection({ url, token }));
  const watch = await openWatch({ url, token }, `${plural}?watch=true`);
  let answers = 0;
  const run = async () => {
    for (let event = await watch.next(); event !== undefined; event = await watch.next()) {
      const answered = event.type === "DELETED" ? undefined : answer(client, event.object as unknown as Kind);
      if (answered !== undefined) answers++;
      await answered?.catch(() => undefined);
    }
  };
  const ended = run().catch(() => undefined);
  return {
    answers: () => answers,
    [Symbol.asyncDispose]: async () => {
      watch[Symbol.dispose]();
      await ended;
      await client.close();
    },
  };
}

async function startWatched(options: PageOperatorOptions): Promise<PageOperator & { loops: LoopEvent[] }> {
  const loops: LoopEvent[] = [];
  const operator = { onLoop: (event: LoopEvent) => void loops.push(event) };
  const page = createPageOperator(await server(), { statusConditions: "managed", ...options, operator });
  await page.operator.start();
  return { ...page, loops };
}

async function readyOf({ operator }: PageOperator, name: string) {
  const found = await operator.client.get(Page, { name, namespace: "default" });
  return found?.status?.conditions?.find(({ type }) => type === "Ready");
}

const CONFIG_MAPS = "/api/v1/namespaces/default/configmaps";
const PAGES = "/apis/example.com/v1/namespaces/default/pages";
const asOpponent = (name: string) => ({ name, namespace: "default", fieldManager: "opponent" });

suite("postponed write", (test) => {
  test("of a dependent sets Ready to False with paths and field manager until the loop ends", async () => {
    let isActive = true;
    await using opponent = await startOpponent<KubernetesObject & { data?: { text?: string } }>(
      CONFIG_MAPS,
      (client, { metadata: { name }, data }) =>
        isActive && name === "fought-text" && data?.text === "first"
          ? client.mergePatch(ConfigMap, asOpponent(name), { data: { text: "theirs" } })
          : undefined,
    );
    await using page = await startWatched({});
    await createPage(page, "fought");
    const ready = await waitFor("Ready says so", async () => {
      const condition = await readyOf(page, "fought");
      // Who undoes the write is known from the first one that is postponed on.
      return condition?.message.includes("opponent") ? condition : undefined;
    });
    assert.equal([ready.status, ready.reason], ["False", "WriteLoop"]);
    assert.match(
      ready.message,
      /ConfigMap\.v1 default\/fought-text .*\(data\.text\).* "opponent" reverts it each time/,
    );
    assert.ok(opponent.answers() >= 3);
    isActive = false;
    await untilText(page, "first", "fought-text");
    await waitFor("Ready is True again", async () => (await readyOf(page, "fought"))?.status === "True");
  });

  test("of the primary is reported in status, health and one warning, and is repeated later", async () => {
    await using opponent = await startOpponent<Page>(PAGES, (client, { metadata: { name }, spec }) =>
      name === "patched" && spec.more === "ours"
        ? client.mergePatch(Page, asOpponent(name), { spec: { more: "theirs" } })
        : undefined,
    );
    const reconciler = { reconcile: () => patchResource({ spec: { more: "ours" } }) };
    await using page = await startWatched({ dependents: [], reconciler });
    await createPage(page, "patched");
    const ready = await waitFor("Ready says so", async () => {
      const condition = await readyOf(page, "patched");
      return condition?.message.includes("opponent") ? condition : undefined;
    });
    assert.match(ready.message, /Page\.v1\.example\.com default\/patched .*\(spec\.more\).* "opponent" reverts it/);
    const before = opponent.answers();
    const listed = () => page.operator.health().controllers["page"]!.postponed[0];
    const { object, managers } = await waitFor("the health lists it", listed);
    assert.equal({ object, managers }, { object: "default/patched", managers: ["opponent"] });
    await waitFor("it is written again", () => opponent.answers() > before);
    assert.equal(page.loops.map(({ dependent, primary, isNew }) => ({ dependent, primary, isNew }))[0], {
      dependent: undefined,
      primary: "default/patched",
      isNew: true,
    });
    const warnings = page.logs.filter((line) => line.startsWith("warn"));
    assert.is(warnings.length, 1, warnings.join("\n"));
  });

  test("is never a finalizer, which is restored 10 times with one warning", async () => {
    await using opponent = await startOpponent<Page>(PAGES, (client, { metadata: { name, finalizers = [] } }) =>
      name === "stripped" && finalizers.length > 0
        ? client.mergePatch(Page, asOpponent(name), { metadata: { finalizers: null } })
        : undefined,
    );
    await using page = await startWatched({ dependents: [configMapOf("text", { deletion: "ordered" })] });
    await createPage(page, "stripped");
    await waitFor("it is put back ten times", () => opponent.answers() >= 10);
    assert.equal(page.loops, []);
    const warnings = page.logs.filter((line) => line.startsWith("warn") && line.includes("stripped"));
    assert.is(warnings.length, 1, warnings.join("\n"));
    assert.match(
      warnings[0]!,
      /written 3 times although .* reverts metadata\.finalizers each time; restoring it immediately, because objects would be orphaned without it/,
    );
  });
});

suite("unstable write", (test) => {
  test("of a dependent is sent 20 times, then postponed, with one warning that names the path", async () => {
    let count = 0;
    const desired = ({ primary }: { primary: Page }) => ({
      metadata: { name: `${primary.metadata.name}-text` },
      data: { text: primary.spec.text, at: String(count++) },
    });
    const reconciler = { reconcile: () => noUpdate({ rescheduleAfterMs: 5 }) };
    await using page = await startWatched({
      dependents: [configMapOf("text", { desired })],
      reconciler,
    });
    await createPage(page, "restless");
    const [loop] = await waitFor("a loop", () => page.loops[0] && page.loops);
    const { isNew, writes, paths, pauseMs } = loop!;
    assert.equal([loop!.loop, isNew, writes, paths, pauseMs], ["unsettled", true, 20, ["data.at"], 2_000]);
    const writesOf = () => page.requests.filter((line) => line.includes("/configmaps/restless-text 20")).length;
    await waitFor("the last write is answered", () => writesOf() === 20);
    await sleep(500);
    assert.is(writesOf(), 20);
    const warnings = page.logs.filter((line) => line.startsWith("warn") && line.includes("restless-text"));
    assert.is(warnings.length, 1, warnings.join("\n"));
    assert.match(
      warnings[0]!,
      /written 20 times although the inputs did not change: desired data\.at differs on every reconcile/,
    );
    // Somebody wants something new.
    await setText(page, "second", "restless");
    await untilText(page, "second", "restless-text");
  });

  const turns = ["apply", "mergePatch"] as const;
  for (const way of turns)
    test(`of two primaries that alternately write one object with ${way} is a loop of each`, async () => {
      const names = [`${way.toLowerCase()}-a`, `${way.toLowerCase()}-b`];
      const name = `${way.toLowerCase()}-shared`;
      const shared = informerSource({
        name: "shared",
        resource: ConfigMap,
        mapper: ({ metadata }) => (metadata.name === name ? names.map((primary) => `default/${primary}`) : []),
      });
      const reconcile: Reconciler<Page, object, object>["reconcile"] = async ({ primary, context }) => {
        const data = { by: primary.metadata.name };
        if (names.includes(data.by))
          await context.resources.of(ConfigMap)[way]({ metadata: { name, namespace: "default" }, data });
      };
      await using page = await startWatched({
        dependents: [],
        eventSources: () => [shared],
        reconciler: { reconcile },
        statusConditions: undefined,
      });
      await page.operator.client.create(ConfigMap, { metadata: { name, namespace: "default" } });
      for (const primary of names) await createPage(page, primary);
      await waitFor("both are told", () => names.every((of) => page.loops.some(({ primary }) => primary.endsWith(of))));
      const { error: failure } = await waitFor("one of them waits", () =>
        page.events.find(({ error }) => error !== undefined),
      );
      assert.ok(page.operator.health().controllers["page"]!.postponed.length > 0);
      const writesOf = () => page.requests.filter((line) => line.includes(`/configmaps/${name} 20`)).length;
      assert.match(
        messageOf(failure),
        /\(data\.by\).* another client, primary, or admission policy reverts it each time; .*, next in 2 s/,
      );
      const before = writesOf();
      assert.ok(before <= 8, `${before} writes`);
      await sleep(500);
      assert.is(writesOf(), before);
      const { loop, paths, object } = page.loops[0]!;
      assert.equal([loop, paths, object], ["undone", ["data.by"], `default/${name}`]);
    });

  test("of a status is sent 20 times, then postponed", async () => {
    let count = 0;
    const reconciler = { reconcile: () => updateStatus({ text: String(count++) }, { rescheduleAfterMs: 5 }) };
    await using page = await startWatched({ dependents: [], reconciler, statusConditions: undefined });
    await createPage(page, "ticking");
    const [loop] = await waitFor("a loop", () => page.loops[0] && page.loops);
    assert.equal([loop!.loop, loop!.paths, loop!.dependent], ["unsettled", ["status.text"], undefined]);
    const writesOf = () => page.requests.filter((line) => line.includes("/pages/ticking/status 20")).length;
    await waitFor("the last write is answered", () => writesOf() === 20);
    await sleep(500);
    assert.is(writesOf(), 20);
  });

  test("of a status that follows 40 events of a dependent is no loop", async () => {
    const reconcile = ({ secondary }: { secondary: { text?: KubernetesObject } }) =>
      updateStatus({ text: secondary.text?.metadata.annotations?.["pods"] ?? "none" });
    await using page = await startWatched({ reconciler: { reconcile } });
    await createPage(page, "rolling");
    await untilText(page, "first", "rolling-text");
    const { client } = page.operator;
    const ref = { name: "rolling-text", namespace: "default" };
    for (let pods = 1; pods <= 40; pods++) {
      await client.mergePatch(ConfigMap, ref, { metadata: { annotations: { pods: String(pods) } } });
      await waitFor("the status follows", async () => {
        const { status } = (await client.get(Page, { name: "rolling", namespace: "default" }))!;
        return status?.text === String(pods);
      });
    }
    assert.equal(page.loops, []);
    assert.is((await readyOf(page, "rolling"))?.status, "True");
  });

  const edits: [string, (count: number, client: ApiClient) => object | Promise<object>][] = [
    [
      "the result of the reconciler",
      (count) => patchResource({ spec: { more: String(count) } }, { rescheduleAfterMs: 100 }),
    ],
    [
      "context.client",
      (count, client) => client.mergePatch(Page, asOpponent("editing"), { spec: { more: String(count) } }),
    ],
  ];
  for (const [way, edit] of edits)
    test(`of the spec by ${way} is postponed although each edit is a new generation`, async () => {
      let count = 0;
      const reconcile = async ({ primary, context }: { primary: Page; context: { client: ApiClient } }) => {
        if (primary.metadata.name !== "editing") return noUpdate();
        const returned = await edit(count++, context.client);
        return way === "context.client" ? noUpdate() : returned;
      };
      await using page = await startWatched({ dependents: [], reconciler: { reconcile } });
      await createPage(page, "editing");
      await using _deleted = {
        async [Symbol.asyncDispose]() {
          await page.operator.client.delete(Page, { name: "editing", namespace: "default" });
        },
      };
      const [loop] = await waitFor("a loop", () => page.loops[0] && page.loops);
      assert.equal([loop!.loop, loop!.writes, loop!.primary], ["unsettled", 20, "default/editing"]);
      assert.match(loop!.paths.join(), /^spec/);
      const editsOf = () => page.requests.filter((line) => line.includes("/pages/editing 20")).length;
      const before = editsOf();
      await sleep(500);
      assert.is(editsOf(), before);
      await waitFor("Ready says so", async () => (await readyOf(page, "editing"))?.reason === "WriteLoop");
      await waitFor("it goes on", () => editsOf() > before);
    });
});

suite("write log", (test) => {
  test("contains one line for each write, with the object and the changed paths", async () => {
    const dependents = [configMapOf("text", { deletion: "ordered" })];
    await using page = await startWatched({ dependents, statusConditions: undefined });
    await createPage(page, "logged");
    await untilText(page, "first", "logged-text");
    await setText(page, "second", "logged");
    await untilText(page, "second", "logged-text");
    await page.operator.client.delete(ConfigMap, { name: "logged-text", namespace: "default" });
    await waitFor(
      "it is made anew",
      () => page.logs.filter((line) => line.startsWith("info created") && line.includes("logged")).length === 2,
    );
    await page.operator.client.delete(Page, { name: "logged", namespace: "default" });
    await waitFor("it is deleted with its page", () => page.logs.some((line) => line.startsWith("info deleted")));
    const lines = page.logs.filter((line) => line.includes('"default/logged-text"'));
    assert.equal(lines, [
      'info created ConfigMap "default/logged-text"',
      'info updated ConfigMap "default/logged-text": data.text',
      'info created ConfigMap "default/logged-text"',
      'info deleted ConfigMap "default/logged-text"',
    ]);
  });
});
