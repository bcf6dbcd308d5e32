import { ApiError } from "#runtime/base/errors.js";
import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import { EventRecorder } from "#runtime/operate/event-recorder.js";
import type { EventDraft } from "#runtime/base/activity.js";
import { assert, suite } from "../../../../support/suite.js";
import { VirtualClock } from "../../../../support/runtime/virtual-clock.js";

const settled = () => new Promise((resolve) => setImmediate(resolve));

interface Written {
  readonly metadata: { readonly name: string; readonly namespace: string };
  readonly note?: string;
  readonly reason?: string;
  readonly [member: string]: unknown;
}

function createRecorder(fail: (what: string) => Error | undefined = () => undefined) {
  const clock = new VirtualClock();
  const requests: string[] = [];
  const created: Written[] = [];
  const counts = new Map<string, number>();
  const lines: string[] = [];
  const answer = (what: string) => {
    requests.push(what);
    const error = fail(what);
    return error === undefined ? Promise.resolve({}) : Promise.reject(error);
  };
  const client = {
    create: (_: unknown, event: Written) => {
      created.push(event);
      counts.set(event.metadata.name, 1);
      return answer("POST");
    },
    mergePatch: (_: unknown, { name }: { name: string }, { series }: { series: { count: number } }) => {
      counts.set(name, series.count);
      return answer("PATCH");
    },
  };
  const log = (level: string) => (_: object, message: string) => void lines.push(`${level} ${message}`);
  const recorder = new EventRecorder({
    ...{ client: client as never, clock, instance: "shop-1", now: () => new Date(1e12 + clock.now()) },
    logger: { debug: log("debug"), info: log("info"), warn: log("warn"), error: log("error") },
  });
  const about = (name = "one"): KubernetesObject => ({
    apiVersion: "example.com/v1",
    kind: "Page",
    metadata: { name, namespace: "home", uid: `uid of ${name}`, resourceVersion: "7" },
  });
  const record = (draft: Partial<EventDraft> = {}, name?: string) =>
    recorder.record({ controller: "page", about: about(name) }, { reason: "Moved", note: "it moved", ...draft });
  const pass = async (ms: number) => {
    clock.advance(ms);
    await settled();
  };
  return { recorder, record, pass, requests, created, counts, lines };
}

