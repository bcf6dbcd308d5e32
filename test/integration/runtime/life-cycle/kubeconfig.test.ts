// What a client makes of kubeconfig files: who it is, and how it reaches its server.
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import { connect, type AddressInfo } from "node:net";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { delimiter, dirname, join } from "node:path";
import { startApiServer, type ApiServer } from "#apiserver/index.js";
import { createLogger } from "#runtime/base/logger.js";
import { requesterOf, ApiClient } from "#runtime/client/api-client.js";
import { createConnection, type Connection } from "#runtime/client/connection.js";
import {
  type LoadConnectionOptions,
  createInClusterConnection,
  findConnection,
  loadConnection,
} from "#runtime/client/load-connection.js";
import { failureOf } from "../../../support/runtime/failures.js";
import { assert, suite } from "../../../support/suite.js";
import { createTemporaryFolder } from "../../../support/temporary-folder.js";
import { ConfigMap } from "../page-operator.js";

const ONE = { name: "one", namespace: "default" };
const STATED = { contexts: [{ name: "c", context: { cluster: "x", user: "u" } }], "current-context": "c" };

/** Writes a kubeconfig of one context; JSON is YAML. */
async function writeConfig(file: string, cluster: object, user: object): Promise<string> {
  const clusters = [{ name: "x", cluster }];
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, JSON.stringify({ ...STATED, clusters, users: [{ name: "u", user }] }));
  return file;
}

/** A server that keeps the headers of every request. */
async function startRecorder() {
  const requests: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    requests.push(request);
    response.end('{"metadata":{"name":"one"}}');
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, requests, [Symbol.asyncDispose]: async () => void server.close() };
}

/** A proxy that opens tunnels, whatever the name of the host, to this machine. */
async function startProxy(status = 200) {
  const asked: { url: string | undefined; authorization: string | undefined }[] = [];
  const proxy = createServer().listen(0, "127.0.0.1");
  proxy.on("connect", (request, socket) => {
    asked.push({ url: request.url, authorization: request.headers["proxy-authorization"] });
    if (status !== 200) return socket.end(`HTTP/1.1 ${status} No\r\n\r\n`);
    const target = connect(Number(request.url!.split(":").at(-1)), "127.0.0.1", () => {
      socket.write("HTTP/1.1 200 OK\r\n\r\n");
      target.pipe(socket).pipe(target);
    });
    for (const each of [target, socket]) each.on("error", () => [target, socket].forEach((other) => other.destroy()));
  });
  await once(proxy, "listening");
  const { port } = proxy.address() as AddressInfo;
  return { url: `http://me:secret@127.0.0.1:${port}`, asked, [Symbol.asyncDispose]: async () => void proxy.close() };
}

function clientOf(connection: Connection) {
  const client = new ApiClient(connection);
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.close() });
}

const load = async (options: LoadConnectionOptions) => clientOf(await loadConnection(options));

suite("impersonation in a kubeconfig", (test) => {
  test("sends user, uid, groups and extra with each request", async () => {
    await using recorder = await startRecorder();
    await using folder = await createTemporaryFolder();
    const kubeconfig = await writeConfig(
      join(folder.path, "config"),
      { server: recorder.url },
      {
        token: "t",
        as: "jane",
        "as-uid": "7",
        "as-groups": ["dev", "ops"],
        "as-user-extra": { "acme.org/scopes": ["view", "edit"] },
      },
    );
    await using client = await load({ kubeconfig });
    await client.get(ConfigMap, ONE);
    await client.mergePatch(ConfigMap, ONE, {});
    assert.is(recorder.requests.length, 2);
    for (const { rawHeaders } of recorder.requests) {
      const sent = rawHeaders.flatMap((name, index) =>
        index % 2 === 0 && name.startsWith("impersonate") ? [`${name}: ${rawHeaders[index + 1]}`] : [],
      );
      assert.equal(sent, [
        "impersonate-user: jane",
        "impersonate-uid: 7",
        "impersonate-group: dev",
        "impersonate-group: ops",
        "impersonate-extra-acme.org%2Fscopes: view",
        "impersonate-extra-acme.org%2Fscopes: edit",
      ]);
    }
  });

  test("rejects as-groups without as", async () => {
    await using folder = await createTemporaryFolder();
    const user = { token: "t", "as-groups": ["system:masters"] };
    const kubeconfig = await writeConfig(join(folder.path, "config"), { server: "http://127.0.0.1:1" }, user);
    assert.match(
      await failureOf(() => loadConnection({ kubeconfig })),
      /config, user "u": as-groups needs the field as/,
    );
  });
});

