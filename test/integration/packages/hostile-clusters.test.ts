// `--from-cluster` where what answers is no healthy API server: one line says what is wrong, the next what to do, and nothing is written.
import { readdir, writeFile } from "node:fs/promises";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { readClusterKinds } from "#generator/read/cluster-kinds.js";
import { runCommand } from "../../support/command-line.js";
import { assert, suite } from "../../support/suite.js";
import { createTemporaryFolder } from "../../support/temporary-folder.js";

const CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/** A server that answers every request in one way, and a folder with its kubeconfig. */
async function startCluster(answer: RequestListener) {
  const folder = await createTemporaryFolder();
  const server = createServer(answer);
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address() as AddressInfo;
  const kubeconfig = join(folder.path, "kubeconfig");
  const config = {
    clusters: [{ name: "a", cluster: { server: `http://127.0.0.1:${port}` } }],
    users: [{ name: "a", user: {} }],
    contexts: [{ name: "a", context: { cluster: "a", user: "a" } }],
    "current-context": "a",
  };
  await writeFile(kubeconfig, JSON.stringify({ apiVersion: "v1", kind: "Config", ...config }));
  const close = async () => {
    if (server.listening) await new Promise((done) => server.close(done).closeAllConnections());
    await folder[Symbol.asyncDispose]();
  };
  return { folder: folder.path, kubeconfig, server, [Symbol.asyncDispose]: close };
}

function json(value: unknown, code = 200): RequestListener {
  return (_, response) => {
    response.writeHead(code, { "content-type": "application/json" }).end(JSON.stringify(value));
  };
}

const refusal = (code: number, reason: string) => json({ kind: "Status", code, reason, message: "no" }, code);

/** A cluster with these definitions, and no kind besides. */
function definitions(...items: unknown[]): RequestListener {
  const [list, nothing] = [json({ metadata: {}, items }), json({ groups: [], versions: [] })];
  return (request, response) => (request.url?.startsWith(CRDS) ? list : nothing)(request, response);
}

function page(group: string, type = "object") {
  const versions = [{ name: "v1", served: true, storage: true, schema: { openAPIV3Schema: { type } } }];
  const names = { kind: "Page", plural: "pages" };
  return { metadata: { name: `pages.${group}` }, spec: { group, names, scope: "Namespaced", versions } };
}

const noServer =
  /^error unreadable-cluster: the response of http:\S+ \(kubeconfig .*\) is not from an API server\n {2}check the address: /;

const CLUSTERS: readonly [what: string, answer: RequestListener, printed: RegExp][] = [
  ["does not know the user", refusal(401, "Unauthorized"), /^error unreadable-cluster: .* 401 .*\n {2}log in again: /],
  [
    "forbids to read definitions",
    refusal(403, "Forbidden"),
    /^error unreadable-cluster: .* 403 .*\n {2}ask for permission /,
  ],
  [
    "breaks",
    refusal(500, "InternalError"),
    /^error unreadable-cluster: .* 500 .*\n {2}check that the cluster is running /,
  ],
  ["answers with a page", (_, response) => void response.end("<html>\n\n<body>Sign in</body></html>"), noServer],
  [
    "answers with a page that says so",
    (_, response) => void response.writeHead(200, { "content-type": "text/html" }).end("<html></html>"),
    noServer,
  ],
  [
    "answers with a page and a code",
    (_, response) => void response.writeHead(404).end("<p>\n\nno</p>"),
    /^error unreadable-cluster: .*<p> no<\/p>\n {2}check /,
  ],
  [
    "sends us elsewhere",
    (_, response) => void response.writeHead(302, { location: "https://example.com" }).end(),
    /^error unreadable-cluster: .* redirected to https:\/\/example\.com\n {2}check the address: /,
  ],
  ["answers with null", json(null), noServer],
  ["answers with a list", json([]), noServer],
  [
    "breaks off",
    (request, response) =>
      void response.writeHead(200, { "content-length": 9 }).write("{", () => request.socket.destroy()),
    /^error unreadable-cluster: .* got no answer: .*\n {2}check /,
  ],
  [
    "has nothing",
    definitions(),
    /^error unknown-kind: kind "Page" not found in the cluster\n {2}run kubectl api-resources /,
  ],
  ["has nonsense for definitions", definitions(null, 1, {}, { spec: [] }), /^error unknown-kind: /],
  [
    "has another kind",
    definitions({ ...page("a.com"), spec: { group: "a.com", names: { kind: "Pages", plural: "pagess" } } }),
    /^error unknown-kind: .*\n {2}did you mean "Pages"\?/,
  ],
  [
    "has the kind in two groups",
    definitions(page("a.com"), page("b.com")),
    /^error unknown-kind: .*\n {2}use one of pages\.a\.com, pages\.b\.com\n/,
  ],
  [
    "has a broken schema",
    definitions(page("a.com", "objec")),
    /^<cluster>\/pages\.a\.com\.yaml:\d+:\d+: error crd-schema: /,
  ],
  [
    "names a definition like a path",
    definitions({ ...page("a.com"), metadata: { name: "../../evil" } }),
    /^<cluster>\/.* error crd-name: /,
  ],
];

suite("init --from-cluster", (test) => {
  for (const [what, answer, printed] of CLUSTERS)
    test(`writes nothing if the cluster ${what}`, async () => {
      await using cluster = await startCluster(answer);
      const args = ["init", "pages", "--from-cluster", "Page", "--kubeconfig", cluster.kubeconfig];
      const { status, stdout, stderr } = await runCommand(cluster.folder, ...args);
      assert.equal([status, stdout], [1, ""]);
      assert.match(stderr, printed);
      assert.match(stderr, /\n1 error; nothing was written\n$/);
      assert.equal(await readdir(cluster.folder), ["kubeconfig"]);
    });

  test("writes nothing if the connection is refused", async () => {
    await using cluster = await startCluster(() => {});
    await new Promise((done) => cluster.server.close(done));
    const args = ["init", "pages", "--from-cluster", "Page", "--kubeconfig", cluster.kubeconfig];
    const { status, stderr } = await runCommand(cluster.folder, ...args);
    assert.is(status, 1);
    assert.match(stderr, /^error unreadable-cluster: .*ECONNREFUSED.*\n {2}check that the cluster is running /);
    assert.equal(await readdir(cluster.folder), ["kubeconfig"]);
  });
});

suite("cluster that is read for its kinds", (test) => {
  const late = /^http:\S+ \(kubeconfig .*\) does not respond in time$/;
  const servers: readonly [what: string, answer: RequestListener, message?: RegExp][] = [
    ["says nothing", () => {}],
    ["begins an answer and never ends it", (_, response) => void response.write('{ "items": [')],
    [
      "has always one more page",
      json({ metadata: { continue: "more" }, items: [] }),
      /with a continue token that an earlier page had/,
    ],
    [
      "says nothing of the kinds without a definition",
      (request, response) => {
        if (request.url?.startsWith("/apis/apps/") !== true)
          json({ metadata: {}, items: [], groups: [{ name: "apps", versions: [{ version: "v1" }] }] })(
            request,
            response,
          );
      },
    ],
  ];
  for (const [what, answer, message = late] of servers)
    test(`is reported as unreadable if it ${what}`, async () => {
      await using cluster = await startCluster(answer);
      const { files, diagnostics } = await readClusterKinds(["Page"], {
        kubeconfig: cluster.kubeconfig,
        timeoutMs: 200,
      });
      assert.equal(files, []);
      assert.equal(
        diagnostics.map(({ rule }) => rule),
        ["unreadable-cluster"],
      );
      assert.match(diagnostics[0]?.message ?? "", message);
    });
});
