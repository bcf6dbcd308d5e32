// Input that could harm a server: each is answered as kube-apiserver 1.36 answers it, at once, and the server goes on.
import { readFile, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { startApiServer } from "#apiserver/index.js";
import { apiRequest, type ApiRequestOptions } from "../../support/api/api-request.js";
import { eventsUntil, openWatch } from "../../support/api/watch-client.js";
import { assert, shared, suite } from "../../support/suite.js";
import { createTemporaryFolder } from "../../support/temporary-folder.js";

const DOOR = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "doors.example.com" },
  spec: {
    group: "example.com",
    scope: "Namespaced",
    names: { kind: "Door", plural: "doors", singular: "door", listKind: "DoorList" },
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: "object",
            properties: {
              spec: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
              pattern: { type: "string", pattern: "^(a+)+$" },
              duration: { type: "string", format: "duration" },
            },
          },
        },
      },
    ],
  },
};
const DOORS = "/apis/example.com/v1/namespaces/default/doors";
const MAPS = "/api/v1/namespaces/default/configmaps";
const UNRECOGNIZED = "the object provided is unrecognized (must be of type ";
const MAX_MS = 10_000;

const door = (name: string, members: string) =>
  `{"apiVersion":"example.com/v1","kind":"Door","metadata":{"name":"${name}"},${members}}`;
const nested = (depth: number) => "[".repeat(depth) + "]".repeat(depth);
const protobuf = (...bytes: number[]) => Buffer.concat([Buffer.from("k8s\0"), Buffer.from(bytes)]);

interface Hostile extends ApiRequestOptions {
  readonly send: string;
  readonly status: number;
  /** The beginning of the message. */
  readonly message: string;
}

const tooDeep = (kind: string) =>
  `${UNRECOGNIZED}${kind}): couldn't get version/kind; json parse error: invalid character '[' exceeded max depth (`;
const json = { contentType: "application/json" };
const binary = { contentType: "application/vnd.kubernetes.protobuf" };

