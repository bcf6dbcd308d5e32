import { apiRequest } from "../support/api/api-request.js";
import { startTestApiServer } from "../support/api/api-server.js";
import { CONFIG_MAPS, configMap, WIDGETS, widget, widgetDefinition } from "../support/api/api-fixtures.js";
import { assert, suite } from "../support/suite.js";
import { eventsUntil, openWatch, type WatchEvent } from "../support/api/watch-client.js";

const form = (as: string) => `application/json;as=${as};g=meta.k8s.io;v=v1`;
const ONE = { accept: form("PartialObjectMetadata") };
const LIST = { accept: `${form("PartialObjectMetadataList")},${form("Table")},application/json` };
const STREAMING = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
const endsInitialEvents = ({ object }: WatchEvent) =>
  object.metadata.annotations?.["k8s.io/initial-events-end"] === "true";
const briefly = ({ type, object }: WatchEvent) => `${type} ${object.kind} ${object.metadata.name ?? ""}`.trim();

suite("PartialObjectMetadata", (test) => {
  test("is returned for an object and a list", async () => {
    await using server = await startTestApiServer({ crds: [widgetDefinition()] });
    const paths = [
      [CONFIG_MAPS, configMap("a", { k: "v" }, { labels: { app: "x" } })],
      [WIDGETS, widget("a", { size: 4 }, { labels: { app: "x" } })],
    ] as const;
    for (const [path, body] of paths) {
      await apiRequest(server, `POST ${path}`, { body });
      const one = (await apiRequest(server, `GET ${path}/a`, { headers: ONE })).body;
      assert.equal(Object.keys(one).sort(), ["apiVersion", "kind", "metadata"]);
      assert.equal([one.apiVersion, one.kind], ["meta.k8s.io/v1", "PartialObjectMetadata"]);
      assert.equal([one.metadata.name, one.metadata.labels?.["app"]], ["a", "x"]);
      const list = (await apiRequest(server, `GET ${path}?labelSelector=app%3Dx`, { headers: LIST })).body;
      assert.is(list.kind, "PartialObjectMetadataList");
      assert.is(list.items?.length, 1);
      assert.equal(list.items?.[0]?.metadata, one.metadata);
      assert.not.ok("data" in list.items![0]! || "spec" in list.items![0]!);
    }
  });

  test("is sent in watch events of initial objects, bookmarks and changes", async () => {
    await using server = await startTestApiServer({ crds: [widgetDefinition()] });
    await apiRequest(server, `POST ${WIDGETS}`, { body: widget("a") });
    using watch = await openWatch(server, `${WIDGETS}?${STREAMING}`, ONE);
    const initial = await eventsUntil(watch, endsInitialEvents);
    assert.equal(initial.map(briefly), ["ADDED PartialObjectMetadata a", "BOOKMARK PartialObjectMetadata"]);
    await apiRequest(server, `PATCH ${WIDGETS}/a/status`, {
      body: { status: { ready: true } },
      contentType: "application/merge-patch+json",
    });
    await apiRequest(server, `DELETE ${WIDGETS}/a`);
    // A server may send another bookmark at any time.
    const later = (await eventsUntil(watch, ({ type }) => type === "DELETED")).filter(
      ({ type }) => type !== "BOOKMARK",
    );
    assert.equal(later.map(briefly), ["MODIFIED PartialObjectMetadata a", "DELETED PartialObjectMetadata a"]);
    assert.ok(later.every(({ object }) => !("spec" in object) && object.apiVersion === "meta.k8s.io/v1"));
  });
});
