import { ApiError, TerminalError } from "#runtime/base/errors.js";
import { assert, suite } from "../../../support/suite.js";
import { createBed, failureOf, KEY } from "./controller-bed.js";

suite("controller logs", (test) => {
  const conflict = new ApiError(409, { reason: "Conflict" });

  test("warn while retries are left, then log an error", async () => {
    const lastAttempt = { retry: { maxRetries: 0 } };
    const given: [unknown, boolean, object, string][] = [
      [new Error("no"), false, {}, "warn"],
      [new Error("no"), false, lastAttempt, "error"],
      [new Error("no"), true, {}, "debug"],
      [new Error("no"), true, lastAttempt, "error"],
      [conflict, false, {}, "info"],
      [new AggregateError([conflict, conflict]), false, {}, "info"],
      [new AggregateError([conflict, new Error("no")]), false, {}, "warn"],
      [conflict, false, lastAttempt, "error"],
      [new TerminalError("never"), false, {}, "error"],
    ];
    for (const [error, isHandled, definition, level] of given) {
      const { observe, settle, respond, lines } = createBed(definition);
      respond(() => failureOf(error, isHandled));
      observe();
      await settle();
      assert.equal(
        lines.map((line) => line.level),
        [level],
        String(error),
      );
    }
  });

  test("contain the stack of errors in user code, but not of API server responses", async () => {
    const throwInUserCode = () => new TypeError("cannot read properties of undefined");
    const wrapped = new Error('dependent "web": …', { cause: throwInUserCode() });
    const given: [unknown, RegExp | undefined][] = [
      [throwInUserCode(), /TypeError: cannot read.*\n +at throwInUserCode .*controller-log\.test/s],
      [wrapped, /TypeError: cannot read/],
      [new AggregateError([conflict, wrapped]), /TypeError: cannot read/],
      [conflict, undefined],
      [new Error('dependent "web": …', { cause: conflict }), undefined],
      [new TerminalError("never"), undefined],
    ];
    for (const [error, expected] of given) {
      const { observe, settle, respond, lines } = createBed();
      respond(() => failureOf(error));
      observe();
      await settle();
      const { stack } = lines[0]!.fields as { stack?: string };
      if (expected === undefined) assert.is(stack, undefined, String(error));
      else assert.match(stack ?? "", expected);
    }
  });

  test("warn about the last failure if a new event triggers another attempt", async () => {
    const { observe, settle, hold, lines } = createBed({ retry: { maxRetries: 0 } });
    const finish = hold();
    observe();
    await settle();
    observe();
    await finish(failureOf());
    assert.equal(
      lines.map(({ level }) => level),
      ["warn"],
    );
  });

  test("contain the primary and the reasons of the reconcile", async () => {
    const { observe, settle, respond, lines, advance } = createBed();
    respond(({ logger }) => {
      logger.info({ own: 1 }, "hello");
      return failureOf();
    });
    observe({ generation: 7 });
    await settle();
    await advance(2000);
    const { fields } = lines[0]!;
    const common = { controller: "page", kind: "Page", namespace: "home", name: "one", uid: "u1" };
    const scope = { ...common, resourceVersion: "1", generation: 7 };
    assert.equal(fields, { ...scope, reasons: ["primary added"], own: 1 });
    const { stack: _stack, ...failure } = lines[1]!.fields as { stack?: string };
    assert.equal(failure, { ...scope, reasons: ["primary added"], retryAfterMs: 2000, attempt: 1 });
    assert.equal((lines[2]?.fields as { reasons: string[] }).reasons, ["retry 1"]);
  });

  // JOSDK counts as a success what fails without a retry, or while its primary goes.
  test("report every failure to the observer, even if it is not retried", async () => {
    const error = new Error("no");
    const { observe, settle, respond, events, hold, observeDeletion } = createBed({ retry: { maxRetries: 0 } });
    respond(() => failureOf(error));
    observe();
    await settle();
    const finish = hold();
    observe();
    await settle();
    observeDeletion();
    await finish(failureOf(error));
    assert.equal(
      events.map((event) => event.error),
      [error, error],
    );
  });

  test("report the reasons of a reconcile to the observer", async () => {
    const { observe, observeSecondary, settle, events, controller } = createBed();
    observe();
    observeSecondary();
    controller.onSecondaryChange([KEY], { source: "web", object: "home/web", isInitial: true });
    await settle();
    assert.equal(events[0]?.reasons, [
      { kind: "primary", change: "added", isInitial: false },
      { kind: "secondary", source: "web", isInitial: false },
      { kind: "secondary", source: "web", object: "home/web", isInitial: true },
    ]);
  });
});
