// Kinds without a CRD, as aggregated APIs serve them: taken from a cluster, or written into crds/ as an API server prints them.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { mkdir, readFile, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { runCommand } from "../../support/command-line.js";
import { fastCompiler } from "../../support/projects/compile.js";
import { repositoryRoot } from "../../support/repository.js";
import { assert, suite } from "../../support/suite.js";
import { createTemporaryFolder } from "../../support/temporary-folder.js";
import { linkPackages } from "../../support/projects/link-packages.js";

const LONG = { timeoutMs: 90_000 };
const GVK = { group: "fleet.example.io", version: "v1beta1", kind: "Ship" };
const REF = "#/components/schemas/";

/** What the API server of an aggregated API publishes; `Port` is a kind that nobody asks for. */
const DOCUMENT = {
  openapi: "3.0.0",
  info: { title: "Fleet", version: "v1" },
  paths: {
    "/apis/fleet.example.io/v1beta1/ships": operations({ get: "list" }),
    "/apis/fleet.example.io/v1beta1/namespaces/{namespace}/ships": operations({ get: "list", post: "post" }),
    "/apis/fleet.example.io/v1beta1/namespaces/{namespace}/ships/{name}": operations({
      ...{ get: "get", put: "put", patch: "patch", delete: "delete" },
    }),
    "/apis/fleet.example.io/v1beta1/namespaces/{namespace}/ships/{name}/status": {},
    "/apis/fleet.example.io/v1beta1/watch/namespaces/{namespace}/ships": operations({ get: "watchlist" }),
  },
  components: {
    schemas: {
      "io.example.fleet.v1beta1.Ship": {
        description: "Ship carries crates.",
        type: "object",
        required: ["spec"],
        properties: {
          apiVersion: { type: "string" },
          kind: { type: "string" },
          metadata: { default: {}, allOf: [{ $ref: `${REF}io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta` }] },
          spec: { default: {}, allOf: [{ $ref: `${REF}io.example.fleet.v1beta1.ShipSpec` }] },
          status: { type: "object", properties: { docked: { type: "boolean" } } },
        },
        "x-kubernetes-group-version-kind": [GVK],
      },
      "io.example.fleet.v1beta1.ShipSpec": {
        type: "object",
        required: ["crates"],
        properties: { crates: { type: "integer", format: "int32" }, flag: { type: "string", enum: ["red", "blue"] } },
      },
      "io.example.fleet.v1beta1.Port": { type: "object" },
      "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": { type: "object", properties: { name: { type: "string" } } },
    },
  },
};

function operations(actions: Record<string, string>): object {
  return Object.fromEntries(
    Object.entries(actions).map(([method, action]) => [
      method,
      { "x-kubernetes-action": action, "x-kubernetes-group-version-kind": GVK },
    ]),
  );
}

const ANSWERS: Record<string, object> = {
  "/apis/apiextensions.k8s.io/v1/customresourcedefinitions": { metadata: {}, items: [] },
  "/api": { versions: ["v1"] },
  "/api/v1": { resources: [{ name: "pods", kind: "Pod", namespaced: true, verbs: ["get", "list", "watch"] }] },
  "/apis": {
    groups: [
      { name: "fleet.example.io", versions: [{ version: "v1beta1" }], preferredVersion: { version: "v1beta1" } },
      { name: "down.example.io", versions: [{ version: "v1" }], preferredVersion: { version: "v1" } },
      { name: "silent.example.io", versions: [{ version: "v1" }], preferredVersion: { version: "v1" } },
    ],
  },
  "/apis/fleet.example.io/v1beta1": {
    resources: [
      {
        ...{ name: "ships", kind: "Ship", namespaced: true },
        verbs: ["create", "delete", "get", "list", "patch", "update", "watch"],
      },
      { name: "ships/status", kind: "Ship", namespaced: true, verbs: ["get", "patch"] },
    ],
  },
  "/apis/silent.example.io/v1": {
    resources: [{ name: "secrets", kind: "Quiet", namespaced: false, verbs: ["get", "list", "watch"] }],
  },
  "/openapi/v3/apis/fleet.example.io/v1beta1": DOCUMENT,
};