suite("EventRecorder", (test) => {
  test("creates one Event with all required fields and no other requests", async () => {
    const { record, pass, requests, created } = createRecorder();
    record({ type: "Warning", action: "Move", related: { apiVersion: "v1", kind: "Node", metadata: { name: "n" } } });
    await pass(0);
    assert.equal(requests, ["POST"]);
    const [{ metadata, ...event }] = created as [Written];
    assert.match(metadata.name, /^one\.[0-9a-f]{16}$/);
    assert.is(metadata.namespace, "home");
    assert.equal(JSON.parse(JSON.stringify(event)), {
      eventTime: "2001-09-09T01:46:40.000000Z",
      reportingController: "page",
      reportingInstance: "shop-1",
      type: "Warning",
      reason: "Moved",
      action: "Move",
      note: "it moved",
      regarding: {
        ...{ apiVersion: "example.com/v1", kind: "Page", name: "one", namespace: "home" },
        ...{ uid: "uid of one", resourceVersion: "7" },
      },
      related: { apiVersion: "v1", kind: "Node", name: "n" },
    });
  });

  test("counts repeated records of one object, reason and action as a series: 50 need 2 requests", async () => {
    const { record, pass, requests, created, counts } = createRecorder();
    for (let index = 0; index < 50; index++) record({ note: `note ${index}` });
    await pass(0);
    await pass(1_000);
    assert.equal(requests, ["POST", "PATCH"]);
    assert.equal([...counts.values()], [50]);
    assert.is(created[0]?.note, "note 0");
    record({ reason: "Stopped" });
    record({ action: "Stop" });
    record({}, "two");
    await pass(0);
    assert.is(created.length, 4);
  });

  test("backs off after a rejected write: 5 requests in 50 s", async () => {
    const { record, pass, requests, lines } = createRecorder(() => new ApiError(403, { reason: "Forbidden" }));
    for (let second = 0; second < 50; second++) {
      record();
      await pass(1_000);
    }
    assert.equal(
      requests,
      Array.from({ length: 5 }, () => "POST"),
    );
    assert.is(lines.filter((line) => line.startsWith("warn")).length, 1);
  });

  test("sends one request per minute for a terminating namespace, without a warning", async () => {
    const causes = [{ reason: "NamespaceTerminating" }];
    const ending = new ApiError(403, { reason: "Forbidden", details: { causes } });
    let isEnding = true;
    const { record, pass, requests, lines } = createRecorder(() => (isEnding ? ending : undefined));
    for (let second = 0; second < 20; second++) {
      record();
      record({ reason: "Stopped" }, `page ${second}`);
      await pass(1_000);
    }
    assert.equal(requests, ["POST"]);
    assert.equal(
      lines.filter((line) => !line.startsWith("debug")),
      [],
    );
    isEnding = false;
    await pass(60_000);
    record({ reason: "Created" }, "of the next namespace of this name");
    await pass(0);
    assert.equal(requests, ["POST", "POST"]);
  });

  test("patches a continuing series at most twice a minute and starts a new one after 6 quiet minutes", async () => {
    const { record, pass, requests, created, counts } = createRecorder();
    for (let second = 0; second < 300; second++) {
      record();
      await pass(1_000);
    }
    assert.ok(requests.length <= 12, `${requests.length} requests`);
    await pass(30_000);
    assert.equal([...counts.values()], [300]);
    await pass(6 * 60_000);
    record();
    await pass(0);
    assert.is(created.length, 2);
    assert.not.equal(created[0]?.metadata.name, created[1]?.metadata.name);
  });

  test("limits a burst to 25 Events per object, without affecting other objects", async () => {
    const { record, pass, created } = createRecorder();
    for (let index = 0; index < 100; index++) record({ reason: `Reason${index}` });
    record({}, "two");
    await pass(0);
    assert.is(created.length, 26);
    await pass(5 * 60_000);
    record({ reason: "Later" });
    await pass(0);
    assert.is(created.length, 27);
  });

  test("warns once about missing permissions and does not throw", async () => {
    const { record, pass, lines } = createRecorder(() => new ApiError(403, { reason: "Forbidden", message: "no" }));
    for (let index = 0; index < 5; index++) record({ reason: `Reason${index}` });
    await pass(0);
    assert.equal(
      lines.filter((line) => line.startsWith("warn")),
      ["warn an Event could not be written: 403 Forbidden: no; grant create and patch on events.events.k8s.io"],
    );
    assert.is(lines.length, 5);
  });

  test("recreates an Event that the API server no longer has", async () => {
    const { record, pass, requests, created } = createRecorder((what) =>
      what === "PATCH" ? new ApiError(404, { reason: "NotFound" }) : undefined,
    );
    record();
    await pass(0);
    record();
    await pass(1_000);
    assert.equal(requests, ["POST", "PATCH", "POST"]);
    assert.is(created[0]?.metadata.name, created[1]?.metadata.name);
  });

  test("writes pending counts on close() and records nothing afterwards", async () => {
    const { recorder, record, requests, counts } = createRecorder();
    for (let index = 0; index < 7; index++) record();
    await recorder.close(1_000);
    assert.equal([...counts.values()], [7]);
    assert.equal(requests, ["POST", "PATCH"]);
    record({ reason: "Late" });
    await settled();
    assert.is(requests.length, 2);
  });

  test("closes within its timeout if the API server does not respond", async () => {
    const clock = new VirtualClock();
    let asked = 0;
    const hang = () => (asked++, new Promise<never>(() => {}));
    const hanging = new EventRecorder({
      ...{ client: { create: hang, mergePatch: hang }, clock, instance: "shop-1" },
      logger: { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} },
    });
    hanging.record(
      { controller: "page", about: { apiVersion: "v1", kind: "Page", metadata: { name: "a" } } },
      { reason: "A", note: "" },
    );
    let isClosed = false;
    const closed = hanging.close(20).then(() => (isClosed = true));
    await settled();
    clock.advance(19);
    await settled();
    assert.equal([asked, isClosed], [1, false]);
    clock.advance(1);
    await settled();
    assert.is(isClosed, true);
    await closed;
  });

  test("closes without its timeout once its Events are written", async () => {
    const { recorder, record, requests } = createRecorder();
    record();
    await recorder.close(20);
    assert.equal(requests, ["POST"]);
  });

  test("rejects invalid reason, action and type, and truncates notes to 1024 bytes", async () => {
    const { record, pass, created, lines } = createRecorder();
    record({ reason: "" });
    record({ action: "x".repeat(129) });
    record({ type: "Error" as never });
    await pass(0);
    assert.equal(lines, [
      'warn an Event was not recorded: its reason is "", and has to be a text',
      "warn an Event was not recorded: its action has 129 characters, and may have 128",
      'warn an Event was not recorded: its type is "Error", and has to be Normal or Warning',
    ]);
    record({ note: "ä😀".repeat(500) });
    await pass(0);
    const { note = "" } = created[0]!;
    assert.ok(Buffer.byteLength(note) <= 1_024 && Buffer.byteLength(note) > 1_010 && note.endsWith("…"));
    assert.not.match(note, "\uFFFD");
  });
});
