// Controllers that reconcile on all events, the deletion of primaries included, after JOSDK's integration tests.
import { waitFor } from "#apiserver/wait-for.js";
import type { ApiClient } from "#runtime/client/api-client.js";
import { informerSource } from "#runtime/sources/informer-source.js";
import { byAnnotation } from "#runtime/sources/mappers.js";
import type { RetryOptions } from "#runtime/queue/processor.js";
import { assert, suite } from "../../../support/suite.js";
import { ConfigMap, Sample, sampleController } from "../sample-kind.js";
import { spacesOf } from "../space.js";

const openSpace = spacesOf();
const OURS = "josdk.example.com/ours";
const THEIRS = "josdk.example.com/theirs";

/** What a reconcile sees: whether the primary is there, is going, or is gone. */
type Sight = "there" | "going" | "gone";

/** The finalizers are the user's business in this mode. */
async function setFinalizers(client: ApiClient, { metadata }: Sample, finalizers: string[]): Promise<void> {
  await client.mergePatch(Sample, metadata, { metadata: { finalizers } });
}

function allEventsController(
  onSight: (sight: Sight, primary: Sample, client: ApiClient) => unknown,
  retry: RetryOptions = { initialIntervalMs: 20, maxRetries: 2 },
) {
  const seen: Sight[] = [];
  const controller = sampleController(
    {
      reconcile: async ({ primary, context }) => {
        const isGoing = primary.metadata.deletionTimestamp !== undefined;
        const sight = context.isPrimaryDeleted ? "gone" : isGoing ? "going" : "there";
        seen.push(sight);
        await onSight(sight, primary, context.client);
      },
    },
    {
      onAllEvents: true,
      retry,
      eventSources: () => [
        informerSource({ name: "configs", resource: ConfigMap, mapper: byAnnotation(Sample, { name: "sample" }) }),
      ],
    },
  );
  return { controller, seen };
}

const one = (metadata: object = {}) => ({ metadata: { name: "one", ...metadata }, spec: { value: "last" } });
const config = { metadata: { name: "config", annotations: { sample: "one" } } };

suite("onAllEvents", (test) => {
  test("reconciles a primary without finalizers after its deletion, with its last known state", async () => {
    await using space = await openSpace();
    const values: unknown[] = [];
    const { controller, seen } = allEventsController((_, { spec }) => values.push(spec.value));
    await using running = await space.start([controller]);
    await space.create(Sample, one());
    await waitFor("it is seen", () => seen.length === 1);
    await space.delete(Sample, "one");
    await waitFor("it is seen as gone", () => seen.length === 2);
    await running.quiet();
    assert.equal(
      [seen, values],
      [
        ["there", "gone"],
        ["last", "last"],
      ],
    );
    assert.equal(running.operator.controller("sample").counts(), { states: 0, timers: 0, queued: 0, running: 0 });
  });

  test("lets the reconciler manage its own finalizer, and reconciles the primary once after its deletion", async () => {
    await using space = await openSpace();
    const { controller, seen } = allEventsController((sight, primary, client) => {
      if (sight === "there" && primary.metadata.finalizers === undefined) return setFinalizers(client, primary, [OURS]);
      return sight === "going" ? setFinalizers(client, primary, []) : undefined;
    });
    await using running = await space.start([controller]);
    await space.create(Sample, one());
    await space.until(Sample, "one", ({ metadata }) => metadata.finalizers);
    await running.quiet();
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    await waitFor("it is seen as gone", () => seen.at(-1) === "gone");
    await running.quiet();
    assert.equal([...new Set(seen)], ["there", "going", "gone"]);
    assert.is(seen.filter((sight) => sight === "gone").length, 1);
  });

  test("reports a primary as terminating until a foreign finalizer is removed", async () => {
    await using space = await openSpace();
    const { controller, seen } = allEventsController(() => {});
    await using running = await space.start([controller]);
    await space.create(Sample, one({ finalizers: [THEIRS] }));
    await waitFor("it is seen", () => seen.length === 1);
    await space.delete(Sample, "one");
    await waitFor("it is going", () => seen.at(-1) === "going");
    await running.quiet();
    assert.not(seen.includes("gone"));
    await space.patch(Sample, "one", { metadata: { finalizers: [] } });
    await waitFor("it is gone", () => seen.at(-1) === "gone");
  });

  test("retries a failed reconcile of a deleted primary, and earlier on a secondary event", async () => {
    await using space = await openSpace();
    let failures = 2;
    const slow = { initialIntervalMs: 60_000, maxIntervalMs: 60_000, maxRetries: 5 };
    for (const retry of [{ initialIntervalMs: 20, maxRetries: 5 }, slow]) {
      failures = 2;
      const { controller, seen } = allEventsController((sight) => {
        if (sight === "gone" && failures-- > 0) throw new Error("not yet");
      }, retry);
      const running = await space.start([controller]);
      await space.create(Sample, one());
      await waitFor("it is seen", () => seen.length === 1);
      await space.delete(Sample, "one");
      for (let failed = 1; failed <= 2; failed++) {
        await waitFor("the deletion failed", () => seen.length > failed);
        // The retry itself is too far away to wait for it.
        if (retry === slow)
          await space.create(ConfigMap, { metadata: { ...config.metadata, name: `event-${failed}` } });
      }
      await waitFor("it succeeds", () => seen.length === 4);
      await running.quiet();
      assert.equal(seen, ["there", "gone", "gone", "gone"]);
      await running.operator.stop();
    }
  });

  test("reconciles a deleted primary for an event after its retries are exhausted", async () => {
    await using space = await openSpace();
    let isBroken = true;
    const { controller, seen } = allEventsController(
      (sight) => {
        if (sight === "gone" && isBroken) throw new Error("never");
      },
      { initialIntervalMs: 10, maxRetries: 1 },
    );
    await using running = await space.start([controller]);
    await space.create(Sample, one());
    await waitFor("it is seen", () => seen.length === 1);
    await space.delete(Sample, "one");
    await waitFor("the attempts are used up", () => seen.length === 3);
    await running.quiet();
    assert.equal(seen, ["there", "gone", "gone"]);
    isBroken = false;
    await space.create(ConfigMap, config);
    await waitFor("it is reconciled again", () => seen.length === 4);
    await running.quiet();
    assert.is(seen.at(-1), "gone");
    assert.is(running.operator.controller("sample").counts().states, 0);
  });

  test("supports a finalizer on some primaries only, and reconciles the deletion of each", async () => {
    await using space = await openSpace();
    const seen: string[] = [];
    const { controller } = allEventsController((sight, primary, client) => {
      const { name, finalizers } = primary.metadata;
      seen.push(`${name} ${sight}`);
      if (sight === "there" && name === "held" && finalizers === undefined)
        return setFinalizers(client, primary, [OURS]);
      return sight === "going" ? setFinalizers(client, primary, []) : undefined;
    });
    await using _ = await space.start([controller]);
    for (const name of ["held", "free"]) await space.create(Sample, { metadata: { name }, spec: {} });
    await space.until(Sample, "held", ({ metadata }) => metadata.finalizers);
    await waitFor("the other is seen", () => seen.includes("free there"));
    assert.is((await space.get(Sample, "free"))?.metadata.finalizers, undefined);
    for (const name of ["held", "free"]) await space.delete(Sample, name);
    await waitFor("both are gone", () => seen.includes("held gone") && seen.includes("free gone"));
    assert.ok(seen.includes("held going"));
    assert.not(seen.includes("free going"));
  });
});
