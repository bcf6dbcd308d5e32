// What a server says of itself; the same laws on the embedded server and, with TEST_API_SERVER=real, on kube-apiserver.
import { createPublicKey, verify, type JsonWebKey } from "node:crypto";
import { join } from "node:path";
import { waitFor } from "#apiserver/wait-for.js";
import { apiRequest, apiRequestOrThrow } from "../../support/api/api-request.js";
import { isRealApiServer, startTestApiServer } from "../../support/api/api-server.js";
import { checkGolden } from "../../support/projects/golden-file.js";
import { repositoryRoot } from "../../support/repository.js";
import { assert, shared, suite } from "../../support/suite.js";

const DESCRIBED = "fixtures/conformance/open-api/contraptions";
const server = shared(() => startTestApiServer({ crds: ["test/conformance/definitions.yaml", `${DESCRIBED}.yaml`] }));
const get = async <T>(path: string, headers: Record<string, string> = {}) =>
  apiRequest<T>(await server(), `GET ${path}`, { headers });

suite("API server paths", (test) => {
  test("healthz, livez and readyz list their checks and exclude the given ones", async () => {
    for (const kind of ["healthz", "livez", "readyz"]) {
      assert.equal([(await get(`/${kind}`)).text, (await get(`/${kind}/ping`)).text], ["ok", "ok"]);
      const lines = (await get(`/${kind}?verbose&exclude=etcd`)).text.split("\n");
      for (const line of ["[+]ping ok", "[+]log ok", "[+]etcd excluded: ok", `${kind} check passed`])
        assert.ok(lines.includes(line), `${kind}: ${line}`);
      assert.is((await get(`/${kind}/odd`)).status, 404);
    }
  });

  test("/ lists the served paths", async () => {
    const { paths } = (await get<{ paths: string[] }>("/")).body;
    const expected = ["/.well-known/openid-configuration", "/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1"];
    for (const path of [...expected, "/healthz/ping", "/metrics", "/openapi/v2", "/openid/v1/jwks", "/readyz/etcd"])
      assert.ok(paths.includes(path), path);
    assert.equal(paths, [...paths].sort());
  });

  test("openid-configuration and jwks verify a ServiceAccount token", async () => {
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

  test("metrics count the objects of each resource", async () => {
    const { headers, text } = await get("/metrics");
    assert.ok(headers["content-type"]?.startsWith("text/plain; version=0.0.4"));
    // A real server counts once a minute.
    const counted = isRealApiServer
      ? /^process_/m
      : /^apiserver_resource_objects\{group="",resource="namespaces"\} [1-9]/m;
    assert.match(text, counted);
    assert.match(text, /^process_start_time_seconds \d/m);
  });

  test("metrics count requests by verb, resource, scope and status, and watches when they end", async () => {
    const to = await server();
    const maps = "/api/v1/namespaces/metrics/podtemplates";
    const template = { metadata: { name: "counted" }, template: { spec: { containers: [{ name: "a", image: "b" }] } } };
    const applied = { apiVersion: "v1", kind: "PodTemplate", ...template };
    const headers = { "content-type": "application/apply-patch+yaml" };
    await apiRequestOrThrow(to, "POST /api/v1/namespaces", { body: { metadata: { name: "metrics" } } });
    const before = await countsOf("podtemplates");
    await apiRequestOrThrow(to, `POST ${maps}`, { body: template });
    await apiRequest(to, `POST ${maps}?dryRun=All`, { body: template });
    await apiRequestOrThrow(to, `PATCH ${maps}/counted?fieldManager=a&force=true`, { headers, body: applied });
    await apiRequestOrThrow(to, "GET /api/v1/podtemplates");
    await apiRequestOrThrow(to, `GET ${maps}?watch=true&timeoutSeconds=1`);
    await apiRequestOrThrow(to, `DELETE ${maps}/counted`);
    await apiRequestOrThrow(to, `DELETE ${maps}`);
    const expected = [
      ["200", "", "cluster", "LIST"],
      ["200", "", "namespace", "DELETE"],
      ["200", "", "namespace", "WATCH"],
      ["200", "", "resource", "APPLY"],
      ["200", "", "resource", "DELETE"],
      ["201", "", "resource", "POST"],
      ["409", "All", "resource", "POST"],
    ];
    // An answer is counted a moment after it was given.
    const counted = async () => subtract(await countsOf("podtemplates"), before);
    await waitFor("all are counted", async () => (await counted()).length === expected.length);
    assert.equal(
      await counted(),
      expected.map((labels) => `${labels.join()} 1`),
    );
  });

  test("openapi/v2 describes built-in kinds and CRDs", async () => {
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

  test("openapi/v3 describes the kind of a CRD, its list and operations", async () => {
    const path = "apis/described.example.com/v1beta1";
    // A real server publishes a definition a moment after it serves its kind.
    const isListed = async () => (await get("/openapi/v3")).text.includes(`"${path}"`);
    await waitFor("the document is published", isListed);
    type Document = { components: { schemas: Record<string, object> } };
    const { components, ...document } = (await get<Document>(`/openapi/v3/${path}`)).body;
    const described = Object.entries(components.schemas).filter(([name]) => name.startsWith("com.example.described."));
    const shown = {
      ...(withoutDescriptions(document) as object),
      schemas: Object.fromEntries(described),
      others: Object.keys(components.schemas).sort(),
    };
    checkGolden(join(repositoryRoot, `${DESCRIBED}.json`), `${JSON.stringify(sorted(shown), null, 1)}\n`);
  });
});

/** Reads how many requests for a resource were counted, by `code,dry_run,scope,verb`. */
async function countsOf(resource: string): Promise<Map<string, number>> {
  const { text } = await get("/metrics");
  const lines = text.split("\n").filter((line) => /^apiserver_request_total\{/.test(line));
  const samples = lines.filter((line) => line.includes(`,resource="${resource}",`));
  const labelOf = (line: string, name: string) => new RegExp(`[{,]${name}="([^"]*)"`).exec(line)?.[1] ?? "";
  return new Map(
    samples.map((line) => [
      ["code", "dry_run", "scope", "verb"].map((name) => labelOf(line, name)).join(),
      Number(line.slice(line.lastIndexOf(" "))),
    ]),
  );
}

function subtract(counts: ReadonlyMap<string, number>, before: ReadonlyMap<string, number>): string[] {
  const more = [...counts].map(([labels, count]) => [labels, count - (before.get(labels) ?? 0)] as const);
  return more
    .filter(([, count]) => count !== 0)
    .map(([labels, count]) => `${labels} ${count}`)
    .sort();
}

/** The embedded server does not describe the parameters of queries. */
function withoutDescriptions(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutDescriptions);
  if (typeof value !== "object" || value === null) return value;
  const { description, ...rest } = value as Record<string, unknown>;
  const kept = rest["in"] === "query" || description === undefined ? rest : { description, ...rest };
  return Object.fromEntries(Object.entries(kept).map(([key, member]) => [key, withoutDescriptions(member)]));
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, member]) => [key, sorted(member)]));
}

type Definitions = Record<
  string,
  { properties: Record<string, { $ref?: string }>; "x-kubernetes-group-version-kind"?: { kind: string }[] } | undefined
>;