const inputs: { readonly [what: string]: Hostile } = {
  "lists in lists of a custom resource": {
    ...{ send: `POST ${DOORS}`, body: door("deep", `"spec":{"x":${nested(20_000)}}`), ...json },
    ...{ status: 400, message: tooDeep("Door") },
  },
  "lists in lists of a built-in kind": {
    ...{ send: `POST ${MAPS}`, body: `{"metadata":{"name":"deep"},"data":${nested(20_000)}}`, ...json },
    ...{ status: 400, message: tooDeep("ConfigMap") },
  },
  "a deep merge patch": {
    ...{
      send: `PATCH ${DOORS}/one`,
      body: `{"spec":{"x":${nested(20_000)}}}`,
      contentType: "application/merge-patch+json",
    },
    ...{ status: 400, message: "error decoding patch: invalid character '[' exceeded max depth" },
  },
  "deep YAML": {
    ...{ send: `POST ${DOORS}`, body: `apiVersion: example.com/v1\nkind: Door\nspec: {x: ${nested(20_000)}}\n` },
    ...{ contentType: "application/yaml", status: 400, message: `${UNRECOGNIZED}Door): yaml: ` },
  },
  "YAML that aliases multiply": {
    ...{ send: `POST ${DOORS}`, body: aliases(), contentType: "application/yaml" },
    ...{ status: 400, message: `${UNRECOGNIZED}Door): yaml: document contains excessive aliasing (` },
  },
  "a patch that doubles what it copies": {
    ...{ send: `PATCH ${DOORS}/one`, contentType: "application/json-patch+json" },
    body: JSON.stringify(
      Array.from({ length: 30 }, (_, index) => ({ op: "copy", from: "/spec/x", path: `/spec/x/copy${index}` })),
    ),
    ...{ status: 422, message: "the server rejected our request due to an error in our request" },
  },
  "a number beyond float64": {
    ...{ send: `POST ${DOORS}`, body: door("number", '"spec":{"x":-1e400}'), ...json, status: 400 },
    message:
      'Door in version "v1" cannot be handled as a Door: json: cannot unmarshal number -1e400 into Go value of type float64',
  },
  "a text on which a pattern backtracks": {
    ...{ send: `POST ${DOORS}`, body: door("pattern", `"pattern":"${"a".repeat(5_000)}!"`), ...json, status: 422 },
    message: 'Door.example.com "pattern" is invalid: pattern: Invalid value: ',
  },
  "a duration of digits alone": {
    ...{ send: `POST ${DOORS}`, body: door("duration", `"duration":"${"9".repeat(40_000)}"`), ...json, status: 422 },
    message: 'Door.example.com "duration" is invalid: duration: Invalid value: ',
  },
  "an object above the limit of etcd": {
    ...{ send: `POST ${DOORS}`, body: door("large", `"spec":{"x":"${"x".repeat(1_600 * 1024)}"}`), ...json },
    ...{ status: 500, message: "etcdserver: request is too large" },
  },
  "an object above the limit of messages": {
    ...{ send: `POST ${DOORS}`, body: door("larger", `"spec":{"x":"${"x".repeat(2_600 * 1024)}"}`), ...json },
    ...{ status: 500, message: "rpc error: code = ResourceExhausted desc = trying to send message larger than max (" },
  },
  "a request above the limit of bodies": {
    ...{ send: `POST ${DOORS}`, body: door("largest", `"spec":{"x":"${"x".repeat(3_200 * 1024)}"}`), ...json },
    ...{ status: 413, message: "Request entity too large: limit is 3145728" },
  },
  "a ConfigMap with too much data": {
    ...{ send: `POST ${MAPS}`, body: { metadata: { name: "large" }, data: { k: "x".repeat(1024 * 1024 + 1) } } },
    ...{ status: 422, message: 'ConfigMap "large" is invalid: []: Too long: may not be more than 1048576 bytes' },
  },
  "protobuf with a negative length": {
    ...{
      send: `POST ${MAPS}`,
      body: protobuf(0x12, 0xf5, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01),
      ...binary,
    },
    ...{ status: 400, message: `${UNRECOGNIZED}ConfigMap): proto: negative length found during unmarshaling (` },
  },
  "protobuf that ends too early": {
    ...{ send: `POST ${MAPS}`, body: protobuf(0x0a, 0x10, 0x0a), ...binary },
    ...{ status: 400, message: `${UNRECOGNIZED}ConfigMap): unexpected EOF (` },
  },
  "protobuf with an endless number": {
    ...{ send: `POST ${MAPS}`, body: protobuf(...Array.from({ length: 100_000 }, () => 0xff)), ...binary },
    ...{ status: 400, message: `${UNRECOGNIZED}ConfigMap): proto: integer overflow (` },
  },
  "a format that every object inherits": {
    ...{ send: `GET ${MAPS}`, headers: { accept: "constructor" }, status: 406, message: "406: Not Acceptable" },
  },
};

/** Nine times as many texts with each line. */
function aliases(): string {
  const names = [..."abcdefghi"];
  const first = `  a: &a [${names.map(() => "x").join()}]\n`;
  const next = names
    .slice(1)
    .map((name, index) => `  ${name}: &${name} [${names.map(() => `*${names[index]}`).join()}]\n`);
  return `apiVersion: example.com/v1\nkind: Door\nmetadata: {name: bomb}\nspec:\n${first}${next.join("")}`;
}

