// When a list-watch asks again, in virtual time; what it does with a server is tested beside a server.
import { Backoff, turns } from "#runtime/base/wait.js";
import { messageOf } from "#runtime/base/logger.js";
import { ResourceCache } from "#runtime/cache/resource-cache.js";
import {
  type ApiRequester,
  LineSplitter,
  type StreamConsumer,
  type Transport,
  type TransportRequest,
  type TransportResponse,
} from "#runtime/client/transport.js";
import { ListWatch, type WatchContext, type WatchScope } from "#runtime/watch/informer.js";
import { builtinDefinition } from "../../../support/kinds/kind-definitions.js";
import { assert, suite } from "../../../support/suite.js";
import { keptIn } from "../../../support/runtime/kept-in.js";
import { VirtualClock } from "../../../support/runtime/virtual-clock.js";

const FIRST_MS = 400;
const BACKOFF = { initialMs: FIRST_MS, factor: 2, maxMs: 15_000 };

/** What a scripted server does with a stream; it may take its time. */
type Answer = (
  consumer: StreamConsumer,
  on: { readonly clock: VirtualClock; readonly signal: AbortSignal },
) => TransportResponse | Promise<TransportResponse>;

const response = (status: number, body: object = {}): TransportResponse => ({
  path: "",
  status,
  headers: {},
  body: Buffer.from(JSON.stringify(body)),
});

const line = (type: string, object: object) => Buffer.from(`${JSON.stringify({ type, object })}\n`);
const bookmark = (resourceVersion: string) => line("BOOKMARK", { metadata: { resourceVersion } });
const endOfInitialEvents = (resourceVersion: string) =>
  line("BOOKMARK", { metadata: { resourceVersion, annotations: { "k8s.io/initial-events-end": "true" } } });

/** The stream sends these lines for so long, and ends with an answer. */
function stream(lines: readonly Buffer[], lastsMs = 0, end = response(200)): Answer {
  return async (consumer, { clock }) => {
    consumer.onStart?.(200);
    // As a transport does: what is busy reads the rest in another turn.
    for (const each of lines) await consumer.onData(each);
    clock.advance(lastsMs);
    return end;
  };
}

/** The stream sends these lines, and then nothing until it is broken. */
function silence(...lines: readonly Buffer[]): Answer {
  return async (consumer, { signal }) => {
    consumer.onStart?.(200);
    for (const each of lines) await consumer.onData(each);
    signal.throwIfAborted();
    return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error)));
  };
}

const refused =
  (status: number, body?: object): Answer =>
  () =>
    response(status, body);
const expired = refused(410, { reason: "Expired", code: 410 });

type Selectors = Pick<WatchScope, "labelSelector" | "fieldSelector" | "shardSelector">;

/** What a script has besides the answers to watches. */
interface Script extends Selectors {
  /** The versions of the server, one for each time that it is asked; a high one when there are no more. `null` is no answer. */
  readonly versions?: readonly (string | null)[];
}

/** Lets a list-watch meet these answers, one for each watch, and returns what it asked for and when. */
async function meet(
  answers: readonly Answer[],
  more: Partial<WatchContext> = {},
  { versions = [], ...selectors }: Script = {},
) {
  const clock = new VirtualClock();
  const abort = new AbortController();
  const requests: { at: number; isList: boolean; version: string | null }[] = [];
  const failures: number[] = [];
  const reasons: string[] = [];
  const lists: string[] = [];
  const restores: boolean[] = [];
  let kept = 0;
  /** When the server was asked for its version. */
  const checks: number[] = [];
  const versionsLeft = [...versions];
  const queries: URLSearchParams[] = [];
  const left = [...answers];
  const transport = {
    connection: { server: "https://example" },
    createEventSplitter: () => new LineSplitter({ maxBytes: Infinity, createError: () => new Error("too long") }),
    async send({ path, signal }: TransportRequest, consumer: StreamConsumer) {
      const query = new URL(path, "https://example").searchParams;
      queries.push(query);
      requests.push({ at: clock.now(), isList: query.has("sendInitialEvents"), version: query.get("resourceVersion") });
      const answer = left.shift();
      kept = keptIn(abort.signal);
      if (answer !== undefined) return answer(consumer, { clock, signal: signal! });
      abort.abort(new Error("the script is over"));
      throw abort.signal.reason;
    },
  } as unknown as Transport;
  const requester: ApiRequester = {
    transport,
    with: () => requester,
    async send({ path, signal }: TransportRequest) {
      assert.is(new URL(path, "https://example").searchParams.get("limit"), "1");
      checks.push(clock.now());
      const version = versionsLeft.length === 0 ? "9".repeat(9) : versionsLeft.shift()!;
      if (version !== null) return response(200, { metadata: { resourceVersion: version }, items: [] });
      return new Promise((_, reject) => signal!.addEventListener("abort", () => reject(signal!.reason as Error)));
    },
  } as unknown as ApiRequester;
  const cache = new (class extends ResourceCache {
    override beginReplace(options: { isRestored?: boolean } = {}) {
      restores.push(options.isRestored ?? false);
      super.beginReplace(options);
    }
    override endReplace(version: string) {
      lists.push(version);
      super.endReplace(version);
    }
  })();
  const onFailure = (error: unknown, retryAfterMs: number) => {
    failures.push(retryAfterMs);
    reasons.push(messageOf(error));
  };
  const scope = { definition: builtinDefinition("v1", "ConfigMap"), ...selectors };
  const backoff = new Backoff(BACKOFF, () => 0);
  const context = { fieldManagers: [], requester, cache, events: { onFailure }, backoff, clock, ...more };
  const ended = new ListWatch(scope, context).run(abort.signal);
  let isOver = false;
  void ended.then(() => (isOver = true));
  while (!isOver) {
    // Everything that follows from the last answer happens before time goes on, be it in several turns.
    for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate);
    if (clock.nextDueAt !== undefined) clock.advance(clock.nextDueAt - clock.now());
  }
  const waits = requests.slice(1).map(({ at }, index) => at - requests[index]!.at);
  return { requests, queries, failures, reasons, lists, restores, checks, waits, kept };
}

