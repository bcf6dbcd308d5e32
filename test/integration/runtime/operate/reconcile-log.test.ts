// What the log says of a reconcile besides its failures: deletions and recoveries at level info, the rest at level debug.
import { waitFor } from "#apiserver/wait-for.js";
import { assert, shared, suite } from "../../../support/suite.js";
import { configMapOf, createPage, createPageOperator, Page, startPageServer } from "../page-operator.js";

const server = shared(() => startPageServer());

suite("reconcile log", (test) => {
  test("contains creations, cleanup, deletions and the finalizer at level info", async () => {
    const text = configMapOf("text", { deletion: "ordered" });
    await using page = createPageOperator(await server(), { dependents: [text] });
    await page.operator.start();
    await createPage(page, "ended");
    const has = (line: string) => page.logs.some((each) => each.startsWith(line));
    await waitFor("the creation", () => has('info created ConfigMap "default/ended-text"'));
    await page.operator.client.delete(Page, { name: "ended", namespace: "default" });
    await waitFor("the end", () => has('info Page "default/ended" was deleted or is no longer watched'));
    const lines = page.logs.filter((line) => line.startsWith("info"));
    const begin = lines.findIndex((line) => line.includes("primary is being deleted"));
    assert.equal(lines.slice(begin), [
      'info primary is being deleted: cleaning up before removing finalizer "pages.example.com/finalizer"',
      'info deleted ConfigMap "default/ended-text"',
      'info removed finalizer "pages.example.com/finalizer"',
      'info Page "default/ended" was deleted or is no longer watched',
    ]);
  });

  test("contains the recovery after 2 failures at level info", async () => {
    let failures = 2;
    const reconcile = () => {
      if (failures-- > 0) throw new Error("not yet");
    };
    await using page = createPageOperator(await server(), {
      dependents: [],
      reconciler: { reconcile },
      retry: { initialIntervalMs: 10 },
    });
    await page.operator.start();
    await createPage(page, "recovered");
    await waitFor("the line", () => page.logs.includes("info reconciled after 2 failed attempts"));
  });

  test("contains the outcome of each dependent with its reason at level debug", async () => {
    const bottom = configMapOf("bottom", { readyPostcondition: () => false });
    const unwanted = configMapOf("unwanted", { reconcilePrecondition: () => false });
    const dependents = [configMapOf("top"), bottom, configMapOf("after", { dependsOn: ["bottom"] }), unwanted];
    await using page = createPageOperator(await server(), { dependents });
    await page.operator.start();
    await createPage(page, "looked-at");
    const lines = [
      'debug dependent "top" was created',
      'debug dependent "bottom" was created, and not ready',
      'debug dependent "after" waits for bottom',
      'debug dependent "unwanted" must not exist, because its reconcilePrecondition is false: it is deleted',
    ];
    await waitFor("the lines", () => lines.every((line) => page.logs.includes(line)));
  });
});
