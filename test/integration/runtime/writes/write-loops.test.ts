// Dependents that somebody else undoes: they are written less and less often, and whoever runs the operator learns why.
import type { ApiServer } from "#apiserver/index.js";
import { waitFor } from "#apiserver/wait-for.js";
import { ApiClient } from "#runtime/client/api-client.js";
import { createConnection } from "#runtime/client/connection.js";
import { messageOf } from "#runtime/base/logger.js";
import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import type { LoopEvent } from "#runtime/base/activity.js";
import type { Reconciler } from "#runtime/reconcile/reconciler.js";
import { informerSource } from "#runtime/sources/informer-source.js";
import { builtinDefinition, classOf } from "../../../support/kinds/kind-definitions.js";
import { failuresOf } from "../../../support/runtime/recorded-operator.js";
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
  type DataObject,
  type PageOperator,
  type PageOperatorOptions,
} from "../page-operator.js";

type Stated = NonNullable<Parameters<typeof configMapOf>[1]>;

interface EventObject extends KubernetesObject {
  involvedObject: { kind: string; name: string; uid: string };
  reason: string;
  message: string;
  type: string;
}

const EventKind = classOf<EventObject>(builtinDefinition("v1", "Event"));
const Lease = classOf(builtinDefinition("coordination.k8s.io/v1", "Lease"));
const server = shared(() => startPageServer());

/** Somebody who answers every state of the ConfigMap of a page that is ours. */
interface Opponent extends AsyncDisposable {
  readonly answers: () => number;
}

