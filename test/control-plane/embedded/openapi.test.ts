// What the embedded server and a real one publish in OpenAPI, of all built-in kinds and of one that a definition adds.
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { get } from "node:https";
import { swaggerProtobuf } from "#apiserver/discovery/swagger.js";
import { startApiServer } from "#apiserver/index.js";
import type { JsonObject } from "#apiserver/json.js";
import { waitFor } from "#apiserver/wait-for.js";
import { apiRequest, apiRequestOrThrow, type Connection } from "../../support/api/api-request.js";
import { startControlPlane } from "../../support/machine/control-plane.js";
import { shared, assert, suite } from "../../support/suite.js";

const DEFINITION = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "parts.described.example.com" },
  spec: {
    group: "described.example.com",
    scope: "Namespaced",
    names: { kind: "Part", plural: "parts" },
    versions: [
      {
        ...{ name: "v1", served: true, storage: true },
        subresources: { status: {}, scale: { specReplicasPath: ".spec.size", statusReplicasPath: ".status.size" } },
        selectableFields: [{ jsonPath: ".spec.color" }],
        schema: {
          openAPIV3Schema: {
            type: "object",
            description: "Part is a part.",
            properties: {
              spec: {
                type: "object",
                required: ["color", "size"],
                properties: {
                  color: { type: "string", description: "Of the part.", enum: ["red", "blue"], default: "red" },
                  size: { type: "integer", format: "int32", minimum: 1, nullable: true },
                  port: { "x-kubernetes-int-or-string": true },
                  free: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
                  pod: {
                    type: "object",
                    "x-kubernetes-embedded-resource": true,
                    properties: { spec: { type: "object" } },
                  },
                  default: { type: "boolean", description: "A field with the name of a keyword." },
                  either: { type: "object", properties: { a: { type: "string" } }, anyOf: [{ required: ["a"] }] },
                  keyed: {
                    type: "array",
                    items: { type: "object", required: ["key"], properties: { key: { type: "string" } } },
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["key"],
                  },
                  ruled: { type: "string", "x-kubernetes-validations": [{ rule: "self != 'a'" }] },
                },
              },
              status: { type: "object", properties: { size: { type: "integer" } } },
            },
          },
        },
      },
    ],
  },
};

interface Document {
  [member: string]: unknown;
  parameters?: Record<string, unknown>;
  definitions?: Record<string, unknown>;
}

const startServers = shared(async () => {
  const [embedded, real] = await Promise.all([startApiServer(), startControlPlane()]);
  for (const server of [embedded, real]) {
    const options = { body: DEFINITION };
    await apiRequestOrThrow(server, "POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions", options);
    const isPublished = async () =>
      (await read(server, "/openapi/v2")).text.includes('"com.example.described.v1.Part"');
    await waitFor("the definition is published", isPublished);
    const isListed = async () => (await read(server, "/openapi/v3")).text.includes("apis/described.example.com/v1");
    await waitFor("its document is listed", isListed);
  }
  return {
    embedded,
    real,
    async [Symbol.asyncDispose]() {
      await Promise.all([embedded[Symbol.asyncDispose](), real.close()]);
    },
  };
});

suite("OpenAPI", (test) => {
  test("serves the same v3 documents with the same content as kube-apiserver", async () => {
    const { embedded, real } = await startServers();
    type Index = { paths: Record<string, { serverRelativeURL: string }> };
    const [ours, theirs] = await Promise.all(
      [embedded, real].map(async (server) => JSON.parse((await read(server, "/openapi/v3")).text) as Index),
    );
    const paths = Object.keys(theirs?.paths ?? {});
    assert.equal(Object.keys(ours?.paths ?? {}), paths);
    assert.ok(paths.length > 40, "as many as a server of 1.36 has");
    for (const path of paths) {
      const [mine, other] = await Promise.all(
        [embedded, real].map(
          async (server) => JSON.parse((await read(server, `/openapi/v3/${path}`)).text) as Document,
        ),
      );
      assert.equal(differencesOf(mine, other), [], path);
    }
  });

  test("serves the same v2 document as kube-apiserver", async () => {
    const { embedded, real } = await startServers();
    const [ours, theirs] = await Promise.all(
      [embedded, real].map(async (server) => JSON.parse((await read(server, "/openapi/v2")).text) as Document),
    );
    const { parameters = {}, ...other } = theirs ?? {};
    assert.equal(differencesOf(ours, withParameters(other, parameters)), []);
  });

  test("encodes the v2 document as the same protobuf bytes as kube-apiserver", async () => {
    const { real } = await startServers();
    const document = JSON.parse((await read(real, "/openapi/v2")).text) as JsonObject;
    const bytes = await readProtobuf(real);
    assert.ok(bytes.length > 1_000_000);
    assert.ok(swaggerProtobuf(document).equals(bytes));
  });
});

async function readProtobuf({ url, ca, token }: Connection): Promise<Buffer> {
  const accept = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
  const headers = { authorization: `Bearer ${token}`, accept };
  const request = get(`${url}/openapi/v2`, { ...(ca === undefined ? {} : { ca }), headers, agent: false });
  const [response] = (await once(request, "response")) as [IncomingMessage];
  return Buffer.concat((await response.toArray()) as Buffer[]);
}

async function read(server: Connection, path: string) {
  return await apiRequest(server, `GET ${path}`);
}

/** A real server has the parameters of version 2 in one place. */
function withParameters(value: unknown, parameters: Record<string, unknown>): unknown {
  if (Array.isArray(value)) return value.map((item) => withParameters(item, parameters));
  if (typeof value !== "object" || value === null) return value;
  const name = /^#\/parameters\/(.*)$/.exec(String((value as { $ref?: unknown }).$ref))?.[1];
  if (name !== undefined) return parameters[name];
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, withParameters(member, parameters)]));
}

function differencesOf(ours: unknown, theirs: unknown, path: string[] = []): string[] {
  if (Object.is(ours, theirs) || isLeftOut(path)) return [];
  if (typeof ours !== "object" || typeof theirs !== "object" || ours === null || theirs === null)
    return [`${path.join(" ")}: ${show(ours)}, a real server ${show(theirs)}`];
  const names = new Set([...Object.keys(ours), ...Object.keys(theirs)]);
  return [...names].flatMap((name) =>
    differencesOf((ours as Document)[name], (theirs as Document)[name], [...path, name]),
  );
}

/** What no client reads: the version of the build, the groups that share a kind, and of a definition's kind what its parameters are for. */
function isLeftOut(path: string[]): boolean {
  if (path[0] === "info") return true;
  if (path.at(-2) === "x-kubernetes-group-version-kind") return /DeleteOptions|WatchEvent/.test(path.at(-3) ?? "");
  return path.at(-1) === "description" && path.includes("parameters") && /described\.example\.com/.test(path[1] ?? "");
}

function show(value: unknown): string {
  return JSON.stringify(value)?.slice(0, 300) ?? "nothing";
}
