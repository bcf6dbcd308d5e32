import { startApiServer } from "#apiserver/index.js";
import { execFile, spawn } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { parse } from "yaml";
import { apiRequest } from "../../support/api/api-request.js";
import { repositoryRoot } from "../../support/repository.js";
import { assert, suite } from "../../support/suite.js";
import { CONFIG_MAPS, configMap } from "../../support/api/api-fixtures.js";

const COMMAND = join(repositoryRoot, "apiserver/bin/apiserver.js");

/** Reads how a kubeconfig reaches the server. */
function accessIn(text: string) {
  const kubeconfig = parse(text) as {
    clusters: { cluster: { server: string; "certificate-authority-data": string } }[];
    users: { user: { token: string } }[];
  };
  const cluster = kubeconfig.clusters[0]?.cluster;
  return {
    url: cluster?.server ?? "",
    ca: Buffer.from(cluster?.["certificate-authority-data"] ?? "", "base64").toString(),
    token: kubeconfig.users[0]?.user.token ?? "",
  };
}

suite("API server", (test) => {
  test("serves HTTPS with a certificate of the CA in the kubeconfig", async () => {
    await using server = await startApiServer();
    assert.match(server.url, /^https:\/\/127\.0\.0\.1:\d+$/);
    assert.is((await apiRequest(accessIn(server.kubeconfig), "GET /api/v1/namespaces/default")).status, 200);
  });

  test("serves only health and version to anonymous users, and returns 401 for an invalid token", async () => {
    await using server = await startApiServer({ tls: false });
    const stranger = { url: server.url, token: "other" };
    const anonymous = { headers: { authorization: "" } };
    const reasonOf = async (options: object) =>
      (await apiRequest<{ reason: string }>(stranger, "GET /api/v1/namespaces", options)).body.reason;
    assert.equal([await reasonOf({}), await reasonOf(anonymous)], ["Unauthorized", "Forbidden"]);
    for (const path of ["/healthz", "/livez", "/readyz", "/version"]) {
      assert.is((await apiRequest(stranger, `GET ${path}`)).status, 401);
      assert.is((await apiRequest(stranger, `GET ${path}`, anonymous)).status, 200);
    }
  });

  test("returns 404 or 405 for unknown paths and methods, as Kubernetes does", async () => {
    await using server = await startApiServer({ tls: false });
    const cases: [request: string, status: number, text: string][] = [
      ["GET /odd", 404, "404 page not found\n"],
      ["GET /apis/example.com/v1/widgets", 404, "404 page not found\n"],
      ["GET /api/v1/odds", 404, "the server could not find the requested resource"],
      ["GET /api/v1/namespaces/default/nodes", 404, "the server could not find the requested resource"],
      ["GET /api/v1/namespaces/default/configmaps/a/odd", 404, "the server could not find the requested resource"],
      [
        "PUT /api/v1/namespaces/default/configmaps",
        405,
        "the server does not allow this method on the requested resource",
      ],
    ];
    for (const [request, status, text] of cases) {
      const answer = await apiRequest(server, request);
      assert.is(answer.status, status, request);
      assert.ok(answer.text.includes(text), `${request}: ${answer.text}`);
    }
  });

  test("returns 400, 415, or 413 for an unreadable body, and accepts YAML", async () => {
    await using server = await startApiServer({ tls: false });
    const post = (body: string, contentType?: string) =>
      apiRequest(server, `POST ${CONFIG_MAPS}`, { body, ...(contentType === undefined ? {} : { contentType }) });
    assert.is((await post("{")).status, 400);
    assert.is((await post("{}", "text/xml")).status, 415);
    assert.is((await post(JSON.stringify(configMap("a", { k: "x".repeat(3 * 1024 * 1024) })))).status, 413);
    const yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata: { name: yaml }\ndata: { k: v }\n";
    assert.is((await post(yaml, "application/yaml")).status, 201);
  });

  test("records requests with the verbs of Kubernetes", async () => {
    await using server = await startApiServer({ tls: false });
    await apiRequest(server, `GET ${CONFIG_MAPS}?limit=1`);
    await apiRequest(server, `DELETE ${CONFIG_MAPS}/none`);
    const seen = server.requests.map(({ verb, path, query, status }) => [verb, path, query, status]);
    assert.equal(seen, [
      ["list", CONFIG_MAPS, "limit=1", 200],
      ["delete", `${CONFIG_MAPS}/none`, "", 404],
    ]);
  });

  test("records whether a write changed nothing", async () => {
    await using server = await startApiServer({ tls: false });
    const merge = "application/merge-patch+json";
    await apiRequest(server, `POST ${CONFIG_MAPS}`, { body: configMap("a", { k: "v" }) });
    for (const value of ["v", "w", "w"])
      await apiRequest(server, `PATCH ${CONFIG_MAPS}/a`, { body: { data: { k: value } }, contentType: merge });
    const { body } = await apiRequest(server, `GET ${CONFIG_MAPS}/a`);
    await apiRequest(server, `PUT ${CONFIG_MAPS}/a`, { body });
    assert.equal(
      server.requests.map(({ verb, changedNothing }) => `${verb} ${changedNothing}`),
      ["create false", "patch true", "patch false", "patch true", "get false", "update true"],
    );
  });

  test("allows the administrator everything in a SelfSubjectAccessReview", async () => {
    await using server = await startApiServer({ tls: false });
    const path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    const typed = { kind: "SelfSubjectAccessReview", apiVersion: "authorization.k8s.io/v1" };
    for (const spec of [
      { nonResourceAttributes: { verb: "get", path: "/x" } },
      { nonResourceAttributes: { verb: "odd", path: "*" } },
      { resourceAttributes: { verb: "*", group: "*", resource: "*" } },
      { resourceAttributes: { verb: "delete", resource: "secrets", namespace: "kube-system", name: "a" } },
      { resourceAttributes: { verb: "impersonate", resource: "users", name: "jane" } },
      { resourceAttributes: { verb: "get", group: "unknown.example.com", resource: "odds", subresource: "odd" } },
    ]) {
      const review = await apiRequest(server, `POST ${path}`, { body: { ...typed, spec } });
      assert.equal([review.status, review.body.status], [201, { allowed: true }], JSON.stringify(spec));
    }
  });

  test("prints one line when ready and exits with 0 on SIGTERM", async () => {
    const folder = await mkdtemp(join(tmpdir(), "apiserver-test-"));
    try {
      const kubeconfig = join(folder, "kubeconfig");
      const command = spawn(process.execPath, [COMMAND, "--port", "0", "--kubeconfig", kubeconfig]);
      let printed = "";
      const ready = new Promise<string>((resolve) => {
        command.stdout.on("data", (chunk: Buffer) => {
          printed += chunk.toString();
          if (printed.includes("\n")) resolve(printed);
        });
      });
      const url = /^ready (https:\/\/127\.0\.0\.1:\d+)\n$/.exec(await ready)?.[1] ?? "";
      const access = accessIn(await readFile(kubeconfig, "utf8"));
      assert.is(access.url, url);
      assert.is((await apiRequest(access, `GET ${CONFIG_MAPS}`)).status, 200);
      const ended = new Promise<number | null>((resolve) => command.once("exit", resolve));
      command.kill("SIGTERM");
      assert.is(await ended, 0);
      assert.match(printed, /^ready [^\n]*\n$/);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });

  test("exits with 1 for an unknown command-line option", async () => {
    const run = promisify(execFile)(process.execPath, [COMMAND, "--odd"]);
    const error = await run.then(
      () => undefined,
      (failure: { code: number; stderr: string }) => failure,
    );
    assert.is(error?.code, 1);
    assert.match(error?.stderr ?? "", "Unknown argument: odd");
  });
});
