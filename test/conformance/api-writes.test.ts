import { apiRequest } from "../support/api/api-request.js";
import { startTestApiServer } from "../support/api/api-server.js";
import { assert, suite } from "../support/suite.js";
import { CONFIG_MAPS, configMap, WIDGETS, widget, widgetDefinition } from "../support/api/api-fixtures.js";

const MERGE = "application/merge-patch+json";
const APPLY = "application/apply-patch+yaml";

function startServer() {
  return startTestApiServer({ crds: [widgetDefinition()] });
}

suite("write requests", (test) => {
  test("POST sets uid, resourceVersion and namespace, and returns 409 for an existing name", async () => {
    await using server = await startServer();
    const { status, body } = await apiRequest(server, `POST ${CONFIG_MAPS}?fieldManager=me`, { body: configMap("a") });
    assert.is(status, 201);
    assert.match(body.metadata.uid, /^[0-9a-f-]{36}$/);
    assert.ok(Number(body.metadata.resourceVersion) > 0);
    assert.is(body.metadata.namespace, "default");
    assert.is(body.metadata.generation, undefined);
    const again = await apiRequest(server, `POST ${CONFIG_MAPS}`, { body: configMap("a") });
    assert.is(again.status, 409);
    assert.is(again.text.trim(), JSON.stringify(again.body));
    assert.match(again.text, 'configmaps \\"a\\" already exists');
  });

  test("keep the resourceVersion if nothing changes", async () => {
    await using server = await startServer();
    const created = await apiRequest(server, `POST ${CONFIG_MAPS}`, { body: configMap("a", { k: "v" }) });
    const put = await apiRequest(server, `PUT ${CONFIG_MAPS}/a`, { body: created.body });
    const patched = await apiRequest(server, `PATCH ${CONFIG_MAPS}/a`, {
      body: { data: { k: "v" } },
      contentType: MERGE,
    });
    assert.is(put.body.metadata.resourceVersion, created.body.metadata.resourceVersion);
    assert.is(patched.body.metadata.resourceVersion, created.body.metadata.resourceVersion);
  });

  test("return 409 for a stale resourceVersion, and 422 if a custom resource has none", async () => {
    await using server = await startServer();
    await apiRequest(server, `POST ${CONFIG_MAPS}`, { body: configMap("a") });
    await apiRequest(server, `POST ${WIDGETS}`, { body: widget("w") });
    const stale = await apiRequest(server, `PUT ${CONFIG_MAPS}/a`, {
      body: configMap("a", {}, { resourceVersion: "1" }),
    });
    assert.is(stale.status, 409);
    assert.match(
      stale.text,
      "the object has been modified; please apply your changes to the latest version and try again",
    );
    assert.is((await apiRequest(server, `PUT ${CONFIG_MAPS}/a`, { body: configMap("a", { k: "v" }) })).status, 200);
    const missing = await apiRequest(server, `PUT ${WIDGETS}/w`, { body: widget("w") });
    assert.is(missing.status, 422);
    assert.match(
      missing.text,
      'widgets.example.com \\"w\\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update',
    );
  });

  test("increase the generation for spec changes, not for status or metadata", async () => {
    await using server = await startServer();
    const generation = async (path: string, body: object) =>
      (await apiRequest(server, `PATCH ${WIDGETS}/w${path}`, { body, contentType: MERGE })).body.metadata.generation;
    const { body } = await apiRequest(server, `POST ${WIDGETS}`, { body: widget("w") });
    assert.is(body.metadata.generation, 1);
    assert.equal(body.spec, { size: 3 });
    assert.is(await generation("", { metadata: { labels: { a: "b" } } }), 1);
    assert.is(await generation("", { spec: { size: 4 } }), 2);
    assert.is(await generation("", { status: { ready: true } }), 2);
    assert.is(await generation("/status", { status: { ready: true }, spec: { size: 9 } }), 2);
    const now = await apiRequest(server, `GET ${WIDGETS}/w`);
    assert.equal([now.body.spec, now.body.status], [{ size: 4 }, { ready: true }]);
  });

  test("prune unknown fields with a warning, and reject them with 400 under fieldValidation=Strict", async () => {
    await using server = await startServer();
    const body = widget("w", { odd: 1 });
    const warned = await apiRequest(server, `POST ${WIDGETS}`, { body });
    assert.is(warned.status, 201);
    assert.is(warned.headers["warning"], '299 - "unknown field \\"spec.odd\\""');
    assert.equal(warned.body.spec, { size: 3 });
    const strict = await apiRequest(server, `POST ${WIDGETS}?fieldValidation=Strict`, { body });
    assert.is(strict.status, 400);
    assert.match(strict.text, 'cannot be handled as a Widget: strict decoding error: unknown field \\"spec.odd\\"');
    const ignored = await apiRequest(server, `PATCH ${WIDGETS}/w?fieldValidation=Ignore`, {
      body: { spec: { odd: 1 } },
      contentType: MERGE,
    });
    assert.is(ignored.headers["warning"], undefined);
    const twice = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"1","k":"2"}}';
    const repeated = await apiRequest(server, `POST ${CONFIG_MAPS}?fieldValidation=Strict`, { body: twice });
    assert.match(repeated.text, 'strict decoding error: duplicate field \\"data.k\\"');
  });

  test("reject a custom resource that violates its schema with 422", async () => {
    await using server = await startServer();
    const { status, body } = await apiRequest<{ message: string; details: { causes: object[] } }>(
      server,
      `POST ${WIDGETS}`,
      {
        body: widget("w", { size: 0 }),
      },
    );
    assert.is(status, 422);
    assert.is(
      body.message,
      'Widget.example.com "w" is invalid: spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1',
    );
    assert.is(body.details.causes.length, 1);
  });

  test("return the result of a dry run without persisting it", async () => {
    await using server = await startServer();
    const created = await apiRequest(server, `POST ${CONFIG_MAPS}?dryRun=All`, { body: configMap("a") });
    assert.is(created.status, 201);
    assert.is(created.body.metadata.resourceVersion, undefined);
    assert.is((await apiRequest(server, `GET ${CONFIG_MAPS}/a`)).status, 404);
    const real = await apiRequest(server, `POST ${CONFIG_MAPS}`, { body: configMap("a") });
    const body = { data: { k: "v" } };
    const patched = await apiRequest(server, `PATCH ${CONFIG_MAPS}/a?dryRun=All`, { body, contentType: MERGE });
    assert.is(patched.body.metadata.resourceVersion, real.body.metadata.resourceVersion);
    assert.is((await apiRequest(server, `DELETE ${CONFIG_MAPS}/a?dryRun=All`)).status, 200);
    const after = await apiRequest(server, `GET ${CONFIG_MAPS}/a`);
    assert.is(after.text, real.text);
    assert.is((await apiRequest(server, `POST ${CONFIG_MAPS}?dryRun=Some`, { body: configMap("b") })).status, 422);
  });

  test("append a unique 5-character suffix to generateName", async () => {
    await using server = await startServer();
    const names = new Set<string>();
    for (let count = 0; count < 5; count++) {
      const body = { apiVersion: "v1", kind: "ConfigMap", metadata: { generateName: "job-" } };
      const created = await apiRequest(server, `POST ${CONFIG_MAPS}`, { body });
      assert.match(created.body.metadata.name, /^job-[bcdfghjklmnpqrstvwxz2456789]{5}$/);
      names.add(created.body.metadata.name);
    }
    assert.is(names.size, 5);
  });

  test("server-side apply creates an object, and removes fields that are no longer applied", async () => {
    await using server = await startServer();
    const apply = (data: Record<string, string>) =>
      apiRequest<{ data?: object; metadata: { resourceVersion: string } }>(
        server,
        `PATCH ${CONFIG_MAPS}/a?fieldManager=me`,
        { body: configMap("a", data), contentType: APPLY },
      );
    assert.is((await apply({ a: "1", b: "1" })).status, 201);
    const second = await apply({ a: "1" });
    assert.equal(second.body.data, { a: "1" });
    assert.is((await apply({ a: "1" })).body.metadata.resourceVersion, second.body.metadata.resourceVersion);
  });

  test("server-side apply returns 409 for a field of another manager unless forced", async () => {
    await using server = await startServer();
    const apply = (manager: string, query: string, size: number) =>
      apiRequest<{ details?: { causes: { field: string }[] } }>(
        server,
        `PATCH ${WIDGETS}/w?fieldManager=${manager}${query}`,
        { body: widget("w", { size }), contentType: APPLY },
      );
    await apply("one", "", 5);
    const conflict = await apply("two", "", 6);
    assert.is(conflict.status, 409);
    assert.equal(
      conflict.body.details?.causes.map(({ field }) => field),
      [".spec.size"],
    );
    assert.is((await apply("two", "&force=true", 6)).status, 200);
    assert.is((await apiRequest(server, `PATCH ${WIDGETS}/w`, { body: widget("w"), contentType: APPLY })).status, 422);
  });

  test("return 404 in a missing namespace, whose lists are empty", async () => {
    await using server = await startServer();
    const { status, text } = await apiRequest(server, "POST /api/v1/namespaces/none/configmaps", {
      body: configMap("a"),
    });
    assert.is(status, 404);
    assert.match(text, 'namespaces \\"none\\" not found');
    const list = await apiRequest(server, "GET /api/v1/namespaces/none/configmaps");
    assert.equal([list.status, list.body.items], [200, []]);
  });

  test("PATCH of the scale subresource changes the replicas, and returns 422 for a negative number", async () => {
    await using server = await startServer();
    await apiRequest(server, `POST ${WIDGETS}`, { body: widget("w", { replicas: 1 }) });
    const body = { spec: { replicas: 4 } };
    const scaled = await apiRequest(server, `PATCH ${WIDGETS}/w/scale`, { body, contentType: MERGE });
    assert.equal([scaled.body.kind, scaled.body.spec], ["Scale", { replicas: 4 }]);
    const now = await apiRequest(server, `GET ${WIDGETS}/w`);
    assert.is(now.body.metadata.generation, 2);
    assert.ok(now.body.metadata.managedFields?.some(({ subresource }) => subresource === "scale"));
    const negative = { spec: { replicas: -1 } };
    assert.is(
      (await apiRequest(server, `PATCH ${WIDGETS}/w/scale`, { body: negative, contentType: MERGE })).status,
      422,
    );
  });
});
