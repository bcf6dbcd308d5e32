import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import { LoopReporter } from "#runtime/apply/competing-writers.js";
import type { LoopEvent, PostponedWrite } from "#runtime/base/activity.js";
import { assert, suite } from "../../../support/suite.js";
import { VirtualClock } from "../../../support/runtime/virtual-clock.js";

const primary: KubernetesObject = { apiVersion: "v1", kind: "Page", metadata: { name: "a", namespace: "x", uid: "1" } };
const cause = { primary, dependent: "text" };
const at = { kind: "ConfigMap.v1", object: "x/a-text", loop: "undone", paths: ["data.text"] } as const;
const loop = { ...at, writes: 3, isNew: true, pauseMs: 2_000 };

function postponedFor(retryAfterMs: number, object: string = at.object): PostponedWrite {
  return { ...at, object, writes: 3, managers: [], retryAfterMs };
}

/** A reporter whose Events are kept. */
function createReporter() {
  const clock = new VirtualClock();
  const lines: string[] = [];
  const loops: LoopEvent[] = [];
  const reconciled: string[] = [];
  const events: string[] = [];
  const log = (level: string) => (_: object, message: string) => void lines.push(`${level} ${message}`);
  const reporter = new LoopReporter({
    controller: "page",
    events: {
      record: ({ about }, { type, reason, action }) =>
        void events.push(`${type} ${reason} ${action} ${about.metadata.name}`),
    },
    logger: { debug: log("debug"), info: log("info"), warn: log("warn"), error: log("error") },
    observer: (event) => void loops.push(event),
    reconcile: (key, { source, object }) => void reconciled.push(`${key} because of ${source} ${object}`),
    clock,
  });
  return { reporter, clock, lines, loops, reconciled, events };
}

suite("LoopReporter", (test) => {
  test("logs a write loop once, records an Event, and notifies the observer of every write", () => {
    const { reporter, lines, loops, events } = createReporter();
    reporter.onLoop(loop, cause);
    reporter.onLoop({ ...loop, writes: 4, isNew: false, pauseMs: 4_000 }, cause);
    assert.is(lines.length, 1);
    assert.match(lines[0]!, /^warn ConfigMap\.v1 x\/a-text was written 3 times .* reverts data\.text each time/);
    assert.equal(
      loops.map(({ writes, paths, pauseMs }) => [writes, paths, pauseMs]),
      [
        [3, ["data.text"], 2_000],
        [4, ["data.text"], 4_000],
      ],
    );
    assert.equal(events, ["Warning WriteLoop WriteConfigMap a"]);
  });

  test("names the paths that differ on every reconcile, if they are known", () => {
    const { reporter, lines } = createReporter();
    for (const paths of [["data.text"], []]) reporter.onLoop({ ...loop, loop: "unsettled", paths }, cause);
    const what = "warn ConfigMap.v1 x/a-text was written 3 times although the inputs did not change: ";
    assert.equal(lines, [
      `${what}desired data.text differs on every reconcile; backing off`,
      `${what}the desired object differs on every reconcile; backing off`,
    ]);
  });

  test("records an Event again for the same loop, and a separate one for another kind", () => {
    const { reporter, events } = createReporter();
    for (let time = 0; time < 2; time++) reporter.onLoop(loop, cause);
    reporter.onLoop({ ...loop, kind: "Deployment.v1.apps" }, cause);
    assert.equal(events, [
      "Warning WriteLoop WriteConfigMap a",
      "Warning WriteLoop WriteConfigMap a",
      "Warning WriteLoop WriteDeployment a",
    ]);
  });

  test("enqueues the primary when the pause of each object is over", () => {
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

  test("enqueues nothing after close()", () => {
    const { reporter, clock, reconciled } = createReporter();
    reporter.onPostponed(postponedFor(2_000), cause);
    reporter.close();
    reporter.onPostponed(postponedFor(2_000), cause);
    clock.advance(10_000);
    assert.equal(reconciled, []);
  });
});