suite("kubeconfig field", (test) => {
  const server = "http://127.0.0.1:1";
  const cases: [string, object, object, RegExp][] = [
    [
      "unknown field of a user",
      { server },
      { token: "t", "act-as": "x" },
      /config, user "u": the field act-as is not supported/,
    ],
    [
      "unknown field of a cluster",
      { server, "proxy-user": "x" },
      {},
      /config, cluster "x": the field proxy-user is not supported/,
    ],
    ["wrong type", { server }, { token: 7 }, /config, user "u": token has to be a text/],
    [
      "unsupported proxy scheme",
      { server, "proxy-url": "socks5://me:secret@proxy:1080" },
      {},
      /config, cluster "x": proxy-url has the scheme "socks5"; only proxies at http:\/\/ and https:\/\/ are supported/,
    ],
    [
      "interactive plugin",
      { server },
      { exec: { command: "login", interactiveMode: "Always" } },
      /the authentication plugin of .*config, context "c", login, is interactive \(interactiveMode: Always\)/,
    ],
    ["token with a line break", { server }, { token: "secret\nsecret" }, /config, user "u": token has a line break/],
    ["token with NUL", { server }, { token: "secret\u0000" }, /config, user "u": token has a line break, a NUL/],
    ["user with CR", { server }, { token: "t", as: "a\rb" }, /config, user "u": as has a line break/],
    [
      "group with CRLF",
      { server },
      { token: "t", as: "a", "as-groups": ["b", "c\r\nd: e"] },
      /user "u": as-groups has a line/,
    ],
    [
      "extra with a line break",
      { server },
      { token: "t", as: "a", "as-user-extra": { k: ["\n b", "a\nb"] } },
      /user "u": as-user-extra has/,
    ],
  ];
  for (const [title, cluster, user, expected] of cases)
    test(`is rejected with file, entry and field, without secrets: ${title}`, async () => {
      await using folder = await createTemporaryFolder();
      const kubeconfig = await writeConfig(join(folder.path, "config"), cluster, user);
      const failure = await failureOf(() => loadConnection({ kubeconfig }));
      assert.match(failure, expected);
      assert.not.match(failure, "secret");
    });

  test("is accepted if it is an extension, an empty string or null", async () => {
    await using folder = await createTemporaryFolder();
    const extensions = [{ name: "minikube", extension: { version: "1" } }];
    const cluster = { server, extensions, "disable-compression": true, "certificate-authority": "" };
    const kubeconfig = await writeConfig(join(folder.path, "config"), cluster, {
      token: "t",
      username: "",
      exec: null,
    });
    assert.is((await loadConnection({ kubeconfig })).server, server);
  });
});

suite("several kubeconfig files", (test) => {
  test("are merged: the first entry of a name wins, and paths are relative to their file", async () => {
    await using recorder = await startRecorder();
    await using folder = await createTemporaryFolder();
    const [first, second] = [join(folder.path, "a", "config"), join(folder.path, "b", "config")];
    await mkdir(dirname(first));
    const users = [{ name: "v", user: { token: "other" } }];
    await writeFile(first, JSON.stringify({ users, clusters: [{ name: "x", cluster: { server: recorder.url } }] }));
    await writeConfig(second, { server: "http://127.0.0.1:1" }, { tokenFile: "token" });
    await writeFile(join(folder.path, "b", "token"), "mine\n");
    const missing = join(folder.path, "missing");
    await using client = await load({ env: { KUBECONFIG: [missing, first, second].join(delimiter) } });
    await client.get(ConfigMap, ONE);
    assert.is(recorder.requests[0]?.headers.authorization, "Bearer mine");
    assert.match(client.connection.origin, `kubeconfig ${second}, context "c"`);
  });

  test("fail if the user of the context does not exist", async () => {
    await using folder = await createTemporaryFolder();
    const file = join(folder.path, "config");
    await writeFile(file, JSON.stringify({ ...STATED, clusters: [{ name: "x", cluster: { server: "http://x" } }] }));
    const failure = await failureOf(() => loadConnection({ kubeconfig: file }));
    assert.is(failure, `kubeconfig ${file}, context "c" names user "u", which does not exist`);
  });
});

