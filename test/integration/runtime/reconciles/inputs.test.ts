// What a controller reads of the metadata of its primaries: a change of it causes a reconcile, as an edit of the spec does.
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { waitFor } from "#apiserver/wait-for.js";
import type { ControllerDefinition } from "#runtime/reconcile/controller-definition.js";
import { patchResource, type Reconciler } from "#runtime/reconcile/reconciler.js";
import { apiRequestOrThrow } from "../../../support/api/api-request.js";
import { configMapsWith } from "../../../support/runtime/config-maps.js";
import { failuresOf } from "../../../support/runtime/recorded-operator.js";
import { assert, suite } from "../../../support/suite.js";
import {
  createPage,
  createPageOperator,
  Page,
  setText,
  pageSpacesOf,
  startInSpace,
  startPageServer,
  textOf,
  untilText,
  type PageOperator,
  type PageOperatorOptions,
} from "../page-operator.js";

const openSpace = pageSpacesOf();
const start = async (options: PageOperatorOptions) => startInSpace(await openSpace(), options);
const idle: Reconciler<Page, object, object> = { reconcile: () => {} };
const TIER = "example.com/tier";

type Inputs = NonNullable<ControllerDefinition["inputs"]>;
type Member = "labels" | "annotations";

/** A ConfigMap with the tier of the page. */
const tierOf = (member: Member, name = "tier") =>
  configMapsWith<Page>(({ metadata }) => ({ text: metadata[member]?.[TIER] ?? "none" }))(name);

const one = ({ namespace = "default" }: PageOperator) => ({ name: "one", namespace });
const setMetadata = (page: PageOperator, member: Member, values: { readonly [key: string]: string | null }) =>
  page.operator.client.mergePatch(Page, one(page), { metadata: { [member]: values } } as never);

