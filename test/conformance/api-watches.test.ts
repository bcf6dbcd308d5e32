import { apiRequest } from "../support/api/api-request.js";
import { startTestApiServer } from "../support/api/api-server.js";
import { waitFor } from "#apiserver/wait-for.js";
import { assert, suite } from "../support/suite.js";
import { CONFIG_MAPS, configMap, WIDGETS, widget, widgetDefinition } from "../support/api/api-fixtures.js";
import { eventsUntil, openWatch, type WatchEvent } from "../support/api/watch-client.js";

const MERGE = "application/merge-patch+json";
const briefly = ({ type, object }: WatchEvent) => `${type} ${object.metadata.name ?? ""}`.trim();

suite("watches", (test) => {
  test("without resourceVersion send ADDED for existing objects first", async () => {
    await using server = await startTestApiServer();
    for (const name of ["b", "a"]) await apiRequest(server, `POST ${CONFIG_MAPS}`, { body: configMap(name) });
    using watch = await openWatch(server, `${CONFIG_MAPS}?watch=true`);
    await apiRequest(server, `POST ${CONFIG_MAPS}`, { body: configMap("c") });
    const events = await eventsUntil(watch, ({ object }) => object.metadata.name === "c");
    assert.equal(events.map(briefly), ["ADDED a", "ADDED b", "ADDED c"]);
  });

  test("from a resourceVersion send every later event once and in order", async () => {
    await using server = await startTestApiServer();
    const { body } = await apiRequest(server, `POST ${CONFIG_MAPS}`, { body: configMap("a") });
    await apiRequest(server, `PATCH ${CONFIG_MAPS}/a`, { body: { data: { k: "v" } }, contentType: MERGE });
    using watch = await openWatch(server, `${CONFIG_MAPS}?watch=true&resourceVersion=${body.metadata.resourceVersion}`);
    await apiRequest(server, `DELETE ${CONFIG_MAPS}/a`);
    await apiRequest(server, `POST ${CONFIG_MAPS}`, { body: configMap("end") });
    const events = await eventsUntil(watch, ({ object }) => object.metadata.name === "end");
    assert.equal(events.map(briefly), ["MODIFIED a", "DELETED a", "ADDED end"]);
    const versions = events.map(({ object }) => Number(object.metadata.resourceVersion));
    assert.equal(
      versions,
      [...versions].sort((a, b) => a - b),
    );
    assert.is(new Set(versions).size, 3);
  });

  test("with a label selector send ADDED and DELETED when an object starts or stops matching", async () => {
    await using server = await startTestApiServer();
    const label = (app: string) =>
      apiRequest(server, `PATCH ${CONFIG_MAPS}/a`, { body: { metadata: { labels: { app } } }, contentType: MERGE });
    await apiRequest(server, `POST ${CONFIG_MAPS}`, { body: configMap("a") });
    using watch = await openWatch(server, `${CONFIG_MAPS}?watch=true&labelSelector=app%3Dx`);
    await label("x");
    await apiRequest(server, `PATCH ${CONFIG_MAPS}/a`, { body: { data: { k: "v" } }, contentType: MERGE });
    const last = await label("y");
    const events = await eventsUntil(watch, ({ type }) => type === "DELETED");
    assert.equal(events.map(briefly), ["ADDED a", "MODIFIED a", "DELETED a"]);
    const deleted = events.at(-1)?.object.metadata;
    assert.equal([deleted?.labels, deleted?.resourceVersion], [{ app: "x" }, last.body.metadata.resourceVersion]);
  });

  test("with sendInitialEvents end the initial events with a bookmark, and return 422 without its options", async () => {
    await using server = await startTestApiServer();
    await apiRequest(server, `POST ${CONFIG_MAPS}`, { body: configMap("a") });
    const query = "?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    using watch = await openWatch(server, CONFIG_MAPS + query);
    const events = await eventsUntil(watch, ({ type }) => type === "BOOKMARK");
    assert.equal(events.map(briefly), ["ADDED a", "BOOKMARK"]);
    const { metadata } = (events.at(-1) as WatchEvent).object;
    assert.equal(metadata.annotations, { "k8s.io/initial-events-end": "true" });
    // Others write to a real server meanwhile, so a list may be newer.
    const [version, ofList] = [
      metadata.resourceVersion,
      (await apiRequest(server, `GET ${CONFIG_MAPS}`)).body.metadata.resourceVersion,
    ];
    assert.ok(Number(version) <= Number(ofList), `${version} is not newer than the list at ${ofList}`);
    const refused = await openWatch(server, `${CONFIG_MAPS}?watch=true&sendInitialEvents=true`);
    assert.is(refused.status, 422);
    refused[Symbol.dispose]();
  });

  test("end after timeoutSeconds", async () => {
    await using server = await startTestApiServer();
    using watch = await openWatch(server, `${CONFIG_MAPS}?watch=true&timeoutSeconds=1`);
    assert.is(await watch.next(), undefined);
  });

  test("send no event for dry runs and no-op patches", async () => {
    await using server = await startTestApiServer();
    await apiRequest(server, `POST ${CONFIG_MAPS}`, { body: configMap("a", { k: "v" }) });
    using watch = await openWatch(server, `${CONFIG_MAPS}?watch=true`);
    await apiRequest(server, `PATCH ${CONFIG_MAPS}/a`, { body: { data: { k: "v" } }, contentType: MERGE });
    await apiRequest(server, `POST ${CONFIG_MAPS}?dryRun=All`, { body: configMap("dry") });
    await apiRequest(server, `POST ${CONFIG_MAPS}`, { body: configMap("end") });
    const events = await eventsUntil(watch, ({ object }) => object.metadata.name === "end");
    assert.equal(events.map(briefly), ["ADDED a", "ADDED end"]);
  });

  test("end after the DELETED events when the CRD is deleted", async () => {
    await using server = await startTestApiServer({ crds: [widgetDefinition()] });
    await apiRequest(server, `POST ${WIDGETS}`, { body: widget("w") });
    using watch = await openWatch(server, `${WIDGETS}?watch=true`);
    await apiRequest(server, "DELETE /apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com");
    const events = await eventsUntil(watch, () => false);
    assert.equal(events.map(briefly), ["ADDED w", "DELETED w"]);
  });

  test("of CRDs send each condition change until Established", async () => {
    await using server = await startTestApiServer();
    const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    using watch = await openWatch(server, `${definitions}?watch=true`);
    await apiRequest(server, `POST ${definitions}`, { body: widgetDefinition() });
    const states: string[] = [];
    while (states.length < 3) {
      const event = (await watch.next()) as WatchEvent;
      const conditions = (event.object.status?.["conditions"] ?? []) as { type: string; status: string }[];
      states.push(`${event.type} ${conditions.map(({ type, status }) => `${type}=${status}`).join()}`.trim());
    }
    assert.equal(states, [
      "ADDED",
      "MODIFIED NamesAccepted=True,Established=False",
      "MODIFIED NamesAccepted=True,Established=True",
    ]);
    // A real server may first have to set up the storage of the new type.
    await waitFor("the type is served", async () => (await apiRequest(server, `GET ${WIDGETS}`)).status === 200);
  });

  test("all receive every event (20 watches, 30 objects)", async () => {
    await using server = await startTestApiServer();
    const watches = await Promise.all(Array.from({ length: 20 }, () => openWatch(server, `${CONFIG_MAPS}?watch=true`)));
    const names = Array.from({ length: 30 }, (_, index) => `c-${String(index).padStart(2, "0")}`);
    await Promise.all(names.map((name) => apiRequest(server, `POST ${CONFIG_MAPS}`, { body: configMap(name) })));
    for (const watch of watches) {
      const seen: string[] = [];
      while (seen.length < names.length) seen.push((await watch.next())?.object.metadata.name ?? "");
      assert.equal(seen.sort(), names);
      watch[Symbol.dispose]();
    }
  });
});