async function startOpponent(
  { url, token }: ApiServer,
  name: string,
  answer: (client: ApiClient, object: DataObject) => Promise<unknown>,
): Promise<Opponent> {
  const client = new ApiClient(createConnection({ url, token }));
  const watch = await openWatch({ url, token }, `/api/v1/namespaces/default/configmaps?watch=true`);
  let answers = 0;
  const run = async () => {
    for (let event = await watch.next(); event !== undefined; event = await watch.next()) {
      const object = event.object as unknown as DataObject;
      if (event.type === "DELETED" || object.metadata.name !== name || object.data?.["text"] !== "first") continue;
      answers++;
      await answer(client, object);
    }
  };
  // It ends when its connection does.
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

/** An operator, and the loops that its observer was told of. */
async function startWatched(options: PageOperatorOptions = {}): Promise<PageOperator & { loops: LoopEvent[] }> {
  const loops: LoopEvent[] = [];
  const operator = { onLoop: (event: LoopEvent) => void loops.push(event), ...options.operator };
  const page = createPageOperator(await server(), { ...options, operator });
  await page.operator.start();
  return { ...page, loops };
}

// What is noted at the primary is none of them.
function writesOf({ requests }: PageOperator, object: string): number {
  return requests.filter(
    (line) => line.startsWith("PATCH") && line.includes(`/${object} `) && !line.includes("/pages/"),
  ).length;
}

suite("write loop", (test) => {
  test("postpones writes after the third revert of a field, with one warning and one Event", async () => {
    const edit = (client: ApiClient, { metadata: { name } }: DataObject) =>
      client.mergePatch(ConfigMap, { name, namespace: "default" }, { data: { text: "theirs" } });
    await using opponent = await startOpponent(await server(), "edited-text", edit);
    await using page = await startWatched();
    const primary = await createPage(page, "edited");
    const [first, second] = await waitFor("two writes of the loop", () => page.loops[1] && page.loops);
    const common = {
      controller: "page",
      dependent: "text",
      primary: "default/edited",
      kind: "ConfigMap.v1",
      object: "default/edited-text",
      loop: "undone" as const,
      paths: ["data.text"],
    };
    assert.equal(first, { ...common, writes: 3, isNew: true, pauseMs: 2_000 });
    assert.equal(second, { ...common, writes: 4, isNew: false, pauseMs: 4_000 });
    assert.is(writesOf(page, "edited-text"), 4);
    assert.ok(opponent.answers() >= 3);

    const warnings = page.logs.filter((line) => line.startsWith("warn"));
    assert.is(warnings.length, 1, warnings.join("\n"));
    assert.match(
      warnings[0]!,
      /ConfigMap\.v1 default\/edited-text was written 3 times .* reverts data\.text each time/,
    );
    const told = await waitFor("an Event about the primary", async () => {
      const events = await page.operator.client.list(EventKind, { namespace: "default" });
      const ours = events.filter(({ involvedObject }) => involvedObject.name === "edited");
      return ours.length > 0 ? ours : undefined;
    });
    assert.equal(
      told.map(({ reason, type, involvedObject }) => [reason, type, involvedObject.kind, involvedObject.uid]),
      [["WriteLoop", "Warning", "Page", primary.metadata.uid]],
    );
    // Everything else about the page goes on, and so does what is desired anew.
    assert.equal(failuresOf(page.events), []);
    await setText(page, "second", "edited");
    await untilText(page, "second", "edited-text");
  });

  test("postpones creations after the third deletion by another client", async () => {
    const remove = (client: ApiClient, { metadata: { name } }: DataObject) =>
      client.delete(ConfigMap, { name, namespace: "default" });
    await using _opponent = await startOpponent(await server(), "deleted-text", remove);
    await using page = await startWatched();
    await createPage(page, "deleted");
    const failed = await waitFor("a reconcile that waits", () => page.events.find(({ error }) => error !== undefined));
    assert.match(
      String((failed.error as AggregateError).errors[0]),
      /it is deleted or loses its label gen-operator.dev\/controller each time; .*, next in 2 s/,
    );
    assert.equal(
      page.loops.map(({ writes, paths, pauseMs }) => ({ writes, paths, pauseMs })),
      [{ writes: 3, paths: [], pauseMs: 2_000 }],
    );
    await waitFor("the next creation", () => page.loops.length === 2);
    assert.is(writesOf(page, "deleted-text"), 4);
  });

  for (const serverSideApply of [true, false])
    test(`is not detected if the operator's own client deletes the object 6 times: ${serverSideApply ? "apply" : "PUT"}`, async () => {
      const name = `own-${serverSideApply}`;
      await using page = await startWatched({ dependents: [configMapOf("text", { serverSideApply })] });
      await createPage(page, name);
      const ref = { name: `${name}-text`, namespace: "default" };
      let last = "";
      for (let round = 0; round < 6; round++) {
        const live = await waitFor("another object", async () => {
          const found = await page.operator.client.get(ConfigMap, ref);
          return found?.metadata.uid === last ? undefined : found;
        });
        last = live.metadata.uid!;
        await page.operator.client.delete(ConfigMap, ref);
      }
      await untilText(page, "first", ref.name);
      assert.equal(page.loops, []);
      assert.equal(failuresOf(page.events), []);
    });

  test("is detected as unstable if the reconciler deletes the object in each reconcile", async () => {
    const reconciler: Reconciler<Page, object, NonNullable<Page["status"]>> = {
      async reconcile({ primary, context }) {
        await context.client.delete(ConfigMap, { name: `${primary.metadata.name}-text`, namespace: "default" });
      },
    };
    await using page = await startWatched({ reconciler });
    await createPage(page, "restless");
    const loop = await waitFor("the loop", () => page.loops[0]);
    assert.equal([loop.loop, loop.writes], ["unsettled", 20]);
  });

  test("of an unstable status sets Ready to False, with increasing backoff", async () => {
    const reconciler: Reconciler<Page, object, NonNullable<Page["status"]>> = {
      reconcile: () => ({ status: { text: `${performance.now()}` }, rescheduleAfterMs: 0 }),
    };
    await using page = await startWatched({ reconciler, statusConditions: "managed" });
    await createPage(page, "clock");
    const loopsOf = () => page.loops.filter(({ primary }) => primary === "default/clock");
    const found = new Set<string>();
    await waitFor(
      "two pauses",
      async () => {
        const live = await page.operator.client.get(Page, { name: "clock", namespace: "default" });
        const ready = live?.status?.conditions?.find(({ type }) => type === "Ready");
        if (loopsOf().length >= 2) found.add(`${ready?.status} ${ready?.reason}`);
        return loopsOf().length >= 4;
      },
      { timeoutMs: 30_000 },
    );
    assert.equal([...found], ["False WriteLoop"]);
    assert.equal(
      loopsOf().map(({ pauseMs }) => pauseMs),
      [2_000, 4_000, 8_000, 16_000],
    );
  });

  test("sets Ready to True again once the object stays as desired", async () => {
    let undone = 0;
    const edit = async (client: ApiClient, { metadata: { name } }: DataObject) =>
      ++undone <= 3 && client.mergePatch(ConfigMap, { name, namespace: "default" }, { data: { text: "theirs" } });
    await using _opponent = await startOpponent(await server(), "soothed-text", edit);
    await using page = await startWatched({ statusConditions: "managed" });
    await createPage(page, "soothed");
    const readyIs = (wanted: string) =>
      waitFor(
        `Ready is ${wanted}`,
        async () => {
          const live = await page.operator.client.get(Page, { name: "soothed", namespace: "default" });
          return live?.status?.conditions?.some(({ type, status }) => type === "Ready" && status === wanted);
        },
        { timeoutMs: 30_000 },
      );
    await waitFor("the loop", () => page.loops.some(({ primary }) => primary === "default/soothed"));
    await readyIs("False");
    await readyIs("True");
  });

  test("postpones writes by PUT after the third revert, and names the path", async () => {
    const edit = (client: ApiClient, { metadata: { name } }: DataObject) =>
      client.mergePatch(ConfigMap, { name, namespace: "default" }, { data: { text: "theirs", more: "kept" } });
    await using _opponent = await startOpponent(await server(), "put-text", edit);
    await using page = await startWatched({ dependents: [configMapOf("text", { serverSideApply: false })] });
    await createPage(page, "put");
    const loops = await waitFor("two writes of the loop", () => page.loops[1] && page.loops);
    const found = loops.map(({ object, paths, writes, isNew, pauseMs }) => ({ object, paths, writes, isNew, pauseMs }));
    const common = { object: "default/put-text", paths: ["data.text"] };
    assert.equal(found.slice(0, 2), [
      { ...common, writes: 3, isNew: true, pauseMs: 2_000 },
      { ...common, writes: 4, isNew: false, pauseMs: 4_000 },
    ]);
    assert.is(page.requests.filter((line) => line.startsWith("PUT") && line.includes("/put-text ")).length, 3);
    const warnings = page.logs.filter((line) => line.startsWith("warn"));
    assert.is(warnings.length, 1, warnings.join("\n"));
    assert.match(warnings[0]!, /ConfigMap\.v1 default\/put-text was written 3 times .* reverts data\.text each time/);
    await waitFor("an Event about the primary", async () => {
      const events = await page.operator.client.list(EventKind, { namespace: "default" });
      return events.some(({ involvedObject, reason }) => involvedObject.name === "put" && reason === "WriteLoop");
    });
    assert.equal(failuresOf(page.events), []);
    await setText(page, "second", "put");
    await untilText(page, "second", "put-text");
  });

  test("postpones creations by POST after the third deletion", async () => {
    const remove = (client: ApiClient, { metadata: { name } }: DataObject) =>
      client.delete(ConfigMap, { name, namespace: "default" });
    await using _opponent = await startOpponent(await server(), "posted-text", remove);
    await using page = await startWatched({ dependents: [configMapOf("text", { serverSideApply: false })] });
    await createPage(page, "posted");
    const failed = await waitFor("a reconcile that waits", () => page.events.find(({ error }) => error !== undefined));
    assert.match(
      String((failed.error as AggregateError).errors[0]),
      /it is deleted or loses its label gen-operator.dev\/controller each time; .*, next in 2 s/,
    );
    assert.equal(
      page.loops.map(({ writes, paths, pauseMs }) => ({ writes, paths, pauseMs })),
      [{ writes: 3, paths: [], pauseMs: 2_000 }],
    );
    assert.is(page.requests.filter((line) => /^POST .*\/configmaps 201/.test(line)).length, 3);
  });

  test("of a removed owner reference fails the reconcile with the path", async () => {
    const untie = (client: ApiClient, { metadata: { name, ownerReferences } }: DataObject) => {
      const ref = { name, namespace: "default", fieldManager: "opponent" };
      return ownerReferences && client.mergePatch(ConfigMap, ref, { metadata: { ownerReferences: null } });
    };
    await using _opponent = await startOpponent(await server(), "untied-text", async (...args) => untie(...args));
    await using page = await startWatched();
    await createPage(page, "untied");
    const failed = await waitFor("a reconcile that waits", () => page.events.find(({ error }) => error !== undefined));
    assert.match(
      messageOf((failed.error as AggregateError).errors[0]),
      /untied-text \(metadata\.ownerReferences.*\) was written 3 times, but .* reverts it each time;/,
    );
  });

  const hasNone = (list: readonly string[] | undefined) => list === undefined || list.length === 0;
  const LABEL = "gen-operator.dev/controller";
  const undone: { readonly [title: string]: { stated: Stated; undo: (object: DataObject) => object | undefined } } = {
    "the finalizer of heldForCleanup": {
      stated: { heldForCleanup: true, deletion: "ordered" },
      undo: ({ metadata }) => (hasNone(metadata.finalizers) ? undefined : { metadata: { finalizers: null } }),
    },
    "the label of a createOnly object": {
      stated: { mode: "createOnly" },
      undo: ({ metadata: { labels } }) => (labels?.[LABEL] ? { metadata: { labels: { [LABEL]: null } } } : undefined),
    },
    "the link of an object with operations.update: false": {
      stated: { operations: { update: false } },
      undo: ({ metadata }) => (metadata.annotations ? { metadata: { annotations: null } } : undefined),
    },
  };
  for (const [title, { stated, undo }] of Object.entries(undone))
    test(`restores ${title} 3 times, then with increasing backoff`, async () => {
      const name = `put-back-${Object.keys(undone).indexOf(title)}`;
      const strip = async (client: ApiClient, object: DataObject) => {
        const patch = undo(object);
        if (patch) await client.mergePatch(ConfigMap, { name: `${name}-text`, namespace: "default" }, patch);
      };
      await using _opponent = await startOpponent(await server(), `${name}-text`, strip);
      await using page = await startWatched({ dependents: [configMapOf("text", stated)] });
      await createPage(page, name);
      const loops = await waitFor("two writes of the loop", () => page.loops[1] && page.loops);
      assert.equal(
        loops.map(({ loop, dependent, isNew }) => [loop, dependent, isNew]),
        [
          ["undone", "text", true],
          ["undone", "text", false],
        ],
      );
      const stored = page.requests.filter((line) => line.startsWith("PATCH") && line.endsWith(`/${name}-text 200`));
      assert.ok(stored.length <= 6, stored.join(", "));
    });

  test("postpones the finalizer of heldForCleanup on a referenced object", async () => {
    const ref = { name: "held-login", namespace: "default" };
    const strip = async (client: ApiClient, { metadata }: DataObject) =>
      hasNone(metadata.finalizers) ? undefined : client.mergePatch(ConfigMap, ref, { metadata: { finalizers: null } });
    await using _opponent = await startOpponent(await server(), ref.name, strip);
    // The pages of other tests need nothing.
    const name = ({ primary }: { primary: Page }) => (primary.metadata.name === "holder" ? ref.name : undefined);
    const { desired: _, ...stated } = configMapOf("login", { mode: "readOnly", ref: { name }, heldForCleanup: true });
    const text = configMapOf("text", { deletion: "ordered", dependsOn: ["login"] });
    await using page = await startWatched({ dependents: [stated, text] });
    await page.operator.client.create(ConfigMap, { metadata: ref, data: { text: "first" } });
    await createPage(page, "holder");
    const [loop] = await waitFor("a loop", () => page.loops[1] && page.loops);
    assert.equal([loop?.loop, loop?.writes, loop?.paths], ["undone", 3, ["metadata.finalizers"]]);
    const writes = writesOf(page, ref.name);
    assert.ok(writes <= 5, `${writes} writes`);
  });

  test("is reported for each of two dependents", async () => {
    const edit = (client: ApiClient, { metadata: { name } }: DataObject) =>
      client.mergePatch(ConfigMap, { name, namespace: "default" }, { data: { text: "theirs" } });
    await using _one = await startOpponent(await server(), "two-one", edit);
    await using _other = await startOpponent(await server(), "two-other", edit);
    await using page = await startWatched({
      dependents: [configMapOf("one"), configMapOf("other"), configMapOf("calm")],
    });
    await createPage(page, "two");
    await waitFor("both loops", () => new Set(page.loops.map(({ object }) => object)).size === 2);
    const found = page.loops.filter(({ isNew }) => isNew).map(({ dependent }) => dependent);
    assert.equal(found.sort(), ["one", "other"]);
    assert.is(writesOf(page, "two-calm"), 1);
  });

  test("is not detected if the desired object changes 8 times", async () => {
    await using page = await startWatched();
    await createPage(page, "busy");
    for (let version = 0; version < 8; version++) {
      await setText(page, `version ${version}`, "busy");
      await untilText(page, `version ${version}`, "busy-text");
    }
    assert.equal(page.loops, []);
  });

  test("is not detected if 30 primaries contribute to one object, each with one write", async () => {
    const name = "contributions";
    const names = Array.from({ length: 30 }, (_, index) => `contributor-${index}`);
    const shared = informerSource({ name, resource: ConfigMap, mapper: () => names.map((each) => `default/${each}`) });
    const reconcile: Reconciler<Page, object, object>["reconcile"] = async ({ primary: { metadata }, context }) => {
      const data = { [metadata.name]: "is here" };
      if (names.includes(metadata.name))
        await context.resources.of(ConfigMap).mergePatch({ metadata: { name, namespace: "default" }, data });
    };
    await using page = await startWatched({ dependents: [], eventSources: () => [shared], reconciler: { reconcile } });
    const { client } = page.operator;
    await client.create(ConfigMap, { metadata: { name, namespace: "default" } });
    await Promise.all(names.map((each) => createPage(page, each)));
    await waitFor("all are there", async () => {
      const found = await client.get(ConfigMap, { name, namespace: "default" });
      return Object.keys(found?.data ?? {}).length === names.length;
    });
    await page.quiet();
    assert.equal([page.loops, failuresOf(page.events)], [[], []]);
    const changes = (await server()).requests.filter(
      ({ verb, path, status, changedNothing }) =>
        verb === "patch" && path.endsWith(`/${name}`) && status === 200 && !changedNothing,
    );
    assert.is(changes.length, names.length);
  });

  test("is not detected for 5 successive primaries of one name", async () => {
    await using page = await startWatched({
      dependents: [],
      reconciler: { reconcile: () => {} },
      statusConditions: "managed",
    });
    const ref = { name: "made-anew", namespace: "default" };
    const { client } = page.operator;
    for (let count = 0; count < 5; count++) {
      await createPage(page, ref.name);
      await waitFor("its conditions", async () => (await client.get(Page, ref))?.status?.conditions?.[0]);
      await client.delete(Page, ref);
    }
    assert.equal(page.loops, []);
  });

  test("is not detected for a manual edit, which is reverted by one write", async () => {
    await using page = await startWatched({ dependents: [configMapOf("text")] });
    await createPage(page, "edited-by-hand");
    await untilText(page, "first", "edited-by-hand-text");
    const ref = { name: "edited-by-hand-text", namespace: "default" };
    await page.operator.client.mergePatch(ConfigMap, ref, { data: { text: "by hand" } });
    await untilText(page, "first", ref.name);
    await page.quiet();
    // The edit is a request of the same client.
    assert.is(writesOf(page, ref.name), 3);
    assert.equal([page.loops, failuresOf(page.events)], [[], []]);
  });

  test("is not detected if the API server normalizes the object", async () => {
    const spec = { renewTime: "2026-01-01T01:00:00.000000+01:00" };
    const lease = configMapOf("lease", {
      resource: Lease.definition,
      desired: ({ primary }) => ({ metadata: { name: primary.metadata.name }, spec }),
    });
    await using page = await startWatched({ dependents: [lease], maxReconciliationIntervalMs: 50 });
    await createPage(page, "normalising");
    await waitFor(
      "some reconciles",
      () => page.events.filter(({ primary }) => primary.endsWith("/normalising")).length >= 6,
    );
    assert.equal(
      page.events.flatMap(({ error }) => (error === undefined ? [] : messageOf(error))),
      [],
    );
    assert.is(writesOf(page, "normalising"), 1);
    assert.equal(page.loops, []);
  });
});
