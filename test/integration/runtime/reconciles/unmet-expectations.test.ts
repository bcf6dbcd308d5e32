// What a reconcile expects of its primary, against an API server, after JOSDK's ExpectationIT and PeriodicCleanerExpectationIT.
import { waitFor } from "#apiserver/wait-for.js";
import type { Context, ExpectationResult } from "#runtime/workflow/context.js";
import { assert, suite } from "../../../support/suite.js";
import { configOf, dependentController } from "../dependents/sample-dependents.js";
import { ConfigMap, Sample } from "../sample-kind.js";
import { spacesOf } from "../space.js";

const openSpace = spacesOf();
const sample = (value = "first") => ({ metadata: { name: "one" }, spec: { value } });

interface Args {
  readonly primary: Sample;
  readonly context: Context<Sample>;
}

suite("expectations", (test) => {
  test("report a timeout first and the fulfillment later", async () => {
    await using space = await openSpace();
    const results: (ExpectationResult | undefined)[] = [];
    const reconcile = async ({ context: { expectations } }: Args) => {
      if (results.length === 0)
        await expectations.expectUnlessFulfilled({
          name: "labelled",
          timeoutMs: 50,
          isFulfilled: ({ context }) => context.secondary(ConfigMap)?.metadata.labels?.["done"] === "yes",
        });
      results.push(await expectations.check());
    };
    await using _ = await space.start([dependentController([configOf("a")], { reconciler: { reconcile } })]);
    await space.create(Sample, sample());
    await waitFor("its time is over", () => results.at(-1)?.status === "timedOut");
    await space.patch(ConfigMap, "one-a", { metadata: { labels: { done: "yes" } } });
    await waitFor("it is fulfilled", () => results.at(-1)?.status === "fulfilled");
    const [first, second] = results;
    assert.equal([first?.status, second?.status, second?.name], ["notYetFulfilled", "timedOut", "labelled"]);
  });

  test("are not set if they are already fulfilled, and are dropped with the primary", async () => {
    await using space = await openSpace();
    const seen: unknown[] = [];
    const reconcile = async ({ primary, context: { expectations } }: Args) => {
      seen.push(expectations.current);
      const isOpen = await expectations.expectUnlessFulfilled({
        name: "second",
        timeoutMs: 60_000,
        isFulfilled: () => primary.spec.value !== "first",
      });
      seen.push(isOpen);
    };
    await using _ = await space.start([dependentController([], { reconciler: { reconcile } })]);
    await space.create(Sample, sample());
    await waitFor("it is reconciled", () => seen.length === 2);
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    await space.create(Sample, sample("second"));
    await waitFor("the new one is reconciled", () => seen.length === 4);
    assert.equal(seen, [undefined, true, undefined, false]);
  });
});
