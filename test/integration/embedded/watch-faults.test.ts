import { startApiServer, type ApiServer } from "#apiserver/index.js";
import { CONFIG_MAPS, configMap } from "../../support/api/api-fixtures.js";
import { apiRequest, apiRequestOrThrow, type ApiObject, type Connection } from "../../support/api/api-request.js";
import { assert, suite } from "../../support/suite.js";
import { eventsUntil, openWatch, type WatchClient } from "../../support/api/watch-client.js";

const SECRETS = CONFIG_MAPS.replace("configmaps", "secrets");

const create = (server: ApiServer, name: string, path = CONFIG_MAPS): Promise<ApiObject> =>
  apiRequestOrThrow(server, `POST ${path}`, { body: { metadata: { name } } });

const versionOf = async (server: ApiServer): Promise<string> =>
  (await apiRequestOrThrow(server, `GET ${CONFIG_MAPS}`)).metadata.resourceVersion;

// The names in the events up to that of the last one.
async function namesUntil(watch: WatchClient, last: string): Promise<string[]> {
  const events = await eventsUntil(watch, ({ object }) => object.metadata.name === last);
  return events.map(({ object }) => object.metadata.name);
}

suite("watch fault", (test) => {
  test("duplicates every event until released", async () => {
    await using server = await startApiServer({ tls: false });
    using watch = await openWatch(server, `${CONFIG_MAPS}?watch=true`);
    const fault = server.faults.duplicateEvents({ kind: "ConfigMap" });
    await create(server, "a");
    await create(server, "b");
    fault.release();
    await create(server, "c");
    assert.equal(await namesUntil(watch, "c"), ["a", "a", "b", "b", "c"]);
  });

  test("swaps pairs of events and delivers an unpaired last event", async () => {
    await using server = await startApiServer({ tls: false });
    for (const name of ["a", "b", "c"]) await create(server, name);
    using watch = await openWatch(server, `${CONFIG_MAPS}?watch=true&resourceVersion=${await versionOf(server)}`);
    using _fault = server.faults.reorderEvents();
    // All of it within one turn, so that the events follow each other.
    await apiRequestOrThrow(server, `DELETE ${CONFIG_MAPS}`);
    assert.equal(await namesUntil(watch, "c"), ["b", "a", "c"]);
  });

  test("silences open watches for good, and new watches until released", async () => {
    await using server = await startApiServer({ tls: false });
    using dead = await openWatch(server, `${CONFIG_MAPS}?watch=true`);
    const fault = server.faults.silenceWatches({ kind: "v1/ConfigMap" });
    using alsoDead = await openWatch(server, `${CONFIG_MAPS}?watch=true`);
    await create(server, "a");
    fault.release();
    using alive = await openWatch(server, `${CONFIG_MAPS}?watch=true`);
    await create(server, "b");
    assert.equal(await namesUntil(alive, "b"), ["a", "b"]);
    server.faults.endWatches();
    // Both ended properly, and had told nothing before.
    assert.equal([await dead.next(), await alsoDead.next()], [undefined, undefined]);
  });

  test("breaks a silenced watch like any other", async () => {
    await using server = await startApiServer({ tls: false });
    using dead = await openWatch(server, `${CONFIG_MAPS}?watch=true`);
    server.faults.silenceWatches().release();
    assert.is(server.faults.cutWatches(), 1);
    await assert.rejects(dead.next(), /aborted/);
  });

  test("is limited to watches of the given user, kind, or namespace", async () => {
    await using server = await startApiServer({ tls: false });
    const other = server.as("other", { groups: ["system:masters"] });
    using theirs = await openWatch(other, `${CONFIG_MAPS}?watch=true`);
    using own = await openWatch(server, `${CONFIG_MAPS}?watch=true`);
    using secrets = await openWatch(other, `${SECRETS}?watch=true`);
    using _fault = server.faults.duplicateEvents({ user: "other", kind: "ConfigMap", namespace: "default" });
    await create(server, "a");
    await create(server, "b");
    await create(server, "s", SECRETS);
    await create(server, "t", SECRETS);
    assert.equal(await namesUntil(own, "b"), ["a", "b"]);
    assert.equal(await namesUntil(secrets, "t"), ["s", "t"]);
    assert.equal((await namesUntil(theirs, "b")).slice(0, 3), ["a", "a", "b"]);
    assert.is(server.faults.endWatches({ kind: "Secret" }), 1);
    assert.is(server.faults.endWatches({ kind: "apps/v1/Deployment" }), 0);
  });

  test("compacts the history of one kind only", async () => {
    await using server = await startApiServer({ tls: false });
    const { resourceVersion } = (await create(server, "a")).metadata;
    await create(server, "s", SECRETS);
    server.faults.compact({ kind: "ConfigMap" });
    using old = await openWatch(server, `${CONFIG_MAPS}?watch=true&resourceVersion=${resourceVersion}`);
    assert.is((await old.next())?.object.code, 410);
    using secrets = await openWatch(server, `${SECRETS}?watch=true&resourceVersion=${resourceVersion}`);
    assert.is((await secrets.next())?.object.metadata.name, "s");
    assert.throws(
      () => server.faults.compact({ kind: "Nothing" }),
      'kind "Nothing" not found: the API server does not serve it',
    );
  });

  test("returns stale lists only where the requested resourceVersion allows it", async () => {
    await using server = await startApiServer({ tls: false });
    const seen = (await create(server, "a")).metadata.resourceVersion;
    const fault = server.faults.add({ kind: "ConfigMap", stale: true });
    const latest = (await create(server, "b")).metadata.resourceVersion;
    await apiRequestOrThrow(server, `DELETE ${CONFIG_MAPS}/a`);
    const namesAt = async (query: string): Promise<string[]> => {
      const { body } = await apiRequest(server, `GET ${CONFIG_MAPS}${query}`);
      return (body.items ?? []).map(({ metadata }) => metadata.name);
    };
    assert.equal(await namesAt("?resourceVersion=0"), ["a"]);
    assert.equal(await namesAt("?resourceVersion=0&limit=1&labelSelector=x"), []);
    assert.equal(await namesAt(`?resourceVersion=${seen}`), ["a"]);
    assert.equal(await namesAt(`?resourceVersion=${latest}`), ["b"]);
    assert.equal(await namesAt(""), ["b"]);
    fault.remove();
    assert.equal(await namesAt("?resourceVersion=0"), ["b"]);
  });

  test("starts a watch with resourceVersion=0 in the past, which then catches up", async () => {
    await using server = await startApiServer({ tls: false });
    await create(server, "a");
    server.faults.add({ verb: "watch", stale: true });
    await create(server, "b");
    const query = "watch=true&resourceVersion=0&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    using watch = await openWatch(server, `${CONFIG_MAPS}?${query}&allowWatchBookmarks=true`);
    const events = await eventsUntil(watch, ({ object }) => object.metadata.name === "b");
    assert.equal(
      events.map(({ type, object }) => [type, object.kind, object.metadata.name]),
      [
        ["ADDED", "ConfigMap", "a"],
        ["BOOKMARK", "ConfigMap", undefined],
        ["ADDED", "ConfigMap", "b"],
      ],
    );
  });

  test("cuts a response in the middle", async () => {
    await using server = await startApiServer({ tls: false });
    server.faults.add({ verb: "list", times: 1, cutAnswer: true });
    await assert.rejects(apiRequest(server, `GET ${CONFIG_MAPS}`), "aborted");
    assert.is((await apiRequest(server, `GET ${CONFIG_MAPS}`)).status, 200);
  });

  test("shifts the clock of one server, in objects and in responses", async () => {
    await using server = await startApiServer({ tls: false });
    await using other = await startApiServer({ tls: false });
    const hour = 3_600_000;
    server.faults.shiftClock(-hour);
    const aheadOf = (time: unknown): number => Math.round((Date.parse(String(time)) - Date.now()) / hour);
    const { body, headers } = await apiRequest<{
      metadata: { creationTimestamp: string; managedFields: { time: string }[] };
    }>(server, `POST ${CONFIG_MAPS}`, { body: configMap("a", { x: "y" }) });
    const { creationTimestamp, managedFields } = body.metadata;
    assert.equal([creationTimestamp, managedFields[0]?.time, headers.date].map(aheadOf), [-1, -1, -1]);
    const elsewhere = (await create(other, "a")).metadata as unknown as { creationTimestamp: string };
    assert.is(aheadOf(elsewhere.creationTimestamp), 0);
    server.faults.clear();
    const later = (await create(server, "b")).metadata as unknown as { creationTimestamp: string };
    assert.is(aheadOf(later.creationTimestamp), 0);
  });

  test("cuts, ends, expires, and holds watches over HTTP", async () => {
    await using server = await startApiServer({ tls: false });
    const post = (body: object) =>
      apiRequest<{ id: string; watches: number }>(server, "POST /faults/watches", { body });
    const open = async (connection: Connection = server) =>
      openWatch(connection, `${CONFIG_MAPS}?watch=true&resourceVersion=${await versionOf(server)}`);
    using cut = await open();
    assert.equal((await post({ do: "cut", kind: "Secret" })).body, { watches: 0 });
    assert.equal((await post({ do: "cut", kind: "ConfigMap" })).body, { watches: 1 });
    await assert.rejects(cut.next(), 'aborted in the middle of a line: {"type":"MODIFIED"');
    using cutLater = await open();
    assert.equal((await post({ do: "cut", at: "next-event" })).body, { watches: 1 });
    await create(server, "a");
    await assert.rejects(cutLater.next(), 'aborted in the middle of a line: {"type":"ADDED"');
    using ended = await open();
    assert.equal((await post({ do: "end" })).body, { watches: 1 });
    assert.is(await ended.next(), undefined);
    using expired = await open();
    assert.equal((await post({ do: "expire" })).body, { watches: 1 });
    assert.is((await expired.next())?.object.code, 410);
    assert.is(await expired.next(), undefined);
    using held = await open();
    using free = await open(server.as("other", { groups: ["system:masters"] }));
    const { status, body } = await post({ do: "hold", user: "gen-operator-admin" });
    assert.is(status, 201);
    let isTold = false;
    const event = held.next().finally(() => (isTold = true));
    await create(server, "b");
    assert.is((await free.next())?.object.metadata.name, "b");
    // What is written before the answer to a later request would have arrived.
    await create(server, "c");
    assert.not.ok(isTold);
    await apiRequest(server, `DELETE /faults/${body.id}`);
    assert.equal(
      [await event, await held.next()].map((each) => each?.object.metadata.name),
      ["b", "c"],
    );
  });

  test("is available over HTTP for watches, the clock, and compaction", async () => {
    await using server = await startApiServer({ tls: false });
    const post = (path: string, body: object) =>
      apiRequest<{ id: string; message: string }>(server, `POST /faults${path}`, { body });
    using watch = await openWatch(server, `${CONFIG_MAPS}?watch=true`);
    const { id } = (await post("/watches", { do: "duplicate", kind: "ConfigMap", user: "gen-operator-admin" })).body;
    await create(server, "a");
    await apiRequest(server, `DELETE /faults/${id}`);
    assert.equal(await namesUntil(watch, "a"), ["a"]);
    assert.equal((await watch.next())?.object.metadata.name, "a");
    await create(server, "b");
    assert.is((await watch.next())?.object.metadata.name, "b");
    await post("/watches", { do: "reorder" });
    await apiRequestOrThrow(server, `DELETE ${CONFIG_MAPS}`);
    assert.equal(await namesUntil(watch, "a"), ["b", "a"]);
    await post("/watches", { do: "silence", kind: "Secret" });
    assert.is((await post("", { kind: "ConfigMap", stale: true })).status, 201);
    await create(server, "d");
    assert.is((await apiRequest(server, `GET ${CONFIG_MAPS}?resourceVersion=0`)).body.items?.length, 0);
    assert.is((await post("/compact", { kind: "Secret" })).status, 200);
    assert.is((await post("/clock", { aheadMs: 1000 })).status, 200);
    assert.match(
      (await post("/watches", { do: "burn" })).body.message,
      'faults: invalid value "burn" of do: must be one of cut, end, expire, hold, silence',
    );
    assert.match((await post("/watches", { do: "end", verb: "list" })).body.message, 'unknown field "verb"');
    assert.match(
      (await post("/compact", { kind: "Nothing" })).body.message,
      'kind "Nothing" not found: the API server does not serve it',
    );
  });
});