suite("proxy", (test) => {
  test("of a kubeconfig tunnels requests and watches, even to loopback addresses", async () => {
    await using server = await startApiServer();
    await using proxy = await startProxy();
    await using folder = await createTemporaryFolder();
    const cluster = { server: server.url, "certificate-authority": "ca.crt", "proxy-url": proxy.url };
    const kubeconfig = await writeConfig(join(folder.path, "config"), cluster, { token: server.token });
    await writeFile(join(folder.path, "ca.crt"), server.ca!);
    await using client = await load({ kubeconfig, env: { NO_PROXY: "*" } });
    await client.create(ConfigMap, { metadata: ONE });
    for await (const { object } of client.watch(ConfigMap, { namespace: "default" })) {
      assert.is(object.metadata.name, "one");
      break;
    }
    const authorization = `Basic ${Buffer.from("me:secret").toString("base64")}`;
    assert.equal(proxy.asked, Array(2).fill({ url: new URL(server.url).host, authorization }));
  });

  test("of the environment is used for other hosts, unless NO_PROXY excludes them", async () => {
    await using server = await startApiServer();
    await using proxy = await startProxy();
    await using folder = await createTemporaryFolder();
    const { port } = new URL(server.url);
    const cluster = {
      server: `https://far.example:${port}`,
      "tls-server-name": "localhost",
      "certificate-authority-data": Buffer.from(server.ca!).toString("base64"),
    };
    const kubeconfig = await writeConfig(join(folder.path, "config"), cluster, { token: server.token });
    await using client = await load({ kubeconfig, env: { HTTPS_PROXY: proxy.url } });
    assert.is(await client.get(ConfigMap, ONE), undefined);
    assert.is(proxy.asked[0]?.url, `far.example:${port}`);
    assert.is(
      (await loadConnection({ kubeconfig, env: { https_proxy: proxy.url, NO_PROXY: ".example" } })).proxyUrl,
      undefined,
    );
  });

  test("that answers 407 is named in the error without its password", async () => {
    await using proxy = await startProxy(407);
    const { url } = proxy;
    await using client = clientOf(createConnection({ server: "https://far.example", proxyUrl: url }));
    const failure = await failureOf(() => requesterOf(client).transport.send({ method: "GET", path: "/" }));
    assert.match(failure, `got no answer through the proxy ${new URL(url).origin}: the proxy answered 407`);
    assert.not.match(failure, "secret");
  });
});

