// JOSDK's PollingEventSourceTest; the titles in brackets are its own.
import type { ObjectKey } from "#runtime/base/kubernetes-object.js";
import type { ExternalSource } from "#runtime/sources/external-source.js";
import { pollingSource, type PollingSourceOptions } from "#runtime/sources/polling-sources.js";
import { assert, suite } from "../../../../support/suite.js";
import { createSourceContext, primaryOf } from "../source-context.js";

type Answer = ReadonlyMap<ObjectKey, readonly string[]>;

const INTERVAL_MS = 5_000;

function createSource(
  answer: () => Answer | Promise<Answer>,
  mode?: { readonly isAwaited: boolean },
  rest: Partial<PollingSourceOptions<string>> = {},
) {
  const calls: AbortSignal[] = [];
  const options: PollingSourceOptions<string> = {
    name: "prices",
    type: "Price",
    intervalMs: INTERVAL_MS,
    idOf: (text) => text.charAt(0),
    fetch: ({ signal }) => {
      calls.push(signal);
      return answer();
    },
    ...rest,
  };
  const source = pollingSource(options, mode);
  return { source, calls };
}

/** Says why nothing can be loaded of home/two; empty if it can. */
async function failureOf({ load }: ExternalSource<string>): Promise<string> {
  try {
    await load?.(primaryOf("home/two"), new AbortController().signal);
    return "";
  } catch (error) {
    return (error as Error).message;
  }
}

function answersInTurn(...answers: readonly (Answer | Error)[]): () => Answer {
  let turn = 0;
  return () => {
    const answer = answers[Math.min(turn++, answers.length - 1)]!;
    if (answer instanceof Error) throw answer;
    return answer;
  };
}

const one: Answer = new Map([["home/one", ["a1"]]]);
const both: Answer = new Map([
  ["home/one", ["a1"]],
  ["home/two", ["a1", "b1"]],
]);

