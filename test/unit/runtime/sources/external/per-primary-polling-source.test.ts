// JOSDK's PerResourcePollingEventSourceTest; the titles in brackets are its own.
import type { ObjectKey } from "#runtime/base/kubernetes-object.js";
import { keyOf } from "#runtime/base/kubernetes-object.js";
import { perPrimaryPollingSource, type PerPrimaryPollingSourceOptions } from "#runtime/sources/polling-sources.js";
import { assert, suite } from "../../../../support/suite.js";
import { changeOf, createSourceContext, primaryOf } from "../source-context.js";

const INTERVAL_MS = 1_000;

function createSource(
  fetch: (key: ObjectKey) => readonly string[] | Promise<readonly string[]>,
  options: Partial<PerPrimaryPollingSourceOptions<string>> = {},
) {
  const fetched: ObjectKey[] = [];
  const source = perPrimaryPollingSource<string>({
    name: "prices",
    intervalMs: INTERVAL_MS,
    idOf: (text) => text.charAt(0),
    fetch: ({ metadata }) => {
      fetched.push(keyOf(metadata));
      return fetch(keyOf(metadata));
    },
    ...options,
  });
  const signal = new AbortController().signal;
  return { source, fetched, load: (key: ObjectKey) => source.load?.(primaryOf(key), signal) };
}

const added = (key: ObjectKey) => changeOf("added", primaryOf(key));
const deleted = (key: ObjectKey) => changeOf("deleted", primaryOf(key));

