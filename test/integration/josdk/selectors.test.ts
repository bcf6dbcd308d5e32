// Which primaries a controller sees, after JOSDK's integration tests.
import { waitFor } from "#runtime/base/wait-for.js";
import { updateStatus } from "#runtime/reconcile/reconciler.js";
import { assert, suite } from "../../support/suite.js";
import { Sample, sampleController } from "./sample-kind.js";
import { spacesOf } from "./space.js";

const openSpace = spacesOf();

suite("filters and selectors", (test) => {
  test("only primaries with the labels are reconciled, also when they get or lose them", async () => {
    await using space = await openSpace();
    const seen: string[] = [];
    const controller = sampleController(
      { reconcile: ({ primary }) => void seen.push(primary.metadata.name) },
      { labelSelector: "app=ours" },
    );
    await using running = await space.start([controller]);
    await space.create(Sample, { metadata: { name: "without" }, spec: {} });
    await space.create(Sample, { metadata: { name: "with", labels: { app: "ours" } }, spec: {} });
    await waitFor("the labelled one is reconciled", () => seen.includes("with"));
    await running.quiet();
    assert.equal(seen, ["with"]);
    await space.patch(Sample, "without", { metadata: { labels: { app: "ours" } } });
    await waitFor("the other one is reconciled when it is labelled", () => seen.includes("without"));
    await space.patch(Sample, "with", { metadata: { labels: { app: null } } });
    await space.patch(Sample, "with", { spec: { value: "changed" } });
    await running.quiet();
    assert.equal(seen, ["with", "without"]);
  });

  test("two controllers share a kind by their label selectors", async () => {
    await using space = await openSpace();
    const controllers = ["a", "b"].map((name) =>
      sampleController(
        { reconcile: ({ primary }) => updateStatus({ value: `${primary.metadata.name} by ${name}` }) },
        { name, labelSelector: `by=${name}` },
      ),
    );
    await using running = await space.start(controllers);
    await space.create(Sample, { metadata: { name: "one", labels: { by: "a" } }, spec: {} });
    await space.create(Sample, { metadata: { name: "two", labels: { by: "b" } }, spec: {} });
    await space.until(Sample, "one", ({ status }) => status?.value === "one by a");
    await space.until(Sample, "two", ({ status }) => status?.value === "two by b");
    await running.quiet();
    assert.equal(running.events.map(({ controller, primary }) => `${controller} ${primary}`).sort(), [
      `a ${space.namespace}/one`,
      `b ${space.namespace}/two`,
    ]);
  });
});
