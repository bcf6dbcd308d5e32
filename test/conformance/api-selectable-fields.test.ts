import { apiRequest } from "../support/api/api-request.js";
import { startTestApiServer } from "../support/api/api-server.js";
import { WIDGETS, widget, widgetDefinition } from "../support/api/api-fixtures.js";
import { assert, suite } from "../support/suite.js";
import { eventsUntil, openWatch, type WatchEvent } from "../support/api/watch-client.js";

const MERGE = "application/merge-patch+json";
const SECRETS = "/api/v1/namespaces/default/secrets";
const briefly = ({ type, object }: WatchEvent) => `${type} ${object.metadata.name}`;

// The size and the readiness of a Widget can be selected by.
function selectableDefinition(): object {
  const definition = widgetDefinition() as { spec: { versions: object[] } };
  const selectableFields = [{ jsonPath: ".spec.size" }, { jsonPath: ".status.ready" }];
  const versions = definition.spec.versions.map((version) => ({ ...version, selectableFields }));
  return { ...definition, spec: { ...definition.spec, versions } };
}

suite("selectable fields", (test) => {
  test("filter lists of custom resources, and others return 400", async () => {
    await using server = await startTestApiServer({ crds: [selectableDefinition()] });
    for (const [name, size] of Object.entries({ a: 4, b: 5, c: 4 }))
      await apiRequest(server, `POST ${WIDGETS}`, { body: widget(name, { size }) });
    const namesOf = async (selector: string) => {
      const { status, body } = await apiRequest(server, `GET ${WIDGETS}?fieldSelector=${encodeURIComponent(selector)}`);
      return status === 200 ? body.items!.map(({ metadata }) => metadata.name) : status;
    };
    assert.equal(await namesOf("spec.size=4"), ["a", "c"]);
    assert.equal(await namesOf("spec.size!=4"), ["b"]);
    assert.equal(await namesOf("spec.size=4,metadata.name!=a"), ["c"]);
    assert.equal(await namesOf("status.ready="), ["a", "b", "c"]);
    assert.is(await namesOf("spec.replicas=1"), 400);
  });

  test("make a watch send DELETED when an object stops matching and ADDED when it matches again", async () => {
    await using server = await startTestApiServer({ crds: [selectableDefinition()] });
    for (const [name, size] of Object.entries({ a: 4, b: 5 }))
      await apiRequest(server, `POST ${WIDGETS}`, { body: widget(name, { size }) });
    const patch = async (path: string, body: object) =>
      (await apiRequest(server, `PATCH ${WIDGETS}/${path}`, { body, contentType: MERGE })).body.metadata
        .resourceVersion;
    using watch = await openWatch(server, `${WIDGETS}?watch=true&fieldSelector=spec.size%3D4`);
    await patch("b", { spec: { size: 4 } });
    const left = await patch("a", { spec: { size: 6 } });
    await patch("a", { spec: { size: 7 } });
    await patch("a", { spec: { size: 4 } });
    await patch("b/status", { status: { ready: true } });
    const events = await eventsUntil(watch, ({ type }) => type === "MODIFIED");
    assert.equal(events.map(briefly), ["ADDED a", "ADDED b", "DELETED a", "ADDED a", "MODIFIED b"]);
    // It is shown as it was when it still matched, at the version that took it out.
    const { spec, metadata } = events[2]!.object;
    assert.equal([spec?.["size"], metadata.resourceVersion], [4, left]);
  });

  test("make a watch send ADDED and DELETED on status changes", async () => {
    await using server = await startTestApiServer({ crds: [selectableDefinition()] });
    await apiRequest(server, `POST ${WIDGETS}`, { body: widget("a") });
    using watch = await openWatch(server, `${WIDGETS}?watch=true&fieldSelector=status.ready%3Dtrue`);
    const ready = (isReady: boolean) =>
      apiRequest(server, `PATCH ${WIDGETS}/a/status`, { body: { status: { ready: isReady } }, contentType: MERGE });
    await ready(true);
    await ready(false);
    const events = await eventsUntil(watch, ({ type }) => type === "DELETED");
    assert.equal(events.map(briefly), ["ADDED a", "DELETED a"]);
  });

  test("include the type of a Secret, for lists and watches", async () => {
    await using server = await startTestApiServer();
    const secret = (name: string, type: string) => ({
      body: { apiVersion: "v1", kind: "Secret", metadata: { name }, type },
    });
    await apiRequest(server, `POST ${SECRETS}`, secret("plain", "Opaque"));
    using watch = await openWatch(server, `${SECRETS}?watch=true&fieldSelector=type%3Dexample.com%2Fours`);
    await apiRequest(server, `POST ${SECRETS}`, secret("ours", "example.com/ours"));
    const events = await eventsUntil(watch, () => true);
    assert.equal(events.map(briefly), ["ADDED ours"]);
    const { body } = await apiRequest(server, `GET ${SECRETS}?fieldSelector=type%21%3Dexample.com%2Fours`);
    assert.equal(
      body.items?.map(({ metadata }) => metadata.name),
      ["plain"],
    );
  });
});