suite("pollingSource", (test) => {
  test("polls once at the start and enqueues all primaries, then polls at its interval (pollsAndProcessesEvents)", async () => {
    const { source, calls } = createSource(answersInTurn(one, both));
    const { context, notifications, notified, advance } = createSourceContext();
    await source.start(context);
    assert.equal(notifications.splice(0), [{ primaries: ["home/one"], cause: { isInitial: true } }]);
    await advance(INTERVAL_MS - 1);
    assert.is(calls.length, 1);
    await advance(1);
    assert.is(calls.length, 2);
    assert.equal(notified(), ["home/two"]);
    assert.equal(source.secondariesOf(primaryOf("home/two")), ["a1", "b1"]);
    await source.stop();
  });

  test("is unhealthy and keeps its state if fetch returns no valid Map", async () => {
    const wrong = [
      [["home/one", []]],
      { "home/one": [] },
      new Set(["home/one"]),
      undefined,
      new Map<unknown, unknown>([...both, [5, ["a1"]]]),
    ];
    const { source } = createSource(answersInTurn(one, ...(wrong as unknown as Answer[]), both));
    const { context, notified, advance } = createSourceContext();
    await source.start(context);
    notified();
    for (const problem of [
      "it returned object",
      "it returned object",
      "it returned object",
      "it returned undefined",
      "named by number",
    ]) {
      await advance(INTERVAL_MS);
      assert.match(source.health.reason ?? "", problem);
      assert.equal([notified(), source.secondariesOf(primaryOf("home/one"))], [[], ["a1"]]);
    }
    await advance(INTERVAL_MS);
    assert.equal([notified(), source.health.status], [["home/two"], "healthy"]);
    await source.stop();
  });

  test("enqueues only changed primaries (propagatesEventForRemovedResources, doesNotPropagateEventIfResourceNotChanged)", async () => {
    const { source } = createSource(answersInTurn(both, both, one, both, one));
    const { context, notified, advance } = createSourceContext();
    await source.start(context);
    notified();
    await advance(INTERVAL_MS);
    assert.equal(notified(), []);
    // The list lacked it once.
    await advance(INTERVAL_MS);
    await advance(1_000);
    assert.equal(notified(), []);
    assert.equal(source.secondariesOf(primaryOf("home/two")), ["a1", "b1"]);
    await advance(INTERVAL_MS);
    assert.equal(notified(), []);
    // The further poll comes sooner than the interval says.
    await advance(1_000);
    assert.equal(notified(), ["home/two"]);
    assert.equal(source.secondariesOf(primaryOf("home/two")), []);
    await source.stop();
  });

  test("enqueues the primary of a changed resource (propagatesEventOnNewResourceForPrimary)", async () => {
    const { source } = createSource(answersInTurn(one, new Map([["home/one", ["a2"]]])));
    const { context, notified, advance } = createSourceContext();
    await source.start(context);
    notified();
    await advance(INTERVAL_MS);
    assert.equal(notified(), ["home/one"]);
    await source.stop();
  });

  test("can be stopped and restarted (restartsPollingEventSource)", async () => {
    const { source, calls } = createSource(answersInTurn(one));
    const { context, notified, advance, clock } = createSourceContext();
    assert.is(source.health.status, "unknown");
    await source.start(context);
    assert.is(source.health.status, "healthy");
    await source.stop();
    assert.is(source.health.status, "unknown");
    assert.is(clock.nextDueAt, undefined, "nothing waits");
    await advance(INTERVAL_MS);
    assert.is(calls.length, 1);
    notified();
    await source.start(context);
    assert.equal([calls.length, notified()], [2, ["home/one"]]);
    await source.stop();
  });

  test("is unhealthy after a failed poll and keeps its state (updatesHealthIndicatorBasedOnExceptionsInFetcher)", async () => {
    const { source } = createSource(answersInTurn(one, new Error("no route"), new Error("no route"), one));
    const { context, notified, advance, lines } = createSourceContext();
    await source.start(context);
    await advance(INTERVAL_MS);
    assert.equal(source.health, { status: "unhealthy", reason: "fetch failed: no route" });
    assert.equal(source.secondariesOf(primaryOf("home/one")), ["a1"]);
    await advance(INTERVAL_MS);
    await advance(INTERVAL_MS);
    assert.equal(source.health, { status: "healthy" });
    assert.equal(lines, [
      'warn: event source "prices": fetch failed: no route',
      'info: event source "prices" works again',
    ]);
    assert.equal(notified(), ["home/one"], "only that of the start");
    await source.stop();
  });

  test("waits for the first successful poll at the start, retrying after 2 s", async () => {
    const { source, calls } = createSource(answersInTurn(new Error("no route"), one));
    const { context, advance, settle } = createSourceContext();
    let isStarted = false;
    const started = source.start(context).then(() => (isStarted = true));
    await settle();
    assert.equal([isStarted, source.health.status], [false, "unhealthy"]);
    await advance(2_000);
    assert.equal([isStarted, calls.length, source.health.status], [true, 2, "healthy"]);
    await started;
    await source.stop();
  });

  test("ends a pending start on stop()", async () => {
    const { source } = createSource(answersInTurn(new Error("no route")));
    const { context, clock, settle } = createSourceContext();
    const started = source.start(context);
    await settle();
    await source.stop();
    await started;
    assert.is(clock.nextDueAt, undefined);
  });

  test("never overlaps polls, and ignores the result of a poll aborted by stop()", async () => {
    const answers: ((answer: Answer) => void)[] = [];
    const { source, calls } = createSource(() => new Promise((resolve) => answers.push(resolve)));
    const { context, advance, notified, settle } = createSourceContext();
    const started = source.start(context);
    await advance(10 * INTERVAL_MS);
    assert.is(calls.length, 1, "the first is still under way");
    answers[0]!(one);
    await started;
    notified();
    await advance(INTERVAL_MS);
    assert.is(calls.length, 2);
    await source.stop();
    assert.is(calls[1]!.aborted, true);
    answers[1]!(both);
    await settle();
    assert.equal([notified(), source.secondariesOf(primaryOf("home/two"))], [[], []]);
  });

  test("aborts a fetch after 60 s, is unhealthy, and polls again", async () => {
    let hangs = false;
    const { source, calls } = createSource(() => (hangs ? new Promise(() => {}) : both));
    const { context, advance, notified, lines, clock } = createSourceContext();
    await source.start(context);
    notified();
    hangs = true;
    await advance(INTERVAL_MS);
    await advance(59_999);
    assert.equal([calls.length, calls[1]!.aborted, source.health.status], [2, false, "healthy"]);
    await advance(1);
    assert.equal(source.health, { status: "unhealthy", reason: "fetch failed: no answer within 60000 ms" });
    assert.is(calls[1]!.aborted, true);
    hangs = false;
    await advance(INTERVAL_MS);
    assert.equal([calls.length, source.health.status, lines.length], [3, "healthy", 2]);
    await source.stop();
    assert.is(clock.nextDueAt, undefined, "no deadline is left");
  });

  test("fails a waiting reconcile after fetchTimeoutMs, and rejects invalid times", async () => {
    let hangs = false;
    const { source } = createSource(() => (hangs ? new Promise(() => {}) : both), undefined, { fetchTimeoutMs: 100 });
    const { context, advance, settle } = createSourceContext();
    await source.start(context);
    hangs = true;
    source.invalidate("home/two");
    const failure = failureOf(source);
    await settle();
    await advance(100);
    assert.match(await failure, "no answer within 100 ms");
    assert.throws(
      () => createSource(() => both, undefined, { fetchTimeoutMs: 0 }),
      /event source "prices" has 0 for fetchTimeoutMs; it needs 1 or more/,
    );
    assert.throws(
      () => createSource(() => both, undefined, { intervalMs: undefined as never }),
      /event source "prices" has undefined for intervalMs; it needs 1 or more/,
    );
    await source.stop();
  });

  test("fails a waiting reconcile on stop() and fetches nothing afterwards", async () => {
    let hangs = false;
    const { source, calls } = createSource(() => (hangs ? new Promise(() => {}) : both));
    const { context, clock, advance, settle } = createSourceContext();
    await source.start(context);
    hangs = true;
    await advance(INTERVAL_MS);
    source.invalidate("home/two");
    const failure = failureOf(source);
    await settle();
    await source.stop();
    assert.is(await failure, 'event source "prices" was stopped');
    await settle();
    assert.equal([calls.length, clock.nextDueAt, source.secondariesOf(primaryOf("home/two"))], [2, undefined, []]);
  });

  test("rejects load() if its reconcile is aborted", async () => {
    let hangs = false;
    const { source } = createSource(() => (hangs ? new Promise(() => {}) : both));
    await source.start(createSourceContext().context);
    hangs = true;
    source.invalidate("home/two");
    const abort = new AbortController();
    const loaded = Promise.resolve(source.load?.(primaryOf("home/two"), abort.signal)).catch(String);
    abort.abort(new Error("given up"));
    assert.is(await loaded, "Error: given up");
    await source.stop();
  });

  test("returns own writes immediately and emits no event when a poll confirms them", async () => {
    const { source } = createSource(answersInTurn(one, both));
    const { context, advance, notified } = createSourceContext();
    await source.start(context);
    notified();
    source.recordCreated("home/two", "a1");
    source.recordCreated("home/two", "b0");
    source.recordUpdated("home/two", "b1", "b0");
    assert.equal(source.secondariesOf(primaryOf("home/two")), ["a1", "b1"]);
    await advance(INTERVAL_MS);
    assert.equal(notified(), []);
    await source.stop();
  });

  test("fetches again after invalidate() before it is read, until a fetch succeeds", async () => {
    const { source, calls } = createSource(answersInTurn(one, new Error("no route"), both));
    const { context } = createSourceContext();
    const { signal } = new AbortController();
    const load = async () => source.load?.(primaryOf("home/two"), signal);
    await source.start(context);
    await load();
    assert.is(calls.length, 1, "nothing is wrong");
    source.invalidate("home/two");
    const failure = await load().catch((error: unknown) => error);
    assert.match((failure as Error).message, "no route");
    await Promise.all([load(), load()]);
    assert.equal(source.secondariesOf(primaryOf("home/two")), ["a1", "b1"]);
    await load();
    assert.is(calls.length, 3);
    await source.stop();
  });

  test("enqueues primaries whose fetch failed once when a fetch succeeds, even without a change", async () => {
    const down = new Error("no route");
    const { source, calls } = createSource(answersInTurn(both, down, down, down, both));
    const { context, advance, notified } = createSourceContext();
    const { signal } = new AbortController();
    await source.start(context);
    notified();
    for (const key of ["home/one", "home/two"] as const) {
      source.invalidate(key);
      const failure = await Promise.resolve(source.load?.(primaryOf(key), signal)).catch(String);
      assert.match(failure as string, "no route");
    }
    await advance(INTERVAL_MS);
    assert.equal([calls.length, notified()], [4, []], "it fails still");
    await source.load?.(primaryOf("home/two"), signal);
    assert.equal(notified(), ["home/one"], "the other one has seen for itself");
    await advance(INTERVAL_MS);
    assert.equal(notified(), []);
    await source.stop();
  });

  test("starts for a dependent although the first poll fails, and fails load() until a poll succeeds", async () => {
    const { source } = createSource(answersInTurn(new Error("no route"), one), { isAwaited: false });
    const { context, advance, notified } = createSourceContext();
    await source.start(context);
    assert.match(await failureOf(source), "no route");
    assert.is(source.health.status, "unhealthy");
    await advance(INTERVAL_MS);
    assert.equal(notified(), ["home/one", "home/two"]);
    assert.is(await failureOf(source), "");
    await source.stop();
  });

  test("keeps own writes during a poll", async () => {
    const answers: ((answer: Answer) => void)[] = [];
    const { source, calls } = createSource(() => new Promise((resolve) => answers.push(resolve)));
    const { context, advance, notified, settle } = createSourceContext();
    const started = source.start(context);
    answers[0]!(one);
    await started;
    await advance(INTERVAL_MS);
    notified();
    source.recordCreated("home/two", "a1");
    source.recordDeleted("home/one", "a1");
    // One that is asked for now has to see what failed now.
    source.invalidate("home/two");
    const loaded = source.load?.(primaryOf("home/two"), new AbortController().signal);
    answers[1]!(one);
    await settle();
    assert.equal(
      ["home/one", "home/two"].map((key) => source.secondariesOf(primaryOf(key as ObjectKey))),
      [[], ["a1"]],
    );
    assert.equal(notified(), []);
    assert.is(calls.length, 3);
    answers[2]!(both);
    await loaded;
    assert.equal(source.secondariesOf(primaryOf("home/two")), ["a1", "b1"]);
    await source.stop();
  });
});
