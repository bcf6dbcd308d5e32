import { startApiServer } from "#apiserver/index.js";
import { apiRequest } from "../../support/api/api-request.js";
import { assert, suite } from "../../support/suite.js";
import { CONFIG_MAPS, configMap } from "../../support/api/api-fixtures.js";
import { openWatch } from "../../support/api/watch-client.js";

async function isBroken(promise: Promise<unknown>): Promise<boolean> {
  return promise.then(
    () => false,
    () => true,
  );
}

suite("fault", (test) => {
  test("answers only the requests that match its rule, at most the given times, with 429 and Retry-After", async () => {
    await using server = await startApiServer({ tls: false });
    const fault = server.faults.add({
      verb: "create",
      path: "configmaps",
      times: 2,
      answer: { status: 429, retryAfterSeconds: 1 },
    });
    const post = (name: string) => apiRequest(server, `POST ${CONFIG_MAPS}`, { body: configMap(name) });
    const first = await post("a");
    assert.equal([first.status, first.headers["retry-after"]], [429, "1"]);
    assert.is((await apiRequest(server, `GET ${CONFIG_MAPS}`)).status, 200);
    assert.is((await post("a")).status, 429);
    assert.is((await post("a")).status, 201);
    assert.is(fault.hits, 2);
  });

  test("breaks the connection before or after the write", async () => {
    await using server = await startApiServer({ tls: false });
    const post = (name: string) => apiRequest(server, `POST ${CONFIG_MAPS}`, { body: configMap(name) });
    server.faults.add({ verb: "create", times: 1, disconnect: true });
    assert.ok(await isBroken(post("a")));
    server.faults.add({ verb: "create", times: 1, loseAnswer: true });
    assert.ok(await isBroken(post("b")));
    const { body } = await apiRequest(server, `GET ${CONFIG_MAPS}`);
    assert.equal(
      body.items?.map(({ metadata }) => metadata.name),
      ["b"],
    );
  });

  test("delays the response of matching requests", async () => {
    await using server = await startApiServer({ tls: false });
    server.faults.add({ verb: "list", delayMs: 60 });
    const start = performance.now();
    assert.is((await apiRequest(server, `GET ${CONFIG_MAPS}`)).status, 200);
    assert.ok(performance.now() - start > 50);
  });

  test("breaks a watch within a line, at once or at its next event, or ends it after a whole line", async () => {
    await using server = await startApiServer({ tls: false });
    using first = await openWatch(server, `${CONFIG_MAPS}?watch=true`);
    assert.is(server.faults.cutWatches(), 1);
    await assert.rejects(first.next(), 'aborted in the middle of a line: {"type":"MODIFIED","object":');
    using second = await openWatch(server, `${CONFIG_MAPS}?watch=true`);
    assert.is(server.faults.cutWatches({ path: /configmaps/, at: "next-event" }), 1);
    await apiRequest(server, `POST ${CONFIG_MAPS}`, { body: configMap("a") });
    await assert.rejects(second.next(), 'aborted in the middle of a line: {"type":"ADDED","object":');
    using third = await openWatch(server, `${CONFIG_MAPS}?watch=true`);
    await third.next();
    server.faults.endWatches();
    assert.is(await third.next(), undefined);
  });

  test("expires the continue token of a compacted list with 410, which returns a token for the rest", async () => {
    await using server = await startApiServer({ tls: false });
    for (const name of ["a", "b", "c"]) await apiRequest(server, `POST ${CONFIG_MAPS}`, { body: configMap(name) });
    const first = (await apiRequest<{ metadata: { continue: string } }>(server, `GET ${CONFIG_MAPS}?limit=1`)).body;
    server.faults.compact();
    const gone = await apiRequest<{ reason: string; metadata: { continue: string } }>(
      server,
      `GET ${CONFIG_MAPS}?limit=1&continue=${first.metadata.continue}`,
    );
    assert.equal([gone.status, gone.body.reason], [410, "Expired"]);
    const rest = await apiRequest(server, `GET ${CONFIG_MAPS}?continue=${gone.body.metadata.continue}`);
    assert.equal(
      rest.body.items?.map(({ metadata }) => metadata.name),
      ["b", "c"],
    );
  });

  test("ends a watch at a compacted revision with an ERROR event of 410 Expired", async () => {
    await using server = await startApiServer({ tls: false });
    const { body } = await apiRequest(server, `POST ${CONFIG_MAPS}`, { body: configMap("a") });
    server.faults.compact();
    using watch = await openWatch(server, `${CONFIG_MAPS}?watch=true&resourceVersion=${body.metadata.resourceVersion}`);
    assert.is(watch.status, 200);
    const event = await watch.next();
    assert.equal([event?.type, event?.object.code, event?.object.reason], ["ERROR", 410, "Expired"]);
    assert.is(await watch.next(), undefined);
  });

  test("rejects tokens with 401 until they are accepted again", async () => {
    await using server = await startApiServer({ tls: false });
    server.faults.refuseTokens(true);
    assert.is((await apiRequest(server, `GET ${CONFIG_MAPS}`)).status, 401);
    server.faults.refuseTokens(false);
    assert.is((await apiRequest(server, `GET ${CONFIG_MAPS}`)).status, 200);
  });

  test("forbids one namespace with the message of RBAC until the rule is removed", async () => {
    await using server = await startApiServer({ tls: false });
    const elsewhere = CONFIG_MAPS.replace("default", "kube-system");
    const fault = server.faults.add({ verb: ["list", "watch"], namespace: "default", forbid: true });
    const { status, body } = await apiRequest<{ message: string; reason: string; details: object }>(
      server,
      `GET ${CONFIG_MAPS}`,
    );
    assert.equal([status, body.reason, body.details], [403, "Forbidden", { kind: "configmaps" }]);
    assert.is(
      body.message,
      'configmaps is forbidden: User "admin" cannot list resource "configmaps" in API group "" in the namespace "default"',
    );
    assert.is((await apiRequest(server, `GET ${CONFIG_MAPS}?watch=true`)).status, 403);
    assert.is((await apiRequest(server, `GET ${elsewhere}`)).status, 200);
    assert.is((await apiRequest(server, `GET /api/v1/configmaps`)).status, 200);
    assert.is((await apiRequest(server, `POST ${CONFIG_MAPS}`, { body: configMap("a") })).status, 201);
    assert.is(fault.hits, 2);
    fault.remove();
    assert.is((await apiRequest(server, `GET ${CONFIG_MAPS}`)).status, 200);
  });

  test("rejects a replaced token with 401 and keeps open watches running", async () => {
    await using server = await startApiServer({ tls: false });
    using watch = await openWatch(server, `${CONFIG_MAPS}?watch=true`);
    server.faults.replaceToken("fresh");
    assert.is((await apiRequest(server, `GET ${CONFIG_MAPS}`)).status, 401);
    const fresh = { ...server, token: "fresh" };
    assert.is((await apiRequest(fresh, `POST ${CONFIG_MAPS}`, { body: configMap("a") })).status, 201);
    let event = await watch.next();
    while (event?.object.metadata.name !== "a") event = await watch.next();
    server.faults.clear();
    assert.equal(
      [(await apiRequest(server, `GET ${CONFIG_MAPS}`)).status, (await apiRequest(fresh, `GET ${CONFIG_MAPS}`)).status],
      [200, 401],
    );
  });

  test("holds watch events and delivers all of them when released", async () => {
    await using server = await startApiServer({ tls: false });
    const { resourceVersion } = (await apiRequest(server, `GET ${CONFIG_MAPS}`)).body.metadata;
    const path = `${CONFIG_MAPS}?watch=true&resourceVersion=${resourceVersion}`;
    using open = await openWatch(server, path);
    const held = server.faults.holdWatches({ path: "/configmaps" });
    using late = await openWatch(server, path);
    for (const name of ["a", "b"]) await apiRequest(server, `POST ${CONFIG_MAPS}`, { body: configMap(name) });
    const first = open.next();
    const silent = Symbol("silent");
    const pause = new Promise((resolve) => setTimeout(resolve, 30, silent));
    assert.is(await Promise.race([first, pause]), silent);
    held.release();
    const names = [await first, await open.next(), await late.next(), await late.next()];
    assert.equal(
      names.map((event) => event?.object.metadata.name),
      ["a", "b", "a", "b"],
    );
  });

  test("expires an open watch with an ERROR event of 410", async () => {
    await using server = await startApiServer({ tls: false });
    const { resourceVersion } = (await apiRequest(server, `GET ${CONFIG_MAPS}`)).body.metadata;
    using watch = await openWatch(server, `${CONFIG_MAPS}?watch=true&resourceVersion=${resourceVersion}`);
    assert.is(server.faults.expireWatches({ path: "/configmaps" }), 1);
    const event = await watch.next();
    assert.equal([event?.type, event?.object.code, event?.object.reason], ["ERROR", 410, "Expired"]);
    assert.is(await watch.next(), undefined);
  });

  test("restarts the server with broken connections, the same port, and the same objects", async () => {
    await using server = await startApiServer({ tls: false });
    await apiRequest(server, `POST ${CONFIG_MAPS}`, { body: configMap("a") });
    using watch = await openWatch(server, `${CONFIG_MAPS}?watch=true`);
    await watch.next();
    const lost = isBroken(watch.next());
    await server.faults.restart({ downMs: 20 });
    assert.ok(await lost);
    assert.is((await apiRequest(server, `GET ${CONFIG_MAPS}/a`)).status, 200);
  });
});
