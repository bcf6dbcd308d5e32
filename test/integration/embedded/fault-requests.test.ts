import { startApiServer } from "#apiserver/server.js";
import { apiRequest, type ApiAnswer } from "../../support/api/api-request.js";
import { CONFIG_MAPS, configMap } from "../../support/api/api-fixtures.js";
import { assert, suite } from "../../support/suite.js";

interface Reply {
  id: string;
  watches: number;
  message: string;
  faults: { id: string; hits: number }[];
}

suite("fault over HTTP", (test) => {
  test("applies after the given number of requests, at most the given times, and counts its hits", async () => {
    await using server = await startApiServer({ tls: false });
    const rule = { verb: "list", path: { pattern: "configmaps$" }, after: 1, times: 2, answer: { status: 503 } };
    const { body } = await apiRequest<Reply>(server, "POST /faults", { body: rule });
    const statuses: number[] = [];
    for (let request = 0; request < 5; request++)
      statuses.push((await apiRequest(server, `GET ${CONFIG_MAPS}`)).status);
    assert.equal(statuses, [200, 503, 503, 200, 200]);
    const listed = (await apiRequest<Reply>(server, "GET /faults")).body.faults;
    assert.equal(
      listed.map(({ id, hits }) => [id, hits]),
      [[body.id, 2]],
    );
    assert.is((await apiRequest(server, `DELETE /faults/${body.id}`)).status, 200);
    assert.equal((await apiRequest<Reply>(server, "GET /faults")).body.faults, []);
  });

  test("does not affect other users if limited to one user", async () => {
    await using server = await startApiServer({ tls: false, as: "operator" });
    const masters = server.as("other", { groups: ["system:masters"] });
    await apiRequest(server.admin, "POST /faults", { body: { user: "other", answer: { status: 429 } } });
    assert.is((await apiRequest(masters, `GET ${CONFIG_MAPS}`)).status, 429);
    assert.is((await apiRequest(server.admin, `GET ${CONFIG_MAPS}`)).status, 200);
    assert.is((await apiRequest(server, `GET ${CONFIG_MAPS}`)).status, 403);
  });

  test("can only be set by the administrator, who can always remove it", async () => {
    await using server = await startApiServer({ tls: false, as: "operator" });
    assert.is((await apiRequest(server, "POST /faults", { body: { hang: true } })).status, 403);
    await apiRequest(server.admin, "POST /faults", { body: { answer: { status: 500 } } });
    await apiRequest(server.admin, "POST /faults/tokens", { body: { refuse: true } });
    assert.is((await apiRequest(server.admin, `GET ${CONFIG_MAPS}`)).status, 500);
    assert.is((await apiRequest(server.admin, "DELETE /faults")).status, 200);
    assert.is((await apiRequest(server.admin, `GET ${CONFIG_MAPS}`)).status, 200);
  });

  test("drops the response of a write, or compacts the watch history", async () => {
    await using server = await startApiServer({ tls: false });
    await apiRequest(server, "POST /faults", { body: { verb: "create", times: 1, loseAnswer: true } });
    const lost = await apiRequest(server, `POST ${CONFIG_MAPS}`, { body: configMap("lost") }).catch(() => "lost");
    assert.is(lost, "lost");
    assert.is((await apiRequest(server, `GET ${CONFIG_MAPS}/lost`)).status, 200);
    await apiRequest(server, "POST /faults/compact", { body: {} });
    const watch = await apiRequest(server, `GET ${CONFIG_MAPS}?watch=true&resourceVersion=1001`);
    assert.match(watch.text, "too old resource version");
  });

  test("is rejected with 400 and the list of valid fields if its rule is invalid", async () => {
    await using server = await startApiServer({ tls: false });
    const refused = async (path: string, body: object): Promise<ApiAnswer<Reply>> =>
      apiRequest<Reply>(server, `POST ${path}`, { body });
    const unknown = await refused("/faults", { verbs: "list" });
    assert.is(unknown.status, 400);
    assert.match(
      unknown.body.message,
      'faults: unknown field "verbs": must be one of verb, path, kind, namespace, user,',
    );
    assert.is(
      (await refused("/faults", { times: "2" })).body.message,
      'faults: invalid value "2" of times: must be a number',
    );
    assert.is((await refused("/faults", { path: { pattern: "(" } })).status, 400);
    assert.is(
      (await refused("/faults/watches", { do: "stop" })).body.message,
      'faults: invalid value "stop" of do: must be one of cut, end, expire, hold, silence, duplicate, reorder',
    );
    assert.is((await refused("/faults/odd", {})).status, 404);
  });
});
