import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import { ApiError } from "#runtime/base/errors.js";
import { LoopReporter, type LoopEvent, type LoopReporterOptions } from "#runtime/operate/loop-reporter.js";
import type { PostponedWrite } from "#runtime/write/send/postponed-write.js";
import { assert, suite } from "../../../support/suite.js";
import { VirtualClock } from "../../../support/virtual-clock.js";

const primary: KubernetesObject = { apiVersion: "v1", kind: "Page", metadata: { name: "a", namespace: "x", uid: "1" } };
const cause = { primary, dependent: "text" };
const at = { kind: "ConfigMap.v1", object: "x/a-text", loop: "undone", paths: ["data.text"] } as const;
const loop = { ...at, writes: 3, isNew: true, pauseMs: 2_000 };

function postponedFor(retryAfterMs: number, object: string = at.object): PostponedWrite {
  return { ...at, object, writes: 3, managers: [], retryAfterMs };
}

/** A reporter whose Events go nowhere, or fail. */
function createReporter({ failure }: { failure?: Error } = {}) {
  const clock = new VirtualClock();
  const lines: string[] = [];
  const loops: LoopEvent[] = [];
  const reconciled: string[] = [];
  const events = new Map<string, { count: number }>();
  const client = {
    get: (_kind: unknown, { name }: { name: string }) =>
      failure === undefined ? Promise.resolve(events.get(name)) : Promise.reject(failure),
    create: (_kind: unknown, event: { metadata: { name: string }; count: number }) =>
      Promise.resolve(void events.set(event.metadata.name, event)),
    mergePatch: (_kind: unknown, { name }: { name: string }, patch: { count: number }) =>
      Promise.resolve(void events.set(name, patch)),
  };
  const log = (level: string) => (_: object, message: string) => void lines.push(`${level} ${message}`);
  const reporter = new LoopReporter({
    controller: "page",
    client: client as unknown as LoopReporterOptions["client"],
    logger: { debug: log("debug"), info: log("info"), warn: log("warn"), error: log("error") },
    observer: (event) => void loops.push(event),
    reconcile: (key, { source, object }) => void reconciled.push(`${key} because of ${source} ${object}`),
    clock,
  });
  const settle = () => new Promise((resolve) => setImmediate(resolve));
  return { reporter, clock, lines, loops, reconciled, events, settle };
}

suite("loop reporter", (test) => {
  test("a loop is told once, and every write of it to the observer", async () => {
    const { reporter, lines, loops, events, settle } = createReporter();
    reporter.onLoop(loop, cause);
    reporter.onLoop({ ...loop, writes: 4, isNew: false, pauseMs: 4_000 }, cause);
    await settle();
    assert.is(lines.length, 1);
    assert.match(lines[0]!, /^warn ConfigMap\.v1 x\/a-text was written 3 times .* undoes data\.text each time/);
    assert.equal(
      loops.map(({ writes, paths, pauseMs }) => [writes, paths, pauseMs]),
      [
        [3, ["data.text"], 2_000],
        [4, ["data.text"], 4_000],
      ],
    );
    assert.equal(
      [...events.values()].map(({ count }) => count),
      [1],
    );
  });

  test("the same loop, found again, is counted in its Event", async () => {
    const { reporter, events, settle } = createReporter();
    for (let time = 0; time < 3; time++) {
      reporter.onLoop(loop, cause);
      await settle();
    }
    reporter.onLoop({ ...loop, object: "x/other" }, cause);
    await settle();
    assert.equal(
      [...events.values()].map(({ count }) => count),
      [3, 1],
    );
  });

  test("an operator that may write no Events says so at level debug, and goes on", async () => {
    const failure = new ApiError(403, { reason: "Forbidden", message: "no" });
    const { reporter, lines, settle } = createReporter({ failure });
    reporter.onLoop(loop, cause);
    await settle();
    assert.equal(
      lines.map((line) => line.split(" ")[0]),
      ["warn", "debug"],
    );
    assert.match(lines[1]!, /no Event could be written about it: 403 Forbidden/);
  });

  test("a primary is reconciled when the pause of its object is over, for each object", () => {
    const { reporter, clock, reconciled } = createReporter();
    reporter.onPostponed(postponedFor(2_000), cause);
    reporter.onPostponed(postponedFor(3_000, "x/other"), cause);
    clock.advance(1_999);
    assert.equal(reconciled, []);
    clock.advance(1);
    assert.equal(reconciled, ["x/a because of text x/a-text"]);
    clock.advance(1_000);
    assert.equal(reconciled.slice(1), ["x/a because of text x/other"]);
    assert.is(clock.nextDueAt, undefined);
  });

  test("nothing is reconciled after it is closed", () => {
    const { reporter, clock, reconciled } = createReporter();
    reporter.onPostponed(postponedFor(2_000), cause);
    reporter.close();
    reporter.onPostponed(postponedFor(2_000), cause);
    clock.advance(10_000);
    assert.equal(reconciled, []);
  });
});
