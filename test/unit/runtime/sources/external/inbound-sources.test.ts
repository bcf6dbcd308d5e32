// What is told from outside: JOSDK's SimpleInboundEventSource, CachingInboundEventSource (CachingInboundEventSourceTest) and TimerEventSource.
import type { ObjectKey } from "#runtime/base/kubernetes-object.js";
import { cachingInboundSource } from "#runtime/sources/caching-inbound-source.js";
import { inboundSource } from "#runtime/sources/trigger-sources.js";
import { timerSource } from "#runtime/sources/trigger-sources.js";
import { assert, suite } from "../../../../support/suite.js";
import { changeOf, createSourceContext, primaryOf } from "../source-context.js";

const idOf = (text: string) => text.charAt(0);
const { signal } = new AbortController();

suite("inboundSource", (test) => {
  test("enqueues the notified primaries while it is started", async () => {
    const source = inboundSource({ name: "webhook" });
    const { context, notified } = createSourceContext();
    source.notify("home/one");
    await source.start(context);
    source.notify("home/two", "home/three");
    assert.equal([notified(), source.health], [["home/two", "home/three"], { status: "healthy" }]);
    await source.stop();
    source.notify("home/four");
    assert.equal([notified(), source.health], [[], { status: "unknown" }]);
    assert.equal(source.secondariesOf(primaryOf("home/two")), []);
  });
});

suite("cachingInboundSource", (test) => {
  test("stores pushed resources and enqueues the primary if they changed", async () => {
    const source = cachingInboundSource<string>({ name: "webhook", type: "Note", idOf });
    const { context, notified } = createSourceContext();
    await source.start(context);
    source.put("home/one", "a1");
    source.put("home/one", "b1");
    source.put("home/one", "b1");
    assert.equal(notified(), ["home/one", "home/one"]);
    assert.equal(source.secondariesOf(primaryOf("home/one")), ["a1", "b1"]);
    source.replace("home/one", ["b1"]);
    source.delete("home/one", "a");
    assert.equal(notified(), ["home/one"]);
    source.delete("home/one", "b");
    assert.equal([notified(), source.secondariesOf(primaryOf("home/one"))], [["home/one"], []]);
    await source.stop();
  });

  test("ignores resources pushed while it is stopped, and drops its state on stop", async () => {
    const source = cachingInboundSource<string>({ name: "webhook", idOf });
    const { context, notified } = createSourceContext();
    source.put("home/one", "a1");
    await source.start(context);
    assert.equal(source.secondariesOf(primaryOf("home/one")), []);
    source.put("home/one", "a1");
    await source.stop();
    source.replace("home/one", ["a2"]);
    assert.equal([notified(), source.secondariesOf(primaryOf("home/one"))], [["home/one"], []]);
  });

  test("fetches a primary once before its first reconcile, unless all its resources were pushed", async () => {
    const fetched: ObjectKey[] = [];
    const fetch = async ({ metadata }: { metadata: { name: string } }) => {
      fetched.push(metadata.name);
      return ["a1"];
    };
    const source = cachingInboundSource<string>({ name: "webhook", idOf, fetch });
    const { context, notified } = createSourceContext();
    await source.start(context);
    await Promise.all([source.load?.(primaryOf("home/one"), signal), source.load?.(primaryOf("home/one"), signal)]);
    await source.load?.(primaryOf("home/one"), signal);
    assert.equal([fetched, source.secondariesOf(primaryOf("home/one")), notified()], [["one"], ["a1"], []]);
    source.replace("home/two", []);
    source.put("home/three", "b1");
    for (const key of ["home/two", "home/three", "home/three"] as const) await source.load?.(primaryOf(key), signal);
    assert.equal(fetched, ["one", "three"], "all that the second has was told, and one resource of the third");
    assert.equal(source.secondariesOf(primaryOf("home/three")), ["a1", "b1"]);
    await source.stop();
  });

  test("prefers a resource pushed during a fetch to the response", async () => {
    let answer = (_: readonly string[]) => {};
    const fetch = () => new Promise<readonly string[]>((resolve) => (answer = resolve));
    const source = cachingInboundSource<string>({ name: "webhook", idOf, fetch });
    const { context } = createSourceContext();
    await source.start(context);
    const loaded = source.load?.(primaryOf("home/one"), signal);
    source.put("home/one", "a2");
    source.delete("home/one", "c");
    answer(["a1", "b1", "c1"]);
    await loaded;
    assert.equal(source.secondariesOf(primaryOf("home/one")), ["a2", "b1"]);
    await source.stop();
  });

  test("ignores a fetch superseded by replace(), and fetches again after invalidate()", async () => {
    const answers: ((found: readonly string[]) => void)[] = [];
    const fetch = () => new Promise<readonly string[]>((resolve) => answers.push(resolve));
    const source = cachingInboundSource<string>({ name: "webhook", idOf, fetch });
    await source.start(createSourceContext().context);
    const told = source.load?.(primaryOf("home/one"), signal);
    source.replace("home/one", ["b2"]);
    answers[0]?.(["a1", "b1"]);
    await told;
    assert.equal(source.secondariesOf(primaryOf("home/one")), ["b2"]);
    const doubted = source.load?.(primaryOf("home/two"), signal);
    source.invalidate("home/two");
    source.delete("home/two", "c");
    answers[1]?.(["a1", "c1"]);
    await doubted;
    const again = source.load?.(primaryOf("home/two"), signal);
    assert.is(answers.length, 3);
    answers[2]?.(["a1", "b1"]);
    await again;
    assert.equal(source.secondariesOf(primaryOf("home/two")), ["a1", "b1"]);
    await source.stop();
  });

  test("fails the reconcile and is unhealthy if a fetch fails, and fetches again", async () => {
    let fails = true;
    const fetch = () => (fails ? Promise.reject(new Error("no route")) : ["a1"]);
    const source = cachingInboundSource<string>({ name: "webhook", idOf, fetch });
    const { context, lines } = createSourceContext();
    await source.start(context);
    const error = await source.load?.(primaryOf("home/one"), signal).catch((reason: Error) => reason.message);
    assert.is(error, "no route");
    assert.equal(source.health, { status: "unhealthy", reason: 'the fetch for "home/one" failed: no route' });
    fails = false;
    await source.load?.(primaryOf("home/one"), signal);
    assert.equal([source.health, lines.length], [{ status: "healthy" }, 2]);
    await source.stop();
  });

  test("aborts a fetch after 60 s and fetches again in the next reconcile", async () => {
    let hangs = true;
    const fetch = () => (hangs ? new Promise<never>(() => {}) : ["a1"]);
    const source = cachingInboundSource<string>({ name: "webhook", idOf, fetch });
    const { context, advance } = createSourceContext();
    await source.start(context);
    const failure = source.load?.(primaryOf("home/one"), signal).catch((reason: Error) => reason.message);
    await advance(60_000);
    assert.is(await failure, "no answer within 60000 ms");
    assert.is(source.health.status, "unhealthy");
    hangs = false;
    await source.load?.(primaryOf("home/one"), signal);
    assert.equal([source.health.status, source.secondariesOf(primaryOf("home/one"))], ["healthy", ["a1"]]);
    await source.stop();
  });

  test("continues a shared fetch if one of the waiting reconciles is aborted", async () => {
    let answer = (_: readonly string[]) => {};
    const fetch = () => new Promise<readonly string[]>((resolve) => (answer = resolve));
    const source = cachingInboundSource<string>({ name: "webhook", idOf, fetch });
    await source.start(createSourceContext().context);
    const abort = new AbortController();
    const first = source.load?.(primaryOf("home/one"), abort.signal).catch(String);
    const second = source.load?.(primaryOf("home/one"), signal);
    abort.abort(new Error("given up"));
    assert.is(await first, "Error: given up");
    answer(["a1"]);
    await second;
    assert.equal(source.secondariesOf(primaryOf("home/one")), ["a1"]);
    await source.stop();
  });

  test("drops the resources of a deleted primary", async () => {
    const source = cachingInboundSource<string>({ name: "webhook", idOf });
    const { context } = createSourceContext();
    await source.start(context);
    source.put("home/one", "a1");
    source.onPrimaryChange?.(changeOf("deleted", primaryOf("home/one")));
    assert.equal(source.secondariesOf(primaryOf("home/one")), []);
    await source.stop();
  });
});

