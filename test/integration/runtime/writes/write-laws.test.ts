// Whatever a controller and others write at the same time: what others do is told, and what the controller knows ends as it is.
import fc from "../../../support/fast-check.js";
import type { DisturbedWatches } from "#apiserver/faults/fault-injection.js";
import { keyOf } from "#runtime/base/kubernetes-object.js";
import { isApiError } from "#runtime/base/errors.js";
import type { OperationOptions } from "#runtime/apply/resource-operations.js";
import { runs } from "../../../support/runs.js";
import { assert, shared, suite } from "../../../support/suite.js";
import { Page, startPageServer } from "../page-operator.js";
import { startWrittenKinds, type WrittenKinds } from "./written-kinds.js";

const OWN = [
  "apply",
  "update",
  "jsonPatch",
  "mergePatch",
  "applyStatus",
  "updateStatus",
  "jsonPatchStatus",
  "mergePatchStatus",
  "addFinalizer",
  "removeFinalizer",
] as const;

/** What happens next; what is not awaited overlaps with what follows. */
interface Step {
  readonly by: (typeof OWN)[number] | "others" | "othersStatus" | "deletion" | "watches";
  readonly text: string;
  readonly mode: NonNullable<OperationOptions["mode"]>;
  readonly isAwaited: boolean;
}

const steps = fc.array(
  fc.record({
    by: fc.oneof(
      { weight: 5, arbitrary: fc.constantFrom(...OWN) },
      { weight: 4, arbitrary: fc.constantFrom("others" as const, "othersStatus" as const) },
      { weight: 2, arbitrary: fc.constantFrom("deletion" as const, "watches" as const) },
    ),
    // Few texts, so that many writes change nothing.
    text: fc.constantFrom("a", "b", "c"),
    mode: fc.constantFrom("matchAndFilter", "forceFilter", "filterWithOptimisticLocking", "cacheOnly"),
    isAwaited: fc.boolean(),
  }) as fc.Arbitrary<Step>,
  { maxLength: 12 },
);

const server = shared(() => startPageServer());
const kinds = shared(async () => startWrittenKinds(await server()));
let names = 0;

/** Makes one own write of what the controller knows of the object. */
async function write({ operations, pages }: WrittenKinds, key: string, { by, text, mode }: Step): Promise<void> {
  const live = pages.view.get(key)?.object as Page | undefined;
  if (live === undefined) return;
  const primary = operations.of(Page);
  const { name, namespace, resourceVersion } = live.metadata;
  const isLocking = mode === "filterWithOptimisticLocking";
  const metadata = { name, namespace, ...(isLocking ? { resourceVersion } : {}) };
  const options = { mode };
  if (by === "apply") await primary.apply({ metadata, spec: { text } }, options);
  if (by === "update") await primary.update({ ...live, spec: { ...live.spec, text } }, options);
  if (by === "jsonPatch") await primary.jsonPatch(live, ({ spec }) => void (spec.text = text), options);
  if (by === "mergePatch") await primary.mergePatch({ metadata, spec: { text } }, options);
  if (by === "applyStatus") await primary.applyStatus({ metadata, status: { text } }, options);
  if (by === "updateStatus") await primary.updateStatus({ ...live, status: { ...live.status, text } }, options);
  if (by === "jsonPatchStatus")
    await primary.jsonPatchStatus(live, (draft) => void (draft.status = { ...draft.status, text }), options);
  if (by === "mergePatchStatus") await primary.mergePatchStatus({ metadata, status: { text } }, options);
  if (by === "addFinalizer") await operations.addFinalizer(live);
  if (by === "removeFinalizer") await operations.removeFinalizer(live);
}

// Somebody was faster, or the object is gone: that is how it has to be.
function ignoreConflict(error: unknown): void {
  if (!isApiError(error, 409) && !isApiError(error, 404) && !isApiError(error, 422)) throw error;
}

suite("concurrent writes", (test) => {
  test(
    "deliver the last foreign change and deletion, and leave the cache equal to the API server, for random sequences",
    async () => {
      const all = await kinds();
      const { foreign, pages } = all;
      await fc.assert(
        fc.asyncProperty(steps, async (sequence) => {
          const metadata = { name: `page-${++names}`, namespace: "default" };
          const key = keyOf(metadata);
          const { uid } = (await foreign.create(Page, { metadata, spec: { text: "a" } })).metadata;
          await all.forget();
          const { faults } = await server();
          let held: DisturbedWatches | undefined;
          let marks = 0;
          const under: Promise<unknown>[] = [];
          const others: { readonly [by: string]: () => Promise<unknown> } = {
            others: () =>
              foreign.mergePatch(Page, metadata, { metadata: { annotations: { theirs: String(++marks) } } }),
            othersStatus: () => {
              const status = { observedGeneration: ++marks };
              return foreign.mergePatch(Page, { ...metadata, subresource: "status" }, { status });
            },
            // The answers come long before the events, until it is the turn of this again.
            watches: async () => {
              if (held === undefined) return void (held = faults.holdWatches());
              held.release();
              held = undefined;
            },
            deletion: async () => {
              await foreign.delete(Page, metadata);
              // Fails if a write of the controller made the object anew before: then that write is all there is to know.
              await foreign.create(Page, { metadata, spec: { text: "a" } });
            },
          };
          for (const step of sequence) {
            const running = (others[step.by]?.() ?? write(all, key, step)).catch(ignoreConflict);
            if (step.isAwaited) await running;
            else under.push(running);
          }
          await Promise.all(under);
          (held as DisturbedWatches | undefined)?.release();
          await all.settle();
          const there = await foreign.get(Page, metadata);
          assert.equal(pages.view.get(key)?.object, there);
          const told = pages.changes.filter((change) => change.key === key);
          const seen = (value: string | number | undefined) => value === undefined || mentions(told, value);
          assert.ok(seen(there?.metadata.annotations?.["theirs"]), "the last change of others");
          assert.ok(seen(there?.status?.observedGeneration), "the last change of the status by others");
          const isNoticed = ({ kind, object }: (typeof told)[number]) =>
            kind === "deleted" || object.metadata.uid === there?.metadata.uid;
          if (there?.metadata.uid !== uid) assert.ok(told.some(isNoticed), "the deletion by others");
        }),
        { numRuns: runs(80) },
      );
    },
    { timeoutMs: 120_000 },
  );

  function mentions(told: WrittenKinds["pages"]["changes"], value: string | number): boolean {
    return told.some(({ object }) => {
      const { metadata, status } = object as Page;
      return metadata.annotations?.["theirs"] === value || status?.observedGeneration === value;
    });
  }

  test("of the controller alone deliver no event, for random sequences", async () => {
    const all = await kinds();
    const { foreign, pages } = all;
    const own = steps.map((sequence) =>
      sequence.filter(({ by, mode }) => (OWN as readonly string[]).includes(by) && mode !== "cacheOnly"),
    );
    await fc.assert(
      fc.asyncProperty(own, async (sequence) => {
        const metadata = { name: `page-${++names}`, namespace: "default" };
        const key = keyOf(metadata);
        await foreign.create(Page, { metadata, spec: { text: "a" } });
        await all.forget();
        for (const step of sequence) await write(all, key, step);
        await all.settle();
        assert.equal(
          pages.changes.filter((change) => change.key === key),
          [],
        );
      }),
      { numRuns: runs(60) },
    );
  });
});