suite("perPrimaryPollingSource", (test) => {
  test("polls a primary at the interval after it appears (pollsTheResourceAfterAwareOfIt)", async () => {
    const { source, fetched } = createSource(() => [`a${fetched.length}`]);
    const { context, addPrimary, advance, notified, notifications } = createSourceContext();
    await source.start(context);
    await advance(INTERVAL_MS);
    assert.equal(fetched, []);
    addPrimary(primaryOf("home/one"));
    source.onPrimaryChange?.(added("home/one"));
    await advance(INTERVAL_MS - 1);
    assert.equal(fetched, [], "the first poll waits: the first reconcile fetches");
    await advance(1);
    await advance(INTERVAL_MS);
    assert.equal(fetched, ["home/one", "home/one"]);
    assert.is(notifications.length, 2);
    assert.equal(notified(), ["home/one", "home/one"]);
    await source.stop();
  });

  test("polls each primary that exists at the start", async () => {
    const { source, fetched } = createSource((key) => [key]);
    const { context, advance, notified } = createSourceContext("home/one", "home/two");
    await source.start(context);
    await advance(INTERVAL_MS);
    assert.equal(fetched, ["home/one", "home/two"]);
    assert.equal(notified(), ["home/one", "home/two"]);
    await advance(INTERVAL_MS);
    assert.equal(notified(), [], "nothing changed");
    await source.stop();
  });

  test("polls a primary only while isPolled accepts it (registeringTaskOnAPredicate)", async () => {
    const isPolled = ({ metadata }: { metadata: { labels?: object | undefined } }) => metadata.labels !== undefined;
    const { source, fetched } = createSource(() => [], { isPolled });
    const { context, advance } = createSourceContext("home/one");
    const primary = primaryOf("home/one");
    const labelled = { ...primary, metadata: { ...primary.metadata, labels: {} } };
    await source.start(context);
    await advance(INTERVAL_MS);
    assert.is(fetched.length, 0);
    source.onPrimaryChange?.(changeOf("updated", labelled));
    await advance(INTERVAL_MS);
    assert.is(fetched.length, 1);
    source.onPrimaryChange?.(changeOf("updated", primaryOf("home/one")));
    await advance(INTERVAL_MS);
    assert.is(fetched.length, 1, "it refuses it again");
    await source.stop();
  });

  test("stops polling a deleted primary and drops its resources (propagateEventOnDeletedResource)", async () => {
    const { source, fetched } = createSource(() => ["a"]);
    const { context, advance, deletePrimary, clock } = createSourceContext("home/one");
    await source.start(context);
    await advance(INTERVAL_MS);
    deletePrimary("home/one");
    source.onPrimaryChange?.(deleted("home/one"));
    assert.equal(source.secondariesOf(primaryOf("home/one")), []);
    assert.is(clock.nextDueAt, undefined);
    await advance(INTERVAL_MS);
    assert.is(fetched.length, 1);
    await source.stop();
  });

  test("fetches once in the first reconcile, without an event (getSecondaryResourceInitiatesFetchJustForFirstTime)", async () => {
    const { source, fetched, load } = createSource(() => ["a"]);
    const { context, advance, notified } = createSourceContext("home/one");
    await source.start(context);
    assert.equal(source.secondariesOf(primaryOf("home/one")), []);
    await Promise.all([load("home/one"), load("home/one")]);
    await load("home/one");
    assert.equal([fetched.length, source.secondariesOf(primaryOf("home/one"))], [1, ["a"]]);
    await advance(INTERVAL_MS);
    assert.equal([fetched.length, notified()], [2, []]);
    await source.stop();
  });

  test("does not fetch in a reconcile after an empty result or a poll (getsValueFromCacheOrSupplier)", async () => {
    const answers = [[], ["a"]];
    const { source, fetched, load } = createSource(() => answers[fetched.length - 1] ?? ["a"]);
    const { context, advance, notified } = createSourceContext("home/one");
    await source.start(context);
    await load("home/one");
    await load("home/one");
    assert.is(fetched.length, 1);
    await advance(INTERVAL_MS);
    await load("home/one");
    assert.equal([fetched.length, notified(), source.secondariesOf(primaryOf("home/one"))], [2, ["home/one"], ["a"]]);
    await source.stop();
  });

  test("fails the reconcile if its fetch fails", async () => {
    const { source, load } = createSource(() => Promise.reject(new Error("no route")));
    const { context, settle } = createSourceContext("home/one");
    await source.start(context);
    const error = await Promise.resolve(load("home/one")).catch((reason: Error) => reason.message);
    assert.is(error, "no route");
    assert.equal(source.health, { status: "unhealthy", reason: 'the fetch for "home/one" failed: no route' });
    await settle();
    await source.stop();
  });

  test("enqueues a primary whose fetch failed once when a poll succeeds, even without a change", async () => {
    let fails = true;
    const { source, load } = createSource(() => (fails ? Promise.reject(new Error("no route")) : ["a"]));
    const { context, advance, notified } = createSourceContext("home/one", "home/two");
    const failed = async (key: ObjectKey) => {
      source.invalidate(key);
      assert.match((await Promise.resolve(load(key)).catch(String)) as string, "no route");
    };
    fails = false;
    await source.start(context);
    await load("home/one");
    await load("home/two");
    fails = true;
    await failed("home/one");
    await failed("home/two");
    await advance(INTERVAL_MS);
    assert.equal(notified(), [], "it fails still");
    fails = false;
    await load("home/two");
    await advance(INTERVAL_MS);
    assert.equal(notified(), ["home/one"], "the other one has seen for itself");
    await advance(INTERVAL_MS);
    assert.equal(notified(), []);
    await source.stop();
  });

  test("polls at the interval that intervalOf returns for the resources (supportsDynamicPollingDelay)", async () => {
    const seen: (readonly string[])[] = [];
    const intervalOf = (_: object, resources: readonly string[]) => {
      seen.push(resources);
      return resources.length === 0 ? undefined : 10 * INTERVAL_MS;
    };
    const { source, fetched } = createSource(() => ["a"], { intervalOf });
    const { context, advance } = createSourceContext("home/one");
    await source.start(context);
    await advance(INTERVAL_MS);
    assert.is(fetched.length, 1);
    await advance(10 * INTERVAL_MS - 1);
    assert.is(fetched.length, 1);
    await advance(1);
    assert.is(fetched.length, 2);
    assert.equal(seen, [[], ["a"], ["a"]]);
    await source.stop();
  });

  test("ignores the result of a poll if the primary was deleted (deleteEventCancelsTheScheduling)", async () => {
    let answer = (_: readonly string[]) => {};
    const { source } = createSource(() => new Promise((resolve) => (answer = resolve)));
    const { context, advance, settle, notified, clock } = createSourceContext("home/one");
    await source.start(context);
    await advance(INTERVAL_MS);
    source.onPrimaryChange?.(deleted("home/one"));
    answer(["a"]);
    await settle();
    assert.equal([notified(), source.secondariesOf(primaryOf("home/one"))], [[], []]);
    assert.is(clock.nextDueAt, undefined, "and there is no next poll");
    await source.stop();
  });

  test("is unhealthy after a failed poll until the next success of that primary, and continues polling", async () => {
    let fails = true;
    const { source } = createSource((key) => {
      if (fails && key !== "home/three") throw new Error("no route");
      return [];
    });
    const { context, advance, lines } = createSourceContext("home/one", "home/two", "home/three");
    await source.start(context);
    await advance(INTERVAL_MS);
    assert.equal(source.health, {
      status: "unhealthy",
      reason: 'the fetch for "home/one" failed: no route; the fetch for "home/two" failed: no route',
    });
    fails = false;
    await advance(INTERVAL_MS);
    assert.equal(source.health, { status: "healthy" });
    assert.equal(lines, [
      'warn: event source "prices": the fetch for "home/one" failed: no route',
      'info: event source "prices" works again',
    ]);
    await source.stop();
  });

  test("limits concurrent polls to maxConcurrentPolls", async () => {
    const answers: (() => void)[] = [];
    const fetch = () => new Promise<readonly string[]>((resolve) => answers.push(() => resolve([])));
    const { source, fetched } = createSource(fetch, { maxConcurrentPolls: 2 });
    const { context, advance, settle } = createSourceContext("home/one", "home/two", "home/three");
    await source.start(context);
    await advance(INTERVAL_MS);
    assert.equal(fetched, ["home/one", "home/two"]);
    answers[0]!();
    await settle();
    assert.equal(fetched, ["home/one", "home/two", "home/three"]);
    await source.stop();
  });

  test("aborts a fetch after fetchTimeoutMs, frees its slot, and polls again", async () => {
    let hangs = true;
    const fetch = (key: ObjectKey) => (hangs && key === "home/one" ? new Promise<never>(() => {}) : ["a"]);
    const { source, fetched } = createSource(fetch, { maxConcurrentPolls: 1, fetchTimeoutMs: 10_000 });
    const { context, advance, notified, clock } = createSourceContext("home/one", "home/two");
    await source.start(context);
    await advance(INTERVAL_MS);
    assert.equal([fetched, source.health.status], [["home/one"], "healthy"]);
    await advance(10_000);
    assert.equal(source.health, {
      status: "unhealthy",
      reason: 'the fetch for "home/one" failed: no answer within 10000 ms',
    });
    assert.equal([fetched, notified()], [["home/one", "home/two"], ["home/two"]]);
    hangs = false;
    await advance(INTERVAL_MS);
    assert.equal([source.health.status, notified()], ["healthy", ["home/one"]]);
    await source.stop();
    assert.is(clock.nextDueAt, undefined, "no deadline is left");
  });

  test("returns a pending fetch to a reconcile even if the primary is no longer polled", async () => {
    let answer = (_: readonly string[]) => {};
    const isPolled = ({ metadata }: { metadata: { labels?: object | undefined } }) => metadata.labels === undefined;
    const { source, load } = createSource(() => new Promise((resolve) => (answer = resolve)), { isPolled });
    const { context, settle, notified } = createSourceContext("home/one");
    await source.start(context);
    const loaded = load("home/one");
    await settle();
    const primary = primaryOf("home/one");
    const labelled = { ...primary, metadata: { ...primary.metadata, labels: {} } };
    source.onPrimaryChange?.(changeOf("updated", labelled));
    answer(["a"]);
    await loaded;
    assert.equal([source.secondariesOf(primaryOf("home/one")), notified()], [["a"], []]);
    await source.stop();
  });

  test("can be stopped and restarted", async () => {
    const { source, fetched } = createSource(() => ["a"]);
    const { context, advance, clock } = createSourceContext("home/one");
    await source.start(context);
    await advance(INTERVAL_MS);
    await source.stop();
    assert.equal([clock.nextDueAt, source.health.status], [undefined, "unknown"]);
    await source.start(context);
    await advance(INTERVAL_MS);
    assert.is(fetched.length, 2);
    await source.stop();
  });

  test("rejects an invalid interval, and uses the default if intervalOf returns one", async () => {
    for (const intervalMs of [0, -1, Number.NaN, undefined as never])
      assert.throws(
        () => createSource(() => [], { intervalMs }),
        `event source "prices" has ${intervalMs} for intervalMs; it needs 1 or more`,
      );
    assert.throws(
      () => createSource(() => [], { maxConcurrentPolls: 0 }),
      'event source "prices" has 0 for maxConcurrentPolls; it needs 1 or more',
    );
    assert.throws(
      () => createSource(() => [], { maxConcurrentPolls: 1.5 }),
      'event source "prices" has 1.5 for maxConcurrentPolls; it needs a whole number',
    );
    const { source, fetched } = createSource(() => [], { intervalOf: () => Number.NaN });
    const { context, advance } = createSourceContext("home/one");
    await source.start(context);
    await advance(INTERVAL_MS - 1);
    assert.equal(fetched, []);
    await advance(1);
    assert.equal(fetched, ["home/one"]);
    assert.match(source.health.reason ?? "", "intervalOf failed: it has NaN for its result; it needs 1 or more");
    await source.stop();
  });

  test("fetches again after invalidate() before it is read, ignoring earlier fetches", async () => {
    const answers: ((answer: readonly string[]) => void)[] = [];
    const { source, fetched, load } = createSource(() => new Promise((resolve) => answers.push(resolve)));
    const { context, addPrimary, advance, settle } = createSourceContext();
    await source.start(context);
    addPrimary(primaryOf("home/one"));
    source.onPrimaryChange?.(added("home/one"));
    await advance(INTERVAL_MS);
    source.recordCreated("home/one", "b1");
    source.invalidate("home/one");
    const loaded = load("home/one");
    answers[0]!(["a1"]);
    await settle();
    assert.equal(source.secondariesOf(primaryOf("home/one")), ["a1", "b1"]);
    assert.is(fetched.length, 2);
    answers[1]!(["a2"]);
    await loaded;
    assert.equal(source.secondariesOf(primaryOf("home/one")), ["a2", "b1"], "what was created may be listed later");
    await source.stop();
  });

  test("enqueues a primary that was never fetched as soon as a poll succeeds", async () => {
    let isDown = true;
    const { source, load } = createSource(() => {
      if (isDown) throw new Error("no route");
      return [];
    });
    const { context, advance, notified } = createSourceContext("home/one");
    await source.start(context);
    const failure = await Promise.resolve(load("home/one")).catch((error: Error) => error.message);
    assert.is(failure, "no route");
    await advance(INTERVAL_MS);
    assert.equal(notified(), []);
    isDown = false;
    await advance(INTERVAL_MS);
    assert.equal(notified(), ["home/one"], "although there is nothing");
    await advance(INTERVAL_MS);
    assert.equal(notified(), []);
    await source.stop();
  });
});