suite("API server with hostile requests", (test) => {
  const server = shared(async () => {
    const started = await startApiServer({ crds: [DOOR], tls: false });
    const body = door("one", '"spec":{"x":{"a":["aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"]}}');
    assert.is((await apiRequest(started, `POST ${DOORS}`, { body })).status, 201);
    return started;
  });

  for (const [what, { send, status, message, ...options }] of Object.entries(inputs))
    test(`responds with ${status} within 10 s and stays available: ${what}`, async () => {
      const connection = await server();
      const startedAt = performance.now();
      const answer = await apiRequest<{ message: string }>(connection, send, options);
      assert.is(answer.status, status, answer.text.slice(0, 300));
      assert.is(answer.body.message.slice(0, message.length), message);
      assert.is((await apiRequest(connection, `GET ${DOORS}`)).status, 200);
      assert.ok(performance.now() - startedAt < MAX_MS, `${Math.round(performance.now() - startedAt)} ms`);
    });

  test("lists, gets, watches and patches objects of the maximum depth", async () => {
    const connection = await server();
    const body = door("deepest", `"spec":{"x":${nested(990)}}`);
    assert.is((await apiRequest(connection, `POST ${DOORS}`, { body })).status, 201);
    const patch = { body: { metadata: { labels: { a: "b" } } }, contentType: "application/merge-patch+json" };
    for (const accept of ["application/json", "application/yaml", "application/json;as=Table;v=v1;g=meta.k8s.io"])
      for (const [send, options] of [
        [`GET ${DOORS}`, {}],
        [`GET ${DOORS}/deepest`, {}],
        [`PATCH ${DOORS}/deepest`, patch],
      ] as const)
        assert.is(
          (await apiRequest(connection, send, { ...options, headers: { accept } })).status,
          200,
          `${send} ${accept}`,
        );
    for (const accept of ["application/json", "application/json;as=Table;v=v1;g=meta.k8s.io"]) {
      using watch = await openWatch(connection, `${DOORS}?watch=true`, { accept });
      const [event] = (await eventsUntil(watch, ({ object }) => JSON.stringify(object).includes('"deepest"'))).slice(
        -1,
      );
      assert.is(event?.type, "ADDED");
      if (accept === "application/json") assert.is(JSON.stringify(event?.object.spec?.["x"]), nested(990));
    }
    using watch = await openWatch(connection, `${DOORS}?watch=true`);
    assert.is((await apiRequest(connection, `DELETE ${DOORS}/deepest`)).status, 200);
    const [deleted] = (await eventsUntil(watch, ({ type }) => type === "DELETED")).slice(-1);
    assert.is(JSON.stringify(deleted?.object.spec?.["x"]), nested(990));
  });

  test("truncates warnings to about 4,096 characters", async () => {
    const unknown = Array.from({ length: 400 }, (_, index) => [`${"unknown".repeat(5)}${index}`, 1]);
    const body = { metadata: { name: "warned" }, ...Object.fromEntries(unknown) };
    const { status, headers } = await apiRequest(await server(), `POST ${MAPS}`, { body });
    assert.is(status, 201);
    const { length } = String(headers["warning"]);
    assert.ok(length > 4_000 && length < 8_192, `${length} characters`);
  });

  test("accepts a label selector of 100,000 characters", async () => {
    const selector = encodeURIComponent(`${"a=b,".repeat(25_000)}c=d`);
    assert.is((await apiRequest(await server(), `GET ${MAPS}?labelSelector=${selector}`)).status, 200);
  });

  test("stores and selects names that JavaScript objects inherit", async () => {
    const connection = await server();
    const labels = { constructor: "x", toString: "y" };
    const body = { metadata: { name: "inherited", labels }, data: { ["__proto__"]: "1", hasOwnProperty: "2" } };
    assert.is((await apiRequest(connection, `POST ${MAPS}`, { body })).status, 201);
    for (const [selector, count] of [
      ["constructor", 1],
      ["toString=y", 1],
      ["valueOf", 0],
    ] as const)
      assert.is((await apiRequest(connection, `GET ${MAPS}?labelSelector=${selector}`)).body.items?.length, count);
  });
});

suite("kubeconfig of an API server", (test) => {
  test("is written with mode 0600, and replaces a symbolic link instead of following it", async () => {
    await using folder = await createTemporaryFolder();
    await using server = await startApiServer();
    const [file, link, target] = ["file", "link", "target"].map((name) => join(folder.path, name)) as [
      string,
      string,
      string,
    ];
    await writeFile(file, "", { mode: 0o644 });
    await writeFile(target, "untouched");
    await symlink(target, link);
    for (const path of [file, link]) {
      await server.writeKubeconfig(path);
      assert.is((await stat(path)).mode & 0o777, 0o600);
      assert.is(await readFile(path, "utf8"), server.kubeconfig);
    }
    assert.is(await readFile(target, "utf8"), "untouched");
  });
});