suite("exec plugin", (test) => {
  /** Writes a kubeconfig whose plugin is a program of Node that runs `source`. */
  async function writePlugin(folder: string, server: string, source: string, more: object = {}): Promise<string> {
    await writeFile(join(folder, "plugin.mjs"), source);
    const args = [join(folder, "plugin.mjs")];
    const exec = { apiVersion: "client.authentication.k8s.io/v1", command: process.execPath, args, ...more };
    return writeConfig(join(folder, "config"), { server }, { exec });
  }

  test("runs once for 3 concurrent requests and once after 401, and receives the cluster info", async () => {
    await using server = await startApiServer({ tls: false });
    await using folder = await createTemporaryFolder();
    const runs = join(folder.path, "runs");
    const source = `
      import { appendFileSync, readFileSync } from "node:fs";
      const { spec } = JSON.parse(process.env.KUBERNETES_EXEC_INFO);
      appendFileSync(process.env.RUNS, JSON.stringify(spec) + "\\n");
      const isFirst = readFileSync(process.env.RUNS, "utf8").trim().split("\\n").length === 1;
      const status = { token: isFirst ? "stale" : ${JSON.stringify(server.token)} };
      console.log(JSON.stringify({ kind: "ExecCredential", status }));
    `;
    const env = [{ name: "RUNS", value: runs }];
    const kubeconfig = await writePlugin(folder.path, server.url, source, { env, provideClusterInfo: true });
    await using client = await load({ kubeconfig });
    await Promise.all([1, 2, 3].map(() => client.get(ConfigMap, ONE)));
    const lines = (await readFile(runs, "utf8")).trim().split("\n");
    assert.equal(JSON.parse(lines[0]!), { interactive: false, cluster: { server: server.url } });
    assert.is(lines.length, 2, "once for the three, and once after their 401");
  });

  test("runs again once its token has expired (expirationTimestamp)", async () => {
    await using server = await startApiServer({ tls: false });
    await using folder = await createTemporaryFolder();
    const runs = join(folder.path, "runs");
    const source = `
      import { appendFileSync, readFileSync } from "node:fs";
      appendFileSync(process.env.RUNS, "x");
      const year = readFileSync(process.env.RUNS, "utf8") === "x" ? 2020 : 2999;
      const status = { token: ${JSON.stringify(server.token)}, expirationTimestamp: year + "-01-01T00:00:00Z" };
      console.log(JSON.stringify({ kind: "ExecCredential", status }));
    `;
    const kubeconfig = await writePlugin(folder.path, server.url, source, { env: [{ name: "RUNS", value: runs }] });
    await using client = await load({ kubeconfig });
    for (const count of [1, 2, 2]) {
      await client.get(ConfigMap, ONE);
      assert.is((await readFile(runs, "utf8")).length, count);
    }
  });

  test("that fails is reported with its output or installHint", async () => {
    await using folder = await createTemporaryFolder();
    const kubeconfig = await writePlugin(folder.path, "http://127.0.0.1:1", 'throw new Error("log in first")');
    await using client = await load({ kubeconfig });
    assert.match(
      await failureOf(() => client.get(ConfigMap, ONE)),
      /plugin of kubeconfig .*, context "c" failed: [^]*log in first/,
    );
    const refusing = 'console.error("sso is down\\ncall Ann"); process.exit(3)';
    await using refused = await load({ kubeconfig: await writePlugin(folder.path, "http://127.0.0.1:1", refusing) });
    assert.match(await failureOf(() => refused.get(ConfigMap, ONE)), /failed: \S*node: sso is down call Ann$/);
    const more = { command: "./nowhere", installHint: "run npm install nowhere" };
    await using other = await load({ kubeconfig: await writePlugin(folder.path, "http://127.0.0.1:1", "", more) });
    assert.match(await failureOf(() => other.get(ConfigMap, ONE)), /nowhere.* ENOENT; run npm install nowhere/);
  });
});

suite("token with control characters", (test) => {
  const server = "http://127.0.0.1:1";
  const bad = "secret\nsecret";
  const quiet = { logger: createLogger("silent"), signal: new AbortController().signal };

  test("in a token file fails the load with the name of the file", async () => {
    await using folder = await createTemporaryFolder();
    const kubeconfig = await writeConfig(join(folder.path, "config"), { server }, { tokenFile: "token" });
    for (const token of [bad, "secret\u0000", "secret\r\nX-Remote-User: admin"]) {
      await writeFile(join(folder.path, "token"), token);
      const failure = await failureOf(() => findConnection(kubeconfig, quiet));
      assert.match(failure, `the token in ${join(folder.path, "token")} has a line break, a NUL`);
      assert.not.match(failure, "secret");
    }
    await writeFile(join(folder.path, "token"), "fine\r\n");
    const { authorization } = await (await loadConnection({ kubeconfig })).credentials({ isRejected: false });
    assert.is(authorization, "Bearer fine");
  });

  test("from a plugin fails the start with the name of the plugin", async () => {
    await using folder = await createTemporaryFolder();
    const status = { token: bad };
    const source = `console.log(${JSON.stringify(JSON.stringify({ kind: "ExecCredential", status }))})`;
    await writeFile(join(folder.path, "plugin.mjs"), source);
    const exec = { command: process.execPath, args: [join(folder.path, "plugin.mjs")] };
    const kubeconfig = await writeConfig(join(folder.path, "config"), { server }, { exec });
    await using client = await load({ kubeconfig });
    for (const ask of [() => client.get(ConfigMap, ONE), () => findConnection(kubeconfig, quiet)]) {
      const failure = await failureOf(ask);
      assert.match(failure, `the token that ${process.execPath} printed has a line break, a NUL`);
      assert.not.match(failure, "secret");
    }
  });

  test("of a service account fails the first request with the name of the file", async () => {
    await using folder = await createTemporaryFolder();
    const env = { KUBERNETES_SERVICE_HOST: "127.0.0.1", KUBERNETES_SERVICE_PORT: "1" };
    await writeFile(join(folder.path, "token"), bad);
    await writeFile(join(folder.path, "ca.crt"), "PEM");
    await using client = clientOf(createInClusterConnection(env, folder.path)!);
    assert.match(await failureOf(() => client.get(ConfigMap, ONE)), `the token in ${join(folder.path, "token")} has a`);
  });
});