suite("list-watch", (test) => {
  test("retains no listeners of ended attempts and checks in its signal", async () => {
    const listed = stream([endOfInitialEvents("5")]);
    const { kept } = await meet([listed]);
    const many = await meet([listed, refused(500), refused(503), expired, listed, refused(500)]);
    assert.is(many.checks.length, 5, "each watch that goes on asks for the version of the server");
    assert.is(many.kept, kept);
  });

  test("sends all selectors with each list and watch", async () => {
    const selectors = {
      labelSelector: "app=web",
      fieldSelector: "type!=Opaque",
      shardSelector: "shardRange(object.metadata.uid, '0x0', '0x8')",
    };
    const { queries } = await meet([stream([endOfInitialEvents("5")])], {}, selectors);
    assert.is(queries.length, 2);
    for (const query of queries)
      for (const [name, selector] of Object.entries(selectors)) assert.is(query.get(name), selector);
  });

  test("relists after 410 Gone at the initial interval, without reporting a failure", async () => {
    const { requests, failures, lists, waits } = await meet([
      stream([endOfInitialEvents("5")], 12_000),
      expired,
      stream([endOfInitialEvents("9")], 12_000),
    ]);
    assert.equal(
      requests.map(({ isList, version }) => (isList ? "list" : version)),
      ["list", "5", "list", "9"],
    );
    assert.equal(lists, ["5", "9"]);
    assert.equal(waits, [12_000, FIRST_MS, 12_000]);
    assert.equal(failures, []);
  });

  test("backs off and reports failures if lists fail with 410 Gone repeatedly", async () => {
    const { failures, waits, requests } = await meet([expired, expired, expired, expired]);
    assert.equal(waits, [400, 800, 1600, 3200]);
    assert.equal(failures, [400, 800, 1600, 3200]);
    assert.ok(requests.every(({ isList }) => isList));
  });

  test("backs off if the version of each list is immediately too old for a watch", async () => {
    const tooOld = line("ERROR", { kind: "Status", code: 410, reason: "Expired" });
    const { lists, waits } = await meet(Array.from({ length: 4 }, () => stream([endOfInitialEvents("5"), tooOld])));
    assert.is(lists.length, 4);
    assert.equal(waits, [400, 800, 1600, 3200]);
  });

  test("resets the backoff after 10 s of success", async () => {
    const { failures } = await meet([
      refused(500),
      refused(500),
      refused(500),
      stream([endOfInitialEvents("5")], 11_000, response(500)),
      refused(500),
    ]);
    assert.equal(failures, [400, 800, 1600, 400, 800]);
  });

  test("continues the backoff after less than 10 s of success", async () => {
    const { failures } = await meet([
      refused(500),
      refused(500),
      stream([endOfInitialEvents("5")], 9000, response(500)),
    ]);
    assert.equal(failures, [400, 800, 1600]);
  });

  test("continues if onFailure throws", async () => {
    const onFailure = () => {
      throw new Error("the disk of the log is full");
    };
    const { requests, lists } = await meet([refused(500), refused(503), stream([endOfInitialEvents("5")])], {
      events: { onFailure },
    });
    assert.is(requests.length, 4);
    assert.equal(lists, ["5"]);
  });

  test("relists and logs if the API server was restored from a backup and resourceVersion decreases", async () => {
    const { requests, lists, restores, reasons } = await meet(
      [
        stream([endOfInitialEvents("50")], 12_000),
        stream([bookmark("51"), bookmark("30")]),
        stream([endOfInitialEvents("31")], 12_000),
        stream([endOfInitialEvents("12")], 12_000),
      ],
      {},
      { versions: ["50", "12"] },
    );
    assert.equal(
      requests.map(({ isList, version }) => (isList ? "list" : version)),
      ["list", "50", "list", "list", "12"],
    );
    assert.equal(lists, ["50", "31", "12"]);
    assert.equal(restores, [false, true, true]);
    assert.is(reasons.length, 2);
    assert.match(reasons[0]!, "resourceVersion went back from 51 to 30: the store of the API server was restored");
    assert.match(reasons[1]!, "resourceVersion went back from 31 to 12: the store of the API server was restored");
  });

  test("relists as a restore if a list is older than the known state", async () => {
    const { lists, restores } = await meet([
      stream([endOfInitialEvents("50")], 12_000),
      expired,
      stream([endOfInitialEvents("30")], 12_000),
      stream([endOfInitialEvents("30")], 12_000),
    ]);
    assert.equal(lists, ["50", "30"]);
    assert.equal(restores, [false, false, true]);
  });

  test("resumes a watch only after the server has answered with a version that is not older", async () => {
    const { requests, checks, reasons } = await meet(
      [stream([endOfInitialEvents("50")], 12_000), refused(500), stream([bookmark("60")], 12_000)],
      {},
      { versions: ["50", null, "50"] },
    );
    assert.equal(
      requests.map(({ isList, version }) => (isList ? "list" : version)),
      ["list", "50", "50", "60"],
    );
    assert.is(checks.length, 4);
    assert.match(reasons[1]!, "https://example does not answer");
  });

  test("checks a quiet watch every 30 s with two small requests and keeps it while nothing changed", async () => {
    // The streams between are the questions for changes since 50, of which there are none.
    const { requests, checks, failures } = await meet(
      [silence(endOfInitialEvents("50")), stream([]), stream([]), stream([])],
      {},
      { versions: ["50", "60", "7"] },
    );
    assert.equal(
      requests.map(({ version, isList, at }) => [isList ? "list" : version, at]),
      [
        ["list", 0],
        ["50", 30_000],
        ["50", 60_000],
        ["50", 90_000],
        ["list", 90_000 + FIRST_MS],
      ],
    );
    assert.equal(checks, [30_000, 60_000, 90_000]);
    assert.is(failures.length, 1, "nothing but the restored server ended the watch");
  });

  test("detects a watch that does not deliver changes within 40 s and resumes it", async () => {
    const missed = line("ADDED", { metadata: { name: "a", resourceVersion: "55" } });
    const { requests, reasons } = await meet([
      silence(endOfInitialEvents("50")),
      stream([]),
      silence(missed),
      stream([bookmark("55")], 12_000),
    ]);
    assert.equal(
      requests.map(({ version, isList }) => (isList ? "list" : version)),
      ["list", "50", "50", "50", "55"],
    );
    // It may have died just after the question before, which was at 30 s.
    assert.ok(requests[3]!.at - 30_000 <= 40_000, `it was noticed after ${requests[3]!.at} ms`);
    assert.match(reasons[0]!, /watch is stale: .+ has changes after resourceVersion 50 that it did not deliver/);
  });

  test("detects a stale watch after a server restart and relists after 410 Gone", async () => {
    const expired = line("ERROR", {
      kind: "Status",
      code: 410,
      reason: "Expired",
      message: "too old resource version",
    });
    const { requests, reasons } = await meet([
      silence(endOfInitialEvents("50")),
      silence(expired),
      stream([expired]),
      stream([endOfInitialEvents("60")], 12_000),
    ]);
    assert.equal(
      requests.slice(0, 4).map(({ version, isList }) => (isList ? "list" : version)),
      ["list", "50", "50", "list"],
    );
    assert.match(reasons[0]!, /watch is stale: .+ has changes after resourceVersion 50 that it did not deliver/);
  });

  test("counts the quiet time from the end of the list, even if it is read in a later turn", async () => {
    const late: Answer = (consumer, on) => {
      // This turn of the event loop is used up.
      while (turns.pause() === undefined);
      return silence(endOfInitialEvents("50"))(consumer, on);
    };
    const { requests } = await meet([late, stream([])], { quietMs: 1_000, initialTimeoutMs: 60_000 });
    assert.equal(
      requests.slice(0, 2).map(({ at }) => at),
      [0, 1_000],
    );
  });

  test("detects a silently broken connection within 40 s", async () => {
    const { checks, reasons, requests } = await meet([
      silence(endOfInitialEvents("50")),
      (_, { signal }) =>
        new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error))),
      stream([], 12_000),
    ]);
    assert.match(reasons[0]!, "https://example does not answer");
    assert.ok(checks[0]! <= 40_000, `it was noticed after ${checks[0]} ms`);
    assert.is(requests[2]!.version, "50");
  });

  test("waits for a slow list while data arrives", async () => {
    const object = (name: string) => line("ADDED", { metadata: { name, resourceVersion: "5" } });
    const slow: Answer = async (consumer, { clock }) => {
      consumer.onStart?.(200);
      for (const name of ["a", "b", "c", "d"]) {
        await consumer.onData(object(name));
        clock.advance(25_000);
      }
      await consumer.onData(endOfInitialEvents("5"));
      return response(200);
    };
    const { requests, lists, failures } = await meet([slow]);
    assert.equal(lists, ["5"]);
    assert.equal(
      requests.map(({ version, isList }) => (isList ? "list" : version)),
      ["list", "5"],
    );
    assert.equal(failures, []);
  });
});
