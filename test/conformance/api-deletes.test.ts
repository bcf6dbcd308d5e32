import { apiRequest } from "../support/api/api-request.js";
import { startTestApiServer } from "../support/api/api-server.js";
import { waitFor } from "#apiserver/wait-for.js";
import { assert, suite } from "../support/suite.js";
import { CONFIG_MAPS, configMap, WIDGETS, widget, widgetDefinition } from "../support/api/api-fixtures.js";

const MERGE = "application/merge-patch+json";
const DEFINITION = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com";

function startServer() {
  return startTestApiServer({ crds: [widgetDefinition()] });
}

suite("DELETE", (test) => {
  test("removes an object without finalizers immediately, and returns 404 afterwards", async () => {
    await using server = await startServer();
    await apiRequest(server, `POST ${CONFIG_MAPS}`, { body: configMap("a") });
    const { status, body } = await apiRequest<object & { status: string; details: object }>(
      server,
      `DELETE ${CONFIG_MAPS}/a`,
    );
    assert.is(status, 200);
    assert.is(body.status, "Success");
    assert.is((await apiRequest(server, `GET ${CONFIG_MAPS}/a`)).status, 404);
    assert.is((await apiRequest(server, `DELETE ${CONFIG_MAPS}/a`)).status, 404);
  });

  test("keeps an object until its finalizers are removed, and rejects new finalizers with 422", async () => {
    await using server = await startServer();
    await apiRequest(server, `POST ${WIDGETS}`, { body: widget("w", {}, { finalizers: ["example.com/hold"] }) });
    const held = await apiRequest(server, `DELETE ${WIDGETS}/w`);
    assert.type(held.body.metadata.deletionTimestamp, "string");
    assert.is(held.body.metadata.generation, 2);
    const again = await apiRequest(server, `DELETE ${WIDGETS}/w`);
    assert.is(again.body.metadata.resourceVersion, held.body.metadata.resourceVersion);
    const more = { metadata: { finalizers: ["example.com/hold", "example.com/more"] } };
    const refused = await apiRequest(server, `PATCH ${WIDGETS}/w`, { body: more, contentType: MERGE });
    assert.is(refused.status, 422);
    assert.match(refused.text, "no new finalizers can be added if the object is being deleted");
    const freed = await apiRequest(server, `PATCH ${WIDGETS}/w`, {
      body: { metadata: { finalizers: null } },
      contentType: MERGE,
    });
    assert.is(freed.status, 200);
    assert.is((await apiRequest(server, `GET ${WIDGETS}/w`)).status, 404);
  });

  test("returns 409 if a uid or resourceVersion precondition does not match", async () => {
    await using server = await startServer();
    await apiRequest(server, `POST ${CONFIG_MAPS}`, { body: configMap("a") });
    for (const preconditions of [{ uid: "other" }, { resourceVersion: "1" }]) {
      const refused = await apiRequest(server, `DELETE ${CONFIG_MAPS}/a`, { body: { preconditions } });
      assert.is(refused.status, 409);
      assert.match(refused.text, "in the precondition");
    }
  });

  test("adds the finalizer of the propagation policy, and returns 422 for an unknown policy", async () => {
    await using server = await startServer();
    for (const [policy, finalizer] of [
      ["Foreground", "foregroundDeletion"],
      ["Orphan", "orphan"],
    ]) {
      await apiRequest(server, `POST ${CONFIG_MAPS}`, { body: configMap(`a-${finalizer?.toLowerCase()}`) });
      const held = await apiRequest(
        server,
        `DELETE ${CONFIG_MAPS}/a-${finalizer?.toLowerCase()}?propagationPolicy=${policy}`,
      );
      assert.equal(held.body.metadata.finalizers, [finalizer]);
    }
    const bad = await apiRequest(server, `DELETE ${CONFIG_MAPS}/a-orphan?propagationPolicy=Odd`);
    assert.is(bad.status, 422);
  });

  test("of a collection deletes the objects that match the selector and returns them as a list", async () => {
    await using server = await startServer();
    for (const [name, app] of [
      ["a", "x"],
      ["b", "y"],
      ["c", "x"],
    ]) {
      await apiRequest(server, `POST ${CONFIG_MAPS}`, { body: configMap(name as string, {}, { labels: { app } }) });
    }
    const { body } = await apiRequest(server, `DELETE ${CONFIG_MAPS}?labelSelector=app%3Dx`);
    assert.is(body.kind, "ConfigMapList");
    assert.equal(
      body.items?.map(({ metadata }) => metadata.name),
      ["a", "c"],
    );
    const rest = await apiRequest(server, `GET ${CONFIG_MAPS}`);
    assert.equal(
      rest.body.items?.map(({ metadata }) => metadata.name),
      ["b"],
    );
  });

  test("gives a scheduled Pod 30 s of grace, and removes an unscheduled Pod immediately", async () => {
    await using server = await startServer();
    const pods = "/api/v1/namespaces/default/pods";
    const pod = (name: string, nodeName?: string) => ({
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name },
      spec: { containers: [{ name: "c", image: "i" }], ...(nodeName === undefined ? {} : { nodeName }) },
    });
    await apiRequest(server, `POST ${pods}`, { body: pod("scheduled", "node") });
    await apiRequest(server, `POST ${pods}`, { body: pod("unscheduled") });
    const graceful = await apiRequest<{ metadata: { deletionGracePeriodSeconds: number } }>(
      server,
      `DELETE ${pods}/scheduled`,
    );
    assert.is(graceful.body.metadata.deletionGracePeriodSeconds, 30);
    assert.is((await apiRequest(server, `DELETE ${pods}/scheduled?gracePeriodSeconds=0`)).status, 200);
    assert.is((await apiRequest(server, `DELETE ${pods}/unscheduled`)).status, 200);
    assert.equal((await apiRequest(server, `GET ${pods}`)).body.items, []);
  });

  test("terminates a namespace, which rejects new objects with 403 until it is finalized", async () => {
    await using server = await startServer();
    await apiRequest(server, "POST /api/v1/namespaces", {
      body: { apiVersion: "v1", kind: "Namespace", metadata: { name: "n" } },
    });
    const terminating = await apiRequest(server, "DELETE /api/v1/namespaces/n");
    assert.is(terminating.body.status?.["phase"], "Terminating");
    const refused = await apiRequest(server, "POST /api/v1/namespaces/n/configmaps", { body: configMap("a") });
    assert.is(refused.status, 403);
    assert.match(refused.text, "unable to create new content in namespace n because it is being terminated");
    const live = await apiRequest(server, "GET /api/v1/namespaces/n");
    const finalized = { ...live.body, spec: { finalizers: [] } };
    assert.is((await apiRequest(server, "PUT /api/v1/namespaces/n/finalize", { body: finalized })).status, 200);
    assert.is((await apiRequest(server, "GET /api/v1/namespaces/n")).status, 404);
    assert.is((await apiRequest(server, "DELETE /api/v1/namespaces/default")).status, 403);
  });

  test("of a CRD deletes its objects first, and waits for their finalizers", async () => {
    await using server = await startServer();
    await apiRequest(server, `POST ${WIDGETS}`, { body: widget("free") });
    await apiRequest(server, `POST ${WIDGETS}`, { body: widget("held", {}, { finalizers: ["example.com/hold"] }) });
    const { body } = await apiRequest(server, `DELETE ${DEFINITION}`);
    assert.equal(body.metadata.finalizers, ["customresourcecleanup.apiextensions.k8s.io"]);
    // A real server deletes the objects a moment later.
    const isGone = (path: string) => async () => (await apiRequest(server, `GET ${path}`)).status === 404;
    await waitFor("what nothing holds is gone", isGone(`${WIDGETS}/free`));
    const refused = await apiRequest(server, `POST ${WIDGETS}`, { body: widget("new") });
    assert.is(refused.status, 403);
    await apiRequest(server, `PATCH ${WIDGETS}/held`, { body: { metadata: { finalizers: null } }, contentType: MERGE });
    await waitFor("the definition is gone", isGone(DEFINITION));
    await waitFor("its objects are served no longer", isGone(WIDGETS));
    const gone = await apiRequest(server, `GET ${WIDGETS}`);
    assert.equal([gone.status, gone.text], [404, "404 page not found\n"]);
  });
});
