// When a list-watch asks again, in virtual time; what it does with a server is tested beside a server.
import { Backoff } from "#runtime/base/backoff.js";
import type { ApiRequester } from "#runtime/client/requester.js";
import type { StreamConsumer, Transport, TransportRequest, TransportResponse } from "#runtime/client/transport.js";
import { runListWatch, type ListWatchConsumer, type ListWatchOptions } from "#runtime/watch/list-watch.js";
import { builtinDefinition } from "../../../support/kind-definitions.js";
import { assert, suite } from "../../../support/suite.js";
import { VirtualClock } from "../../../support/virtual-clock.js";

const FIRST_MS = 400;
const BACKOFF = { initialMs: FIRST_MS, factor: 2, maxMs: 15_000 };

/** What a scripted server does with a stream; it may take its time. */
type Answer = (consumer: StreamConsumer, clock: VirtualClock) => TransportResponse | Promise<TransportResponse>;

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
  return async (consumer, clock) => {
    consumer.onStart?.(200);
    // As a transport does: what is busy reads the rest in another turn.
    for (const each of lines) await consumer.onData(each);
    clock.advance(lastsMs);
    return end;
  };
}

const refused =
  (status: number, body?: object): Answer =>
  () =>
    response(status, body);
const expired = refused(410, { reason: "Expired", code: 410 });

/** Lets a list-watch meet these answers, one for each request, and returns what it asked for and when. */
async function meet(
  answers: readonly Answer[],
  more: Partial<ListWatchConsumer> = {},
  selectors: Pick<ListWatchOptions, "labelSelector" | "fieldSelector" | "shardSelector"> = {},
) {
  const clock = new VirtualClock();
  const abort = new AbortController();
  const requests: { at: number; isList: boolean; version: string | null }[] = [];
  const failures: number[] = [];
  const lists: string[] = [];
  const queries: URLSearchParams[] = [];
  const left = [...answers];
  const transport = {
    connection: { server: "https://example" },
    async stream({ path }: TransportRequest, consumer: StreamConsumer) {
      const query = new URL(path, "https://example").searchParams;
      queries.push(query);
      requests.push({ at: clock.now(), isList: query.has("sendInitialEvents"), version: query.get("resourceVersion") });
      const answer = left.shift();
      if (answer !== undefined) return answer(consumer, clock);
      abort.abort(new Error("the script is over"));
      throw abort.signal.reason;
    },
  } as unknown as Transport;
  const consumer: ListWatchConsumer = {
    beginReplace: () => {},
    observeKnown: () => false,
    observeListed: () => {},
    forgetListed: () => {},
    endReplace: (version) => void lists.push(version),
    observe: () => {},
    onConnected: () => {},
    expectsOwn: () => false,
    observeOwn: () => false,
    observeDeletion: () => {},
    observeVersion: () => {},
    onFailure: (_error, retryAfterMs) => void failures.push(retryAfterMs),
    ...more,
  };
  const ended = runListWatch(
    {
      definition: builtinDefinition("v1", "ConfigMap"),
      ...selectors,
      fieldManagers: [],
      transport,
      requester: {} as ApiRequester,
      backoff: new Backoff(BACKOFF, () => 0),
      clock,
    },
    consumer,
    abort.signal,
  );
  let isOver = false;
  void ended.then(() => (isOver = true));
  while (!isOver) {
    // Everything that follows from the last answer happens before time goes on.
    await new Promise(setImmediate);
    if (clock.nextDueAt !== undefined) clock.advance(clock.nextDueAt - clock.now());
  }
  const waits = requests.slice(1).map(({ at }, index) => at - requests[index]!.at);
  return { requests, queries, failures, lists, waits };
}

suite("list-watch in time", (test) => {
  test("every selector goes to the server, with the whole state and with each watch", async () => {
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

  test("a version that is too old leads to the whole state soon, and is no failure", async () => {
    const { requests, failures, lists, waits } = await meet([
      stream([endOfInitialEvents("5")], 20_000),
      expired,
      stream([endOfInitialEvents("9")], 20_000),
    ]);
    assert.equal(
      requests.map(({ isList, version }) => (isList ? "list" : version)),
      ["list", "5", "list", "9"],
    );
    assert.equal(lists, ["5", "9"]);
    assert.equal(waits, [20_000, FIRST_MS, 20_000]);
    assert.equal(failures, []);
  });

  test("a list that is too old again and again is asked for less and less often, and that is a failure", async () => {
    const { failures, waits, requests } = await meet([expired, expired, expired, expired]);
    assert.equal(waits, [400, 800, 1600, 3200]);
    assert.equal(failures, [400, 800, 1600, 3200]);
    assert.ok(requests.every(({ isList }) => isList));
  });

  test("a list whose version is too old for a watch at once is not read again and again", async () => {
    const tooOld = line("ERROR", { kind: "Status", code: 410, reason: "Expired" });
    const { lists, waits } = await meet(Array.from({ length: 4 }, () => stream([endOfInitialEvents("5"), tooOld])));
    assert.is(lists.length, 4);
    assert.equal(waits, [400, 800, 1600, 3200]);
  });

  test("after ten seconds of health the next failure is a new one", async () => {
    const { failures } = await meet([
      refused(500),
      refused(500),
      refused(500),
      stream([endOfInitialEvents("5")], 11_000, response(500)),
      refused(500),
    ]);
    assert.equal(failures, [400, 800, 1600, 400, 800]);
  });

  test("what works for less than that goes on with the waits before", async () => {
    const { failures } = await meet([
      refused(500),
      refused(500),
      stream([endOfInitialEvents("5")], 9000, response(500)),
    ]);
    assert.equal(failures, [400, 800, 1600]);
  });

  test("whoever is told of a failure may fail, too", async () => {
    const onFailure = () => {
      throw new Error("the disk of the log is full");
    };
    const { requests, lists } = await meet([refused(500), refused(503), stream([endOfInitialEvents("5")])], {
      onFailure,
    });
    assert.is(requests.length, 4);
    assert.equal(lists, ["5"]);
  });

  test("a server that is behind the watch was restored, and its state is read", async () => {
    const { requests, lists } = await meet([
      stream([endOfInitialEvents("50")], 20_000),
      stream([bookmark("51"), bookmark("30")]),
      stream([endOfInitialEvents("31")], 20_000),
      refused(504, { reason: "Timeout", details: { causes: [{ reason: "ResourceVersionTooLarge" }] } }),
      stream([endOfInitialEvents("12")], 20_000),
    ]);
    assert.equal(
      requests.map(({ isList, version }) => (isList ? "list" : version)),
      ["list", "50", "list", "31", "list", "12"],
    );
    assert.equal(lists, ["50", "31", "12"]);
  });
});
