// Starting and stopping, after JOSDK's integration tests.
import { waitFor } from "#apiserver/wait-for.js";
import { defineWorkflow } from "#runtime/api/define-workflow.js";
import { updateStatus } from "#runtime/reconcile/reconciler.js";
import { assert, suite } from "../../../support/suite.js";
import { ConfigMap, Sample, sampleController } from "../sample-kind.js";
import { spacesOf } from "../space.js";

const openSpace = spacesOf();

suite("operator life cycle", (test) => {
  test("rejects two controllers with the same name", async () => {
    await using space = await openSpace();
    const controller = sampleController({ reconcile: () => {} });
    assert.throws(() => space.operator([controller, controller]), /^two controllers are named "sample"$/);
  });

  test("rejects two controllers that clean up one kind with the same finalizer", async () => {
    await using space = await openSpace();
    const cleaning = sampleController({ reconcile: () => {}, cleanup: () => {} });
    const [one, two] = [cleaning, { ...cleaning, name: "two" }];
    assert.throws(() => space.operator([one, two]), /^controllers "sample" and "two" share the finalizer /);
    assert.ok(space.operator([one, { ...two, finalizer: "example.com/two" }]));
  });

  test("stops without a start, requests or log lines", async () => {
    await using space = await openSpace();
    const { operator, requests, logs } = space.operator([sampleController({ reconcile: () => {} })]);
    assert.is(await operator.stop(), true);
    assert.equal([requests, logs], [[], []]);
  });

  test("finishes a running reconcile within the stop timeout", async () => {
    await using space = await openSpace();
    let go: (() => void) | undefined;
    const controller = sampleController({
      reconcile: async () => {
        await new Promise<void>((resolve) => (go = resolve));
        return updateStatus({ value: "finished" });
      },
    });
    const { operator } = await space.start([controller]);
    await space.create(Sample, { metadata: { name: "one" }, spec: {} });
    const finish = await waitFor("reconcile runs", () => go);
    const stopped = operator.stop();
    finish();
    assert.is(await stopped, true);
    assert.is((await space.get(Sample, "one"))?.status?.value, "finished");
  });

  test("reconciles all primaries again after a restart", async () => {
    await using space = await openSpace();
    const seen: (string | undefined)[] = [];
    const { operator } = space.operator([
      sampleController({ reconcile: ({ primary }) => void seen.push(primary.spec.value) }),
    ]);
    await operator.start();
    await space.create(Sample, { metadata: { name: "one" }, spec: { value: "first" } });
    await waitFor("it is reconciled", () => seen.length === 1);
    await operator.stop();
    await space.patch(Sample, "one", { spec: { value: "second" } });
    await operator.start();
    await waitFor("it is reconciled again", () => seen.length === 2);
    assert.equal(seen, ["first", "second"]);
  });

  test("has all existing objects in its caches before the first reconcile", async () => {
    await using space = await openSpace();
    const missing: string[] = [];
    const seen = new Set<string>();
    const workflow = defineWorkflow(Sample).dependent("config", {
      resource: ConfigMap,
      desired: ({ primary, secondary }) => {
        const { name } = primary.metadata;
        if ((secondary as { config?: unknown }).config === undefined && !seen.has(name)) missing.push(name);
        seen.add(name);
        return { metadata: { name }, data: { value: "same" } };
      },
    });
    const names = Array.from({ length: 50 }, (_, index) => `one-${index}`);
    await Promise.all(names.map((name) => space.create(Sample, { metadata: { name }, spec: {} })));
    const first = await space.start([sampleController({ reconcile: () => {} }, { workflow })]);
    await waitFor("all are made", async () => (await space.list(ConfigMap)).length >= names.length);
    await first.quiet();
    await first.operator.stop();
    missing.length = 0;
    seen.clear();
    await using second = await space.start([sampleController({ reconcile: () => {} }, { workflow })]);
    await waitFor("all are reconciled", () => seen.size === names.length);
    await second.quiet();
    assert.equal(missing, []);
    assert.equal(second.requests, []);
  });
});