suite("inputs", (test) => {
  for (const member of ["labels", "annotations"] as const)
    for (const inputs of [[`metadata.${member}['${TIER}']`], [`metadata.${member}`]] as Inputs[])
      test(`${inputs[0]} reconciles a changed, removed or added key`, async () => {
        const settings = { dependents: [tierOf(member)], reconciler: idle, inputs };
        await using page = await start(settings);
        await createPage(page, "one", { [member]: { [TIER]: "gold" } });
        await untilText(page, "gold", "one-tier");
        for (const [value, text] of [
          ["silver", "silver"],
          [null, "none"],
          ["bronze", "bronze"],
        ] as const) {
          await setMetadata(page, member, { [TIER]: value });
          await untilText(page, text, "one-tier");
        }
        assert.equal(failuresOf(page.events), []);
      });

  test("ignore changes of other keys", async () => {
    const inputs: Inputs = [`metadata.labels['${TIER}']`];
    await using page = await start({ dependents: [tierOf("labels")], reconciler: idle, inputs });
    await createPage(page, "one", { labels: { [TIER]: "gold" } });
    await untilText(page, "gold", "one-tier");
    await page.quiet();
    const { length } = page.events;
    await setMetadata(page, "labels", { other: "x" });
    await setMetadata(page, "annotations", { [TIER]: "x" });
    await setText(page, "second");
    await waitFor("the edit is reconciled", () => page.events.length > length);
    await page.quiet();
    assert.is(page.events.length, length + 1, "only the edit of the spec");
  });

  test("include owner references", async () => {
    const owners = configMapsWith<Page>(({ metadata }) => ({ text: `${metadata.ownerReferences?.length ?? 0}` }));
    const inputs: Inputs = ["metadata.ownerReferences"];
    await using page = await start({ dependents: [owners("owners")], reconciler: idle, inputs });
    await createPage(page);
    await untilText(page, "0", "one-owners");
    const owner = await createPage(page, "owner");
    const { apiVersion, kind, metadata } = owner;
    const ownerReferences = [{ apiVersion, kind, name: "owner", uid: metadata.uid }];
    await page.operator.client.mergePatch(Page, one(page), { metadata: { ownerReferences } } as never);
    await untilText(page, "1", "one-owners");
  });

  test("reconcile a change made during a reconcile", async () => {
    let release: () => void = () => {};
    let isHeld = false;
    const reconciler: Reconciler<Page, object, object> = {
      reconcile: async ({ primary }) => {
        if (primary.metadata.labels?.[TIER] === "silver") {
          isHeld = true;
          await new Promise<void>((resolve) => (release = resolve));
        }
        return patchResource({ metadata: { annotations: { seen: primary.metadata.labels?.[TIER] ?? "none" } } });
      },
    };
    const inputs: Inputs = [`metadata.labels['${TIER}']`];
    await using page = await start({ dependents: [tierOf("labels")], reconciler, inputs });
    await createPage(page, "one", { labels: { [TIER]: "gold" } });
    await untilText(page, "gold", "one-tier");
    await setMetadata(page, "labels", { [TIER]: "silver" });
    await waitFor("the reconcile is held", () => isHeld);
    await setMetadata(page, "labels", { [TIER]: "bronze" });
    release();
    await untilText(page, "bronze", "one-tier");
  });

  test("reconcile a change whose watch event arrives after the response of an own write has shown it", async () => {
    await using server = await startPageServer();
    let release: (() => void) | undefined;
    const reconciler: Reconciler<Page, object, object> = {
      reconcile: async ({ primary }) => {
        const tier = primary.metadata.labels?.[TIER] ?? "none";
        if (tier === "silver") await new Promise<void>((resolve) => (release = resolve));
        return patchResource({ metadata: { annotations: { seen: tier } } });
      },
    };
    const inputs: Inputs = [`metadata.labels['${TIER}']`];
    await using page = createPageOperator(server, { dependents: [tierOf("labels")], reconciler, inputs });
    await page.operator.start();
    await createPage(page, "one", { labels: { [TIER]: "gold" } });
    await untilText(page, "gold", "one-tier");
    await setMetadata(page, "labels", { [TIER]: "silver" });
    await waitFor("the reconcile is held", () => release);
    const held = server.faults.holdWatches();
    await setMetadata(page, "labels", { [TIER]: "bronze" });
    const before = page.events.length;
    release!();
    await waitFor("the reconcile has ended with its write", () => page.events.length > before);
    assert.equal((await page.operator.client.get(Page, one(page)))?.metadata.annotations?.["seen"], "silver");
    held.release();
    await untilText(page, "bronze", "one-tier");
    assert.equal(failuresOf(page.events), []);
  });

  for (const serverSideApply of [true, false])
    test(`ignore annotations that the controller writes: ${serverSideApply ? "apply" : "patches"}`, async () => {
      let count = 0;
      const reconciler: Reconciler<Page, object, object> = {
        reconcile: () => patchResource({ metadata: { annotations: { "example.com/count": `${++count}` } } }),
      };
      const inputs: Inputs = ["metadata.labels", "metadata.annotations"];
      await using page = await start({ dependents: [], reconciler, serverSideApply, inputs });
      await createPage(page);
      await page.quiet();
      assert.is(page.events.length, 1);
      await setMetadata(page, "labels", { [TIER]: "gold" });
      await page.quiet();
      assert.is(page.events.length, 2);
    });

  test("ignore own annotations when another client writes the status", async () => {
    let count = 0;
    const reconciler: Reconciler<Page, object, object> = {
      reconcile: () => patchResource({ metadata: { annotations: { "example.com/count": `${++count}` } } }),
    };
    const space = await openSpace();
    await using page = await startInSpace(space, { dependents: [], reconciler, inputs: ["metadata.annotations"] });
    await createPage(page);
    await page.quiet();
    const path = `/apis/example.com/v1/namespaces/${space.namespace}/pages/one/status`;
    const patch = { contentType: "application/merge-patch+json", body: { status: { text: "theirs" } } };
    await apiRequestOrThrow(space, `PATCH ${path}`, patch);
    await page.quiet();
    assert.is(page.events.length, 1);
  });

  test("ignore the annotation of kubectl apply unless it is listed", async () => {
    const applied = "kubectl.kubernetes.io/last-applied-configuration";
    for (const [inputs, more] of [
      [["metadata.annotations"], 0],
      [[`metadata.annotations['${applied}']`], 1],
    ] as [Inputs, number][]) {
      await using page = await start({ dependents: [], reconciler: idle, inputs });
      await createPage(page);
      await page.quiet();
      const { length } = page.events;
      await setMetadata(page, "annotations", { [applied]: "{}" });
      await page.quiet();
      assert.is(page.events.length - length, more, inputs[0]);
    }
  });

  test("are empty by default, so that metadata changes are ignored", async () => {
    await using page = await start({ dependents: [tierOf("labels")], reconciler: idle });
    await createPage(page, "one", { labels: { [TIER]: "gold" } });
    await untilText(page, "gold", "one-tier");
    await setMetadata(page, "labels", { [TIER]: "silver" });
    await page.quiet();
    assert.is(await textOf(page, "one-tier"), "gold");
  });

  test("reconcile a change at startup that was made while the operator was stopped", async () => {
    const space = await openSpace();
    const settings = { dependents: [tierOf("labels")], reconciler: idle, inputs: ["metadata.labels"] as Inputs };
    {
      await using page = await startInSpace(space, settings);
      await createPage(page, "one", { labels: { [TIER]: "gold" } });
      await untilText(page, "gold", "one-tier");
    }
    await apiRequestOrThrow(space, `PATCH /apis/example.com/v1/namespaces/${space.namespace}/pages/one`, {
      contentType: "application/merge-patch+json",
      body: { metadata: { labels: { [TIER]: "silver" } } },
    });
    await using page = await startInSpace(space, settings);
    await untilText(page, "silver", "one-tier");
  });

  test("allow 30 successive changes without a write loop", async () => {
    const inputs: Inputs = [`metadata.labels['${TIER}']`];
    await using page = await start({ dependents: [tierOf("labels")], reconciler: idle, inputs });
    await createPage(page, "one", { labels: { [TIER]: "t" } });
    for (let index = 0; index < 30; index++) {
      await setMetadata(page, "labels", { [TIER]: `t${index}` });
      await untilText(page, `t${index}`, "one-tier");
    }
  });

  test("publish each unlisted read once on the channel gen-operator.unlisted-read, and keep the values of the primary", async () => {
    const told: unknown[] = [];
    const listen = (message: unknown) => void told.push(message);
    const clones: unknown[] = [];
    const reconciler: Reconciler<Page, object, object> = {
      reconcile: ({ primary }) => {
        clones.push(structuredClone(primary.spec), structuredClone(primary.metadata.labels));
        return patchResource({ metadata: { annotations: { seen: primary.metadata.labels?.["other"] ?? "none" } } });
      },
    };
    const inputs: Inputs = [`metadata.labels['${TIER}']`];
    subscribe("gen-operator.unlisted-read", listen);
    try {
      await using page = await start({
        dependents: [tierOf("labels"), { ...tierOf("annotations", "note"), deletion: "ordered" }],
        reconciler,
        inputs,
      });
      await createPage(page, "one", { labels: { [TIER]: "gold", other: "x" } });
      await untilText(page, "gold", "one-tier");
      await setText(page, "second");
      await page.quiet();
      const primary = `${page.namespace}/one`;
      const sorted = [...told].sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
      assert.equal(sorted, [
        { controller: "page", input: "metadata.annotations", primary },
        { controller: "page", input: "metadata.labels['other']", primary },
      ]);
      assert.equal((await page.operator.client.get(Page, one(page)))?.metadata.annotations?.["seen"], "x");
      assert.equal(failuresOf(page.events), []);
      const labels = { [TIER]: "gold", other: "x" };
      assert.equal(clones, [{ text: "first" }, labels, { text: "second" }, labels]);
    } finally {
      unsubscribe("gen-operator.unlisted-read", listen);
    }
  });
});
