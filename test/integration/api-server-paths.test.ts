// What a server says of itself; the same laws on the embedded server and, with TEST_API_SERVER=real, on kube-apiserver.
import { createPublicKey, verify, type JsonWebKey } from "node:crypto";
import { apiRequest, apiRequestOrThrow } from "../support/api-request.js";
import { isRealApiServer, startTestApiServer } from "../support/api-server.js";
import { assert, shared, suite } from "../support/suite.js";

const server = shared(() => startTestApiServer({ crds: ["test/conformance/definitions.yaml"] }));
const get = async <T>(path: string, headers: Record<string, string> = {}) =>
  apiRequest<T>(await server(), `GET ${path}`, { headers });

suite("paths of the API server", (test) => {
  test("its health is told as a whole, by each check, and without those that are excluded", async () => {
    for (const kind of ["healthz", "livez", "readyz"]) {
      assert.equal([(await get(`/${kind}`)).text, (await get(`/${kind}/ping`)).text], ["ok", "ok"]);
      const lines = (await get(`/${kind}?verbose&exclude=etcd`)).text.split("\n");
      for (const line of ["[+]ping ok", "[+]log ok", "[+]etcd excluded: ok", `${kind} check passed`])
        assert.ok(lines.includes(line), `${kind}: ${line}`);
      assert.is((await get(`/${kind}/odd`)).status, 404);
    }
  });

  test("its root lists the paths that are served", async () => {
    const { paths } = (await get<{ paths: string[] }>("/")).body;
    const expected = ["/.well-known/openid-configuration", "/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1"];
    for (const path of [...expected, "/healthz/ping", "/metrics", "/openapi/v2", "/openid/v1/jwks", "/readyz/etcd"])
      assert.ok(paths.includes(path), path);
    assert.equal(paths, [...paths].sort());
  });

  test("whoever is given the token of a service account can verify it", async () => {
    const to = await server();
    const accounts = "/api/v1/namespaces/default/serviceaccounts";
    await apiRequestOrThrow(to, `POST ${accounts}`, { body: { metadata: { name: "verified" } } });
    const { status } = await apiRequestOrThrow(to, `POST ${accounts}/verified/token`, { body: {} });
    const { token } = status as { token: string };
    const [head = "", claims = "", signature = ""] = token.split(".");
    const configuration = await get<{ issuer: string; id_token_signing_alg_values_supported: string[] }>(
      "/.well-known/openid-configuration",
    );
    const { issuer, id_token_signing_alg_values_supported: algorithms } = configuration.body;
    const read = (part: string) => JSON.parse(Buffer.from(part, "base64url").toString()) as Record<string, string>;
    assert.is(read(claims)["iss"], issuer);
    assert.equal(algorithms, [read(head)["alg"]]);
    const jwks = await get("/openid/v1/jwks");
    assert.is(jwks.headers["content-type"], "application/jwk-set+json");
    const { keys } = JSON.parse(jwks.text) as { keys: (JsonWebKey & { kid: string })[] };
    const key = keys.find(({ kid }) => kid === read(head)["kid"]);
    assert.ok(key);
    const publicKey = createPublicKey({ key: key as JsonWebKey, format: "jwk" });
    const given = { key: publicKey, dsaEncoding: "ieee-p1363" as const };
    assert.ok(verify("sha256", Buffer.from(`${head}.${claims}`), given, Buffer.from(signature, "base64url")));
  });

  test("its metrics count the objects of each resource", async () => {
    const { headers, text } = await get("/metrics");
    assert.ok(headers["content-type"]?.startsWith("text/plain; version=0.0.4"));
    // A real server counts once a minute.
    const counted = isRealApiServer
      ? /^process_/m
      : /^apiserver_resource_objects\{group="",resource="namespaces"\} [1-9]/m;
    assert.match(text, counted);
    assert.match(text, /^process_start_time_seconds \d/m);
  });

  test("its OpenAPI v2 describes the built-in kinds and those of definitions", async () => {
    const { status, body } = await get<{ swagger: string; definitions: Definitions; paths: Record<string, unknown> }>(
      "/openapi/v2",
    );
    assert.equal([status, body.swagger], [200, "2.0"]);
    const deployment = body.definitions["io.k8s.api.apps.v1.Deployment"];
    assert.equal(deployment?.["x-kubernetes-group-version-kind"], [
      { group: "apps", version: "v1", kind: "Deployment" },
    ]);
    assert.is(deployment?.properties["spec"]?.$ref, "#/definitions/io.k8s.api.apps.v1.DeploymentSpec");
    const widget = Object.values(body.definitions).find((one) =>
      one?.["x-kubernetes-group-version-kind"]?.some(({ kind }) => kind === "Widget"),
    );
    assert.ok(widget?.properties["spec"]);
    assert.ok(body.paths["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]);
  });
});

type Definitions = Record<
  string,
  { properties: Record<string, { $ref?: string }>; "x-kubernetes-group-version-kind"?: { kind: string }[] } | undefined
>;
