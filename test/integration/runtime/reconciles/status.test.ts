// Writes of the status, and reading them back, after JOSDK's integration tests.
import { waitFor } from "#apiserver/wait-for.js";
import { updateStatus } from "#runtime/reconcile/reconciler.js";
import { assert, suite } from "../../../support/suite.js";
import { Sample, sampleController } from "../sample-kind.js";
import { spacesOf } from "../space.js";

const openSpace = spacesOf();

suite("status", (test) => {
  test("is visible to the next reconcile, for 50 primaries at once", async () => {
    await using space = await openSpace();
    const stale: string[] = [];
    const written = new Map<string, number>();
    const controller = sampleController({
      reconcile: ({ primary }) => {
        const { name } = primary.metadata;
        const last = written.get(name) ?? 0;
        if ((primary.status?.count ?? 0) !== last) stale.push(`${name}: ${primary.status?.count} instead of ${last}`);
        written.set(name, last + 1);
        return updateStatus({ count: last + 1 }, last < 4 ? { rescheduleAfterMs: 0 } : {});
      },
    });
    await using running = await space.start([controller]);
    const names = Array.from({ length: 50 }, (_, index) => `one-${index}`);
    await Promise.all(names.map((name) => space.create(Sample, { metadata: { name }, spec: {} })));
    await waitFor("all are written five times", () => names.every((name) => written.get(name) === 5));
    await running.quiet();
    assert.equal(stale, []);
    for (const { status } of await space.list(Sample)) assert.is(status?.count, 5);
  });

  test("counter increases by one per reconcile despite concurrent spec changes", async () => {
    await using space = await openSpace();
    const seen: number[] = [];
    const controller = sampleController({
      reconcile: ({ primary }) => {
        const count = primary.status?.count ?? 0;
        seen.push(count);
        return updateStatus({ count: count + 1 }, count < 10 ? { rescheduleAfterMs: 1 } : {});
      },
    });
    await using running = await space.start([controller]);
    await space.create(Sample, { metadata: { name: "one" }, spec: {} });
    for (let change = 0; change < 4; change++) await space.patch(Sample, "one", { spec: { number: change } });
    await space.until(Sample, "one", ({ status }) => (status?.count ?? 0) > 10);
    await running.quiet();
    assert.equal(
      seen,
      seen.map((_, index) => index),
    );
  });

  test("is written without a conflict although the primary changed during the reconcile", async () => {
    await using space = await openSpace();
    let calls = 0;
    let go = () => {};
    const controller = sampleController({
      reconcile: async () => {
        if (++calls === 1) await new Promise<void>((resolve) => (go = resolve));
        return updateStatus({ value: "written" });
      },
    });
    await using running = await space.start([controller]);
    await space.create(Sample, { metadata: { name: "one" }, spec: {} });
    await waitFor("reconcile runs", () => calls === 1);
    await space.patch(Sample, "one", { metadata: { annotations: { changed: "meanwhile" } } });
    go();
    await space.until(Sample, "one", ({ status }) => status?.value === "written");
    await running.quiet();
    assert.is(calls, 1);
    assert.is(running.events[0]?.error, undefined);
  });

  test("that is unchanged does not lose a concurrent spec change", async () => {
    await using space = await openSpace();
    const seen: (string | undefined)[] = [];
    let go: (() => void) | undefined;
    let holds = false;
    const controller = sampleController({
      reconcile: async ({ primary }) => {
        seen.push(primary.spec.value);
        if (holds) await new Promise<void>((resolve) => (go = resolve));
        return updateStatus({ message: "always the same" });
      },
    });
    await using running = await space.start([controller]);
    await space.create(Sample, { metadata: { name: "one" }, spec: { value: "0" } });
    await space.until(Sample, "one", ({ status }) => status?.message);
    await running.quiet();
    for (const round of [1, 3, 5]) {
      holds = true;
      await space.patch(Sample, "one", { spec: { value: String(round) } });
      await waitFor("reconcile runs", () => go !== undefined);
      const change = space.patch(Sample, "one", { spec: { value: String(round + 1) } });
      holds = false;
      go!();
      go = undefined;
      await change;
      await waitFor("the change is seen", () => seen.at(-1) === String(round + 1));
    }
    await running.quiet();
    assert.equal(seen, ["0", "1", "2", "3", "4", "5", "6"]);
  });

  test("written during a deletion does not prevent the cleanup", async () => {
    await using space = await openSpace();
    const going = new Map<string, () => void>();
    const cleaned: string[] = [];
    const controller = sampleController({
      reconcile: async ({ primary: { metadata } }) => {
        await new Promise<void>((resolve) => going.set(metadata.name, resolve));
        return updateStatus({ value: "written" });
      },
      cleanup: ({ primary: { metadata } }) => void cleaned.push(metadata.name),
    });
    await using running = await space.start([controller]);
    const names = Array.from({ length: 10 }, (_, index) => `one-${index}`);
    for (const name of names) await space.create(Sample, { metadata: { name }, spec: {} });
    await waitFor("all are reconciled", () => going.size === names.length);
    // The deletion comes before, while, or after the status is written.
    const deletions = names.map((name, index) => {
      if (index % 2 === 0) going.get(name)!();
      const deletion = space.delete(Sample, name);
      going.get(name)!();
      return deletion;
    });
    await Promise.all(deletions);
    for (const name of names) await space.untilGone(Sample, name);
    await running.quiet();
    assert.equal(cleaned.sort(), names);
  });

  test("written by the controller is filtered with generationAware: false, unlike a label of another client", async () => {
    await using space = await openSpace();
    const controller = sampleController(
      { reconcile: ({ primary }) => updateStatus({ value: primary.metadata.labels?.["theirs"] ?? "none" }) },
      { generationAware: false },
    );
    await using running = await space.start([controller]);
    await space.create(Sample, { metadata: { name: "one" }, spec: {} });
    await space.until(Sample, "one", ({ status }) => status?.value === "none");
    await running.quiet();
    assert.is(running.events.length, 1);
    await space.patch(Sample, "one", { metadata: { labels: { theirs: "label" } } });
    await space.until(Sample, "one", ({ status }) => status?.value === "label");
    await running.quiet();
    assert.is(running.events.length, 2);
  });
});