suite("CA rotation", (test) => {
  const ways: { readonly [way: string]: (server: ApiServer, folder: string) => Promise<Connection> } = {
    "a kubeconfig": async ({ url, token }, folder) => {
      const cluster = { server: url, "certificate-authority": "ca.crt" };
      return loadConnection({ kubeconfig: await writeConfig(join(folder, "config"), cluster, { token }) });
    },
    "a service account": async ({ url, token }, folder) => {
      await writeFile(join(folder, "token"), token);
      const { hostname: KUBERNETES_SERVICE_HOST, port: KUBERNETES_SERVICE_PORT } = new URL(url);
      return createInClusterConnection({ KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT }, folder)!;
    },
  };
  for (const [way, connect] of Object.entries(ways))
    test(`reads the file of ${way} again, and reconnects`, async () => {
      await using folder = await createTemporaryFolder();
      const first = await startApiServer();
      const caFile = join(folder.path, "ca.crt");
      await writeFile(caFile, first.ca!);
      await using client = clientOf(await connect(first, folder.path));
      assert.is(await client.get(ConfigMap, ONE), undefined);
      await first.close();
      await using second = await startApiServer({ port: Number(new URL(first.url).port), token: first.token });
      const read = client.get(ConfigMap, ONE);
      await writeFile(caFile, second.ca!);
      assert.is(await read, undefined);
    });

  for (const [way, connect] of Object.entries(ways))
    for (const state of ["empty", "missing"] as const)
      test(`keeps the current CA of ${way} while the file is ${state}`, async () => {
        await using folder = await createTemporaryFolder();
        const dataDir = join(folder.path, "data");
        const first = await startApiServer({ dataDir });
        const { port, token } = { port: Number(new URL(first.url).port), token: first.token };
        const caFile = join(folder.path, "ca.crt");
        await writeFile(caFile, first.ca!);
        const client = new ApiClient(await connect(first, folder.path), { maxAttempts: 1 });
        await using _ = { [Symbol.asyncDispose]: () => client.close() };
        assert.is(await client.get(ConfigMap, ONE), undefined);
        await first.close();
        if (state === "empty") await writeFile(caFile, "");
        else await rm(caFile);
        {
          // Its certificate is of another authority: after the first failure the file is read again.
          await using _other = await startApiServer({ port, token });
          for (let attempt = 1; attempt <= 2; attempt++)
            assert.match(await failureOf(() => client.get(ConfigMap, ONE)), "got no answer");
        }
        await using restarted = await startApiServer({ dataDir, port, token });
        assert.is(restarted.ca, first.ca);
        assert.is(await client.get(ConfigMap, ONE), undefined);
      });
});

suite("hanging credentials function", (test) => {
  test("fails the request after credentialsTimeoutMs, and is called again for the next one", async () => {
    await using server = await startApiServer({ tls: false });
    const given = createConnection({ url: server.url, token: server.token });
    let asked = 0;
    const credentials: Connection["credentials"] = (options) =>
      asked++ === 0 ? new Promise(() => {}) : given.credentials(options);
    await using client = Object.assign(new ApiClient({ ...given, credentials }, { credentialsTimeoutMs: 50 }), {
      [Symbol.asyncDispose]: () => client.close(),
    });
    assert.is(
      await failureOf(() => client.get(ConfigMap, ONE)),
      "the credentials function of connection options did not answer within 0.05 s",
    );
    assert.is(await client.get(ConfigMap, ONE), undefined);
  });
});