suite("timerSource", (test) => {
  test("fires once per primary at the latest scheduled time", async () => {
    const source = timerSource({ name: "alarm" });
    const { context, advance, notified } = createSourceContext();
    await source.start(context);
    source.schedule("home/one", 100);
    source.schedule("home/two", 50);
    source.schedule("home/one", 200);
    await advance(100);
    assert.equal(notified(), ["home/two"]);
    await advance(100);
    assert.equal(notified(), ["home/one"]);
    await advance(1_000);
    assert.equal(notified(), [], "it rings once");
    await source.stop();
  });

  test("fires immediately for a delay of 0", async () => {
    const source = timerSource({ name: "alarm" });
    const { context, notified } = createSourceContext();
    await source.start(context);
    source.schedule("home/one", 0);
    assert.equal(notified(), ["home/one"]);
    await source.stop();
  });

  test("rejects an invalid delay and keeps the previous time", async () => {
    const source = timerSource({ name: "alarm" });
    const { context, advance, notified } = createSourceContext();
    await source.start(context);
    source.schedule("home/one", 100);
    for (const delayMs of [Number.NaN, -1, "5", undefined])
      assert.throws(
        () => source.schedule("home/one", delayMs as never),
        /^timer source "alarm" has .* for delayMs; it needs 0 or more$/,
      );
    assert.equal(notified(), []);
    await advance(100);
    assert.equal(notified(), ["home/one"]);
    await source.stop();
  });

  test("does not fire after cancel() or the deletion of the primary", async () => {
    const source = timerSource({ name: "alarm" });
    const { context, clock } = createSourceContext();
    await source.start(context);
    source.schedule("home/one", 100);
    source.cancel("home/one");
    source.schedule("home/two", 100);
    source.onPrimaryChange?.(changeOf("deleted", primaryOf("home/two")));
    assert.is(clock.nextDueAt, undefined);
    await source.stop();
  });

  test("keeps the timer of a deleted primary with onAllEvents", async () => {
    const source = timerSource({ name: "alarm" });
    const { context, advance, notified } = createSourceContext();
    await source.start({ ...context, onAllEvents: true });
    source.schedule("home/one", 100);
    source.onPrimaryChange?.(changeOf("deleted", primaryOf("home/one")));
    await advance(100);
    assert.equal(notified(), ["home/one"]);
    await source.stop();
  });

  test("rejects schedule() while it is stopped, drops its timers, and can be restarted", async () => {
    const source = timerSource({ name: "alarm" });
    const { context, clock, advance, notified } = createSourceContext();
    assert.throws(() => source.schedule("home/one", 1), /timer source "alarm" is not started/);
    await source.start(context);
    source.schedule("home/one", 100);
    await source.stop();
    assert.equal([clock.nextDueAt, source.health.status], [undefined, "unknown"]);
    assert.throws(() => source.schedule("home/one", 1), /not started/);
    await source.start(context);
    source.schedule("home/one", 100);
    await advance(100);
    assert.equal(notified(), ["home/one"]);
    await source.stop();
  });
});
