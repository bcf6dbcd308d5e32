// What goes before its primary does: of a former version of an operator, which tied its objects otherwise.
import { assert, suite } from "../../../support/suite.js";
import { bulkOf, COLLECTING, configOf, untilCollected, valuesIn, writesOf } from "../dependents/sample-dependents.js";
import { ConfigMap, Sample, Secret } from "../sample-kind.js";
import { HOLD, openSpace, removedSecrets, runFirst, sample, secretOf, startSecond } from "./two-versions.js";

suite("cleanup of removed dependents", (test) => {
  test(
    "deletes objects linked by annotations before the finalizer is removed, and leaves owned ones to the collector",
    async () => {
      await using space = await openSpace();
      await runFirst(space, [secretOf("ordered", { deletion: "ordered" }), configOf("owned"), configOf("stays")]);
      await space.patch(Secret, "one-ordered", { metadata: { finalizers: [HOLD] } });
      // Both are left when the primary is deleted, because the operator was away.
      await space.delete(Sample, "one");
      await using running = await startSecond(space, [configOf("stays")], removedSecrets("ordered"));
      await space.until(Secret, "one-ordered", ({ metadata }) => metadata.deletionTimestamp !== undefined);
      await running.quiet();
      assert.ok(await space.get(Sample, "one"), "the finalizer stays until it is gone");
      await space.patch(Secret, "one-ordered", { metadata: { finalizers: null } });
      await space.untilGone(Sample, "one");
      await untilCollected(space, ConfigMap, "one-owned");
      assert.is(await space.get(Secret, "one-ordered"), undefined);
      assert.equal(
        writesOf(running).filter((write) => write.startsWith("DELETE")),
        ["DELETE secrets/one-ordered 200"],
      );
    },
    COLLECTING,
  );
});

suite("switch from ordered to garbageCollected", (test) => {
  const keep = secretOf("keep", { deletion: "ordered" });
  const ordered = { deletion: "ordered", dependsOn: ["keep"] } as const;
  const other = { desired: () => ({ metadata: { name: "other" }, data: {} }) };
  const needsKeep = { dependsOn: ["keep"] };
  const first = { metadata: sample().metadata, spec: { value: "first", number: 1 } };
  const single = configOf("x", ordered);
  const versions = {
    "with the same object": [
      [keep, single],
      [keep, configOf("x", needsKeep)],
    ],
    "with another object": [
      [keep, single],
      [keep, configOf("x", { ...needsKeep, ...other })],
    ],
    "as a bulk dependent": [
      [keep, bulkOf("x", ordered)],
      [keep, bulkOf("x", needsKeep)],
    ],
    "as a bulk dependent, which was single": [
      [keep, single],
      [keep, bulkOf("x", needsKeep)],
    ],
    "as a single one, which was bulk": [
      [keep, bulkOf("x", ordered)],
      [keep, configOf("x", needsKeep)],
    ],
    "without pruning": [[keep, single], [keep, configOf("x", needsKeep)], { pruning: false }],
    "with a selector that does not match the object": [
      [configOf("x", { deletion: "ordered" })],
      [configOf("y"), configOf("x", { labelSelector: "tier=x" })],
    ],
    "in a workflow that needs no finalizer": [[configOf("x", { deletion: "ordered" })], [configOf("x")]],
  } as const;

  for (const [how, [before, now, workflow = {}]] of Object.entries(versions))
    test(`deletes linked objects before the finalizer is removed ${how}`, async () => {
      await using space = await openSpace();
      await runFirst(space, before, first);
      assert.is((await space.list(ConfigMap)).length, 1);
      await space.delete(Sample, "one");
      await using running = await startSecond(space, now, workflow);
      await space.untilGone(Sample, "one");
      await running.quiet();
      assert.equal(await valuesIn(space), {});
      const deletions = writesOf(running).filter((write) => write.startsWith("DELETE"));
      // What it needs goes after its own objects; a leftover of another form goes at the end.
      const isOwn = before.at(-1)?.bulk === now.at(-1)?.bulk;
      assert.ok(!isOwn || deletions[0]?.startsWith("DELETE configmaps/one-x"), String(deletions));
      assert.is(deletions.length, before.length);
    });

  test("keeps objects with operations.delete: false, and leaves owned ones to the collector", async () => {
    await using space = await openSpace();
    await runFirst(space, [configOf("never", { deletion: "ordered" }), configOf("owned"), bulkOf("items")], first);
    await space.delete(Sample, "one");
    await using running = await startSecond(space, [
      configOf("never", { operations: { delete: false } }),
      configOf("owned", other),
      bulkOf("items"),
    ]);
    await space.untilGone(Sample, "one");
    await running.quiet();
    assert.equal(
      writesOf(running).filter((write) => write.startsWith("DELETE")),
      [],
    );
    assert.ok(await space.get(ConfigMap, "one-never"));
  });
});