/** An API server with an aggregated API; the server of another one does not answer, and a third one publishes nothing. */
async function startAggregator(folder: string) {
  const server = createServer((request, response) => {
    const answer = ANSWERS[(request.url ?? "").replace(/\?.*$/, "")];
    const isDown = request.url?.startsWith("/apis/down.example.io") === true;
    const status = isDown ? 503 : answer === undefined ? 404 : 200;
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify(answer ?? { kind: "Status", code: status, message: "nothing here" }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const kubeconfig = join(folder, "kubeconfig");
  const named = { clusters: [{ name: "c", cluster: { server: url } }], users: [{ name: "u", user: {} }] };
  const contexts = [{ name: "x", context: { cluster: "c", user: "u" } }];
  await writeFile(
    kubeconfig,
    JSON.stringify({ apiVersion: "v1", kind: "Config", "current-context": "x", contexts, ...named }),
  );
  return {
    kubeconfig,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

suite("kind without a CRD", (test) => {
  test(
    "is generated from the OpenAPI schema of a cluster",
    async () => {
      await using folder = await createTemporaryFolder();
      await using server = await startAggregator(folder.path);
      for (const name of ["Ship", "ships.fleet.example.io", "fleet.example.io/v1beta1/Ship", "fleet.example.io/Ship"]) {
        const args = ["types", "--from-cluster", name, "--kubeconfig", server.kubeconfig, "--out", "out"];
        const { status, stderr } = await runCommand(folder.path, ...args);
        assert.is(status, 0, stderr);
        const files = await readdir(join(folder.path, "out/resources"), { recursive: true });
        assert.equal(files.filter((file) => file.endsWith(".ts")).sort(), [
          "fleet.example.io/v1beta1/ship.schema.ts",
          "fleet.example.io/v1beta1/ship.ts",
        ]);
      }
      const text = await readFile(join(folder.path, "out/resources/fleet.example.io/v1beta1/ship.ts"), "utf8");
      assert.match(text, "crates: number;");
      assert.match(text, 'flag?: "red" | "blue"');
      assert.match(text, "isCustom: false");
    },
    LONG,
  );

  test(
    "can be the primary of a new project, which compiles and needs no permission for CRDs",
    async () => {
      await using folder = await createTemporaryFolder();
      await using server = await startAggregator(folder.path);
      const init = ["init", "fleet", "--from-cluster", "Ship", "--kubeconfig", server.kubeconfig];
      const { status, stderr } = await runCommand(folder.path, ...init);
      assert.is(status, 0, stderr);
      const project = join(folder.path, "fleet");
      const kept = await readFile(join(project, "crds/ships.fleet.example.io.json"), "utf8");
      assert.not.match(kept, "v1beta1.Port");
      const rbac = await readFile(join(project, "deploy/generated/rbac.yaml"), "utf8");
      assert.match(rbac, "resources: [ships/status]");
      assert.not.match(rbac, "customresourcedefinitions");
      assert.is((await runCommand(project, "generate", "--check")).status, 0);
      await linkPackages(project);
      assert.is(fastCompiler.compile(project), "");
    },
    LONG,
  );

  test(
    "may be an OpenAPI document in crds/",
    async () => {
      await using folder = await createTemporaryFolder();
      await mkdir(join(folder.path, "crds"));
      await writeFile(join(folder.path, "crds/fleet.json"), JSON.stringify(DOCUMENT));
      const { stdout, status } = await runCommand(folder.path, "schema", "Ship");
      assert.is(status, 0);
      assert.match(stdout, '"crates"');
      const types = await runCommand(folder.path, "types", "crds", "--out", "out");
      assert.is(types.status, 0, types.stderr);
    },
    LONG,
  );

  test(
    "that cannot be watched is rejected as an event source",
    async () => {
      await using folder = await createTemporaryFolder();
      await mkdir(join(folder.path, "crds"));
      const paths = Object.entries(DOCUMENT.paths).filter(([path]) => !path.includes("/watch/"));
      const document = { ...DOCUMENT, paths: Object.fromEntries(paths) };
      await writeFile(join(folder.path, "crds/fleet.json"), JSON.stringify(document));
      const sample = join(repositoryRoot, "fixtures/samples/webpage/crds/webpages.example.com.yaml");
      assert.is((await runCommand(folder.path, "init", ".", "--crd", sample)).status, 0);
      const args = ["add", "source", "ships", "--resource", "fleet.example.io/v1beta1/Ship"];
      const { status, stderr } = await runCommand(folder.path, ...args);
      assert.is(status, 1);
      assert.match(stderr, /error unusable-kind: .*watch/);
    },
    LONG,
  );

  test(
    "is rejected with advice if a package has it or the cluster publishes no schema",
    async () => {
      await using folder = await createTemporaryFolder();
      await using server = await startAggregator(folder.path);
      const cases: [name: string, message: RegExp][] = [
        [
          "Pod",
          /error known-kind: kind "v1\/Pod" is built into Kubernetes.*\n.*import it from "@gen-operator\/kinds\/core\/v1"/,
        ],
        [
          "Quiet",
          /schema of kind "silent\.example\.io\/v1\/Quiet" not found in the OpenAPI document of the API server\n.*plural: secrets, scope: Cluster/,
        ],
        ["Nothing", /error unknown-kind: kind "Nothing" not found in the cluster/],
      ];
      for (const [name, message] of cases) {
        const args = ["types", "--from-cluster", name, "--kubeconfig", server.kubeconfig, "--out", "out"];
        const { status, stderr } = await runCommand(folder.path, ...args);
        assert.is(status, 1);
        assert.match(stderr, message);
      }
    },
    LONG,
  );
});
