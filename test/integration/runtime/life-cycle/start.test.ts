// How an operator starts, or says why it cannot.
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { startApiServer } from "#apiserver/index.js";
import { sleep } from "#runtime/base/wait.js";
import { waitFor } from "#apiserver/wait-for.js";
import { requesterOf, ApiClient } from "#runtime/client/api-client.js";
import { createInClusterConnection, loadConnection } from "#runtime/client/load-connection.js";
import { type OperatorOptions, createOperator } from "#runtime/api/operator.js";
import { failureOf } from "../../../support/runtime/failures.js";
import { repositoryRoot } from "../../../support/repository.js";
import { assert, suite } from "../../../support/suite.js";
import {
  configMapOf,
  createPage,
  createPageOperator,
  Page,
  pageCrd,
  startPageServer,
  textOf,
  untilText,
} from "../page-operator.js";

const NOWHERE = "http://127.0.0.1:1";
const silent = { debug() {}, info() {}, warn() {}, error() {} };

async function temporaryFolder() {
  const folder = await mkdtemp(join(tmpdir(), "gen-operator-start-"));
  return { folder, [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }) };
}

suite("operator start", (test) => {
  test("retries an unreachable server until startTimeoutMs, and names URL and reason", async () => {
    await using server = await startPageServer();
    await using page = createPageOperator(server, {
      connection: { url: NOWHERE },
      operator: { startTimeoutMs: 1_500 },
    });
    const message = await failureOf(() => page.operator.start());
    assert.match(message, "the operator could not start within 1500 ms: ");
    assert.match(message, NOWHERE);
    assert.match(message, "ECONNREFUSED");
    assert.ok(page.logs.some((line) => line.startsWith("warn cannot watch Page.v1.example.com at http://127.0.0.1:1")));
    assert.ok(page.logs.filter((line) => line.includes("trying again")).length >= 2, "it kept trying");
  });

  test("accepts large timeouts, and rejects invalid options by name", async () => {
    await using server = await startPageServer();
    for (const startTimeoutMs of [2 ** 31, 20_000.5, Infinity]) {
      await using page = createPageOperator(server, { operator: { startTimeoutMs } });
      await page.operator.start();
    }
    const refused: [options: Partial<OperatorOptions>, message: string][] = [
      [{ startTimeoutMs: -1 }, "the operator has -1 for startTimeoutMs; it needs 0 or more"],
      [{ stopTimeoutMs: NaN }, "the operator has NaN for stopTimeoutMs; it needs 0 or more"],
      [
        { connection: { url: NOWHERE }, requestTimeoutMs: NaN },
        "the client has NaN for requestTimeoutMs; it needs 0 or more",
      ],
      [
        { connection: { url: NOWHERE }, maxConnections: -1 },
        "the client has -1 for maxConnections; it needs 1 or more",
      ],
      [{ connection: {} }, "a connection needs the URL of its server, and has undefined"],
      [{ connection: { url: "nonsense" } }, 'a connection needs the URL of its server, and has "nonsense"'],
      [
        { connection: { url: NOWHERE, token: 5 as never } },
        "the token of a connection has to be a text, and is a number",
      ],
    ];
    for (const [options, message] of refused)
      assert.throws(() => createOperator({ controllers: [], ...options }), message);
  });

  test("waits for a server that becomes reachable later", async () => {
    await using first = await startApiServer({ tls: false });
    const { url, token } = first;
    await first.close();
    await using page = createPageOperator(first);
    const started = page.operator.start();
    await waitFor("the failure is said", () => page.logs.some((line) => line.includes("ECONNREFUSED")));
    await using second = await startApiServer({ tls: false, port: Number(new URL(url).port), token, crds: [pageCrd] });
    await started;
    await createPage(page);
    await untilText(page, "first");
    assert.is(second.url, url);
  });

  test("waits for a missing CRD, and names the remedy", async () => {
    await using server = await startPageServer({ withoutCrd: true });
    await using page = createPageOperator(server);
    const started = page.operator.start();
    const line = await waitFor("a warning", () => page.logs.find((each) => each.startsWith("warn")));
    assert.match(line, "the CustomResourceDefinition pages.example.com is not installed");
    assert.match(line, "kubectl apply");
    const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    const requester = requesterOf(page.operator.client);
    await requester.send({ method: "POST", path, body: JSON.stringify(pageCrd) });
    await started;
    await createPage(page);
    await untilText(page, "first");
  });

  test("fails after startTimeoutMs if the CRD is not installed", async () => {
    await using server = await startPageServer({ withoutCrd: true });
    await using page = createPageOperator(server, { operator: { startTimeoutMs: 500 } });
    const message = await failureOf(() => page.operator.start());
    assert.match(message, "the CustomResourceDefinition pages.example.com is not installed");
    assert.not.match(message, "trying again");
  });

  test("is rejected if the operator is stopped during the start, and sends no more requests", async () => {
    await using server = await startPageServer();
    const unreachable = server.faults.add({ disconnect: true });
    await using page = createPageOperator(server);
    const started = failureOf(() => page.operator.start());
    await waitFor("it tries again", () => unreachable.hits > 1);
    assert.is(await page.operator.stop(), true);
    assert.match(await started, "the operator was stopped");
    const { hits } = unreachable;
    await sleep(2_000);
    assert.is(unreachable.hits, hits);
    assert.is(page.operator.health().status, "stopped");
  });

  test("reports a kubeconfig that is missing, invalid or without a context", async () => {
    await using temporary = await temporaryFolder();
    const write = async (name: string, text: string) => {
      const file = join(temporary.folder, name);
      await writeFile(file, text);
      return file;
    };
    const context = "contexts: [{ name: c, context: { cluster: x, user: u } }]\n";
    const cases: [string, RegExp][] = [
      [join(temporary.folder, "none"), /cannot read the kubeconfig file .*none: ENOENT/],
      [await write("yaml", "a: [1"), /kubeconfig .*yaml is not valid YAML: /],
      [await write("empty", ""), /kubeconfig .*empty is (empty|not valid YAML: .*empty)/],
      [await write("contextless", "clusters: []"), /kubeconfig .*contextless has no current-context; choose one with/],
      [await write("other", `current-context: d\n${context}`), /kubeconfig .*other has no context "d"/],
      [await write("cluster", `current-context: c\n${context}`), /context "c" names cluster "x", which has no server/],
      [
        await write("url", `current-context: c\n${context}clusters: [{ name: x, cluster: { server: nonsense } }]`),
        /kubeconfig .*url, cluster "x": the server, "nonsense", is no URL/,
      ],
      [
        await write(
          "ca",
          `current-context: c\n${context}clusters: [{ name: x, cluster: { server: "https://a", certificate-authority: empty } }]\nusers: [{ name: u, user: {} }]`,
        ),
        /\/empty is empty$/,
      ],
      [
        await write(
          "token",
          `current-context: c\n${context}clusters: [{ name: x, cluster: { server: "https://a" } }]\nusers: [{ name: u, user: { tokenFile: empty } }]`,
        ),
        /\/empty is empty$/,
      ],
    ];
    for (const [kubeconfig, expected] of cases)
      assert.match(await failureOf(() => loadConnection({ kubeconfig })), expected);
    const env = { KUBECONFIG: join(temporary.folder, "none") };
    assert.match(await failureOf(() => loadConnection({ env })), /KUBECONFIG names .*none, which does not exist/);
  });

  test("supports an API server with a URL path", async () => {
    await using temporary = await temporaryFolder();
    const paths: string[] = [];
    const server = createServer((request, response) => {
      paths.push(request.url ?? "");
      response.end('{"metadata":{"name":"one"}}');
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const kubeconfig = join(temporary.folder, "config");
    const contexts = [{ name: "c", context: { cluster: "x", user: "u" } }];
    const clusters = [{ name: "x", cluster: { server: `${url}/k8s/clusters/c-1/` } }];
    const users = [{ name: "u", user: { token: "t" } }];
    await writeFile(kubeconfig, JSON.stringify({ "current-context": "c", contexts, clusters, users }));
    const client = new ApiClient(await loadConnection({ kubeconfig }));
    await client.get(Page, { name: "one", namespace: "default" });
    assert.equal(paths, ["/k8s/clusters/c-1/apis/example.com/v1/namespaces/default/pages/one"]);
    await client.close();
    server.close();
  });

  test("fails immediately if the kubeconfig does not exist", async () => {
    await using temporary = await temporaryFolder();
    const kubeconfig = join(temporary.folder, "none");
    const workflow = { primary: Page.definition, dependents: [configMapOf("text")] };
    await using operator = createOperator({ controllers: [{ name: "page", workflow }], kubeconfig, logger: silent });
    assert.match(await failureOf(() => operator.start()), `cannot read the kubeconfig file ${kubeconfig}: ENOENT`);
    const ofEnvironment = loadConnection({ env: { KUBECONFIG: kubeconfig } });
    const error = await ofEnvironment.then(
      () => undefined,
      (reason: unknown) => reason as Error,
    );
    assert.equal(
      [error?.name, error?.message],
      ["TerminalError", `KUBECONFIG names ${kubeconfig}, which does not exist`],
    );
  });

  for (const [place, env] of Object.entries({ "a pod": { KUBERNETES_SERVICE_HOST: "10.0.0.1" }, "a machine": {} }))
    test(`fails immediately without any connection, in ${place}`, async () => {
      await using temporary = await temporaryFolder();
      const runtime = pathToFileURL(join(repositoryRoot, "runtime/dist/index.js")).href;
      const script = `import { createOperator } from "${runtime}";
        const definition = { apiVersion: "v1", group: "", version: "v1", kind: "Secret", plural: "secrets", scope: "Namespaced", schema: {} };
        const workflow = { primary: definition, dependents: [] };
        await createOperator({ controllers: [{ name: "one", workflow }] }).start().catch(({ message }) => console.log(message));`;
      const { stdout } = spawnSync(process.execPath, ["--input-type=module", "--eval", script], {
        encoding: "utf8",
        env: { ...env, HOME: temporary.folder, LOG_LEVEL: "error" },
        timeout: 20_000,
      });
      assert.match(stdout, "no cluster to connect to: ");
    });

  test("fails immediately if a token or user contains control characters, and names the field", async () => {
    await using temporary = await temporaryFolder();
    const kubeconfig = join(temporary.folder, "config");
    const workflow = { primary: Page.definition, dependents: [configMapOf("text")] };
    const options = { controllers: [{ name: "page", workflow }], logger: silent };
    const config = {
      "current-context": "c",
      contexts: [{ name: "c", context: { cluster: "x", user: "u" } }],
      clusters: [{ name: "x", cluster: { server: NOWHERE } }],
    };
    for (const user of [{ token: "a\nb" }, { token: "a", as: "b\u0000" }]) {
      await writeFile(kubeconfig, JSON.stringify({ ...config, users: [{ name: "u", user }] }));
      await using operator = createOperator({ ...options, kubeconfig });
      assert.match(await failureOf(() => operator.start()), /user "u": (token|as) has a line break/);
    }
    const stated = [{ token: "a\r\nb" }, { token: "a", impersonation: { user: "b", groups: ["c\nd"] } }];
    for (const connection of stated)
      assert.match(
        await failureOf(async () => createOperator({ ...options, connection: { url: NOWHERE, ...connection } })),
        "of the connection has a line break",
      );
  });

  test("reports a missing token or an empty file of the service account", async () => {
    await using temporary = await temporaryFolder();
    const env = { KUBERNETES_SERVICE_HOST: "10.0.0.1", HOME: temporary.folder };
    assert.match(
      await failureOf(() => loadConnection({ env })),
      /this is a pod, but its service account has no token: .*serviceaccount\/token does not exist; set automountServiceAccountToken: true/,
    );
    const files = { token: "t", namespace: "home", "ca.crt": "pem" };
    for (const empty of ["namespace", "ca.crt"]) {
      for (const [name, text] of Object.entries(files))
        await writeFile(join(temporary.folder, name), name === empty ? "" : text);
      const failure = await failureOf(async () => createInClusterConnection(env, temporary.folder));
      assert.is(failure, `${join(temporary.folder, empty)} is empty`);
    }
  });

  test("waits with a warning for a kubeconfig that is still empty", async () => {
    await using server = await startPageServer();
    await using temporary = await temporaryFolder();
    const kubeconfig = join(temporary.folder, "config");
    await writeFile(kubeconfig, "");
    const logs: string[] = [];
    const logger = { ...silent, warn: (_: object, message: string) => void logs.push(message) };
    const workflow = { primary: Page.definition, dependents: [configMapOf("text")] };
    await using operator = createOperator({ controllers: [{ name: "page", workflow }], kubeconfig, logger });
    const started = operator.start();
    await waitFor("it says so", () => logs.some((line) => line.includes(kubeconfig) && line.includes("trying again")));
    await server.writeKubeconfig(kubeconfig);
    assert.is(operator.client, undefined, "there is none before a connection is found");
    const { client } = await started;
    assert.is(client.connection.server, server.url);
    assert.is(operator.client, client);
  });

  test("reads the token file again after a rejected token (401)", async () => {
    await using server = await startPageServer();
    await using temporary = await temporaryFolder();
    const tokenFile = join(temporary.folder, "token");
    await writeFile(tokenFile, "stale");
    const kubeconfig = join(temporary.folder, "config");
    const config = {
      "current-context": "c",
      contexts: [{ name: "c", context: { cluster: "x", user: "u" } }],
      clusters: [{ name: "x", cluster: { server: server.url } }],
      users: [{ name: "u", user: { tokenFile: "token" } }],
    };
    await writeFile(kubeconfig, JSON.stringify(config));
    await using page = createPageOperator(server, {
      operator: { connection: await loadConnection({ kubeconfig }) },
    });
    const started = page.operator.start();
    await waitFor("it is rejected", () => page.logs.some((line) => line.includes("rejects the credentials")));
    const line = page.logs.find((each) => each.includes("rejects the credentials"))!;
    assert.match(line, `kubeconfig ${kubeconfig}, context "c"`);
    await writeFile(tokenFile, `${server.token}\n`);
    await started;
    await createPage(page);
    await untilText(page, "first");
    await page.quiet();
    assert.is(await textOf(page), "first");
  });
});
