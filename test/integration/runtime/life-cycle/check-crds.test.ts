// The check of the CustomResourceDefinitions before the start: what differs, and an API server that is away or refuses.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import { startApiServer } from "#apiserver/index.js";
import { waitFor } from "#apiserver/wait-for.js";
import { ApiClient } from "#runtime/client/api-client.js";
import { createConnection } from "#runtime/client/connection.js";
import { checkCrds } from "#runtime/operate/crd-check.js";
import { noUpdate } from "#runtime/reconcile/reconciler.js";
import { apiRequestOrThrow } from "../../../support/api/api-request.js";
import { startTestApiServer } from "../../../support/api/api-server.js";
import { customDefinition, type CrdObject } from "../../../support/kinds/kind-definitions.js";
import { createRecordedOperator } from "../../../support/runtime/recorded-operator.js";
import { repositoryRoot } from "../../../support/repository.js";
import { failureOf } from "../../../support/runtime/failures.js";
import { assert, shared, suite } from "../../../support/suite.js";
import { createPage, createPageOperator, pageCrd, startPageServer, untilText } from "../page-operator.js";

const CHECKED = { operator: { checkCrds: true } };
const DEFINITIONS = "/customresourcedefinitions";

suite("checkCrds", (test) => {
  for (const [title, answer] of [
    ["answers with 500", { status: 500, message: "etcd is not ready" }],
    ["answers with 429 and Retry-After: 3600", { status: 429, message: "etcd is not ready", retryAfterSeconds: 3_600 }],
  ] as const)
    test(`retries with a warning while the API server ${title}`, async () => {
      await using server = await startPageServer();
      const fault = server.faults.add({ path: DEFINITIONS, answer });
      await using page = createPageOperator(server, CHECKED);
      const started = page.operator.start();
      await waitFor("it is tried again", () => fault.hits >= 2);
      const said = "warn cannot check the CustomResourceDefinitions: get CustomResourceDefinition";
      const line = page.logs.find((each) => each.startsWith(said));
      assert.match(line!, "etcd is not ready; trying again");
      fault.remove();
      await started;
      await createPage(page);
      await untilText(page, "first");
    });

  for (const [title, more] of [
    ["", {}],
    [" and with leader election", { leaderElection: { namespace: "default" } }],
  ] as const)
    test(`retries with a warning until the API server accepts connections${title}`, async () => {
      await using first = await startApiServer({ tls: false });
      const { url, token } = first;
      await first.close();
      await using page = createPageOperator(first, { operator: { ...CHECKED.operator, ...more } });
      const started = page.operator.start();
      const isSaid = () => page.logs.some((line) => /^warn .*ECONNREFUSED.*; trying again$/.test(line));
      await waitFor("the failure is said", isSaid);
      await using _ = await startApiServer({ tls: false, port: Number(new URL(url).port), token, crds: [pageCrd] });
      await started;
      assert.is(page.operator.health().status, "healthy");
    });

  test("ends when the operator is stopped before the API server is reachable", async () => {
    await using page = createPageOperator({ url: "http://127.0.0.1:1", token: "x" }, CHECKED);
    const started = failureOf(() => page.operator.start());
    assert.is(await page.operator.stop(), true);
    assert.match(await started, "the operator was stopped");
  });

  test("fails after one request without permission to read CRDs", async () => {
    await using server = await startPageServer();
    const fault = server.faults.add({ path: DEFINITIONS, forbid: true });
    await using page = createPageOperator(server, CHECKED);
    assert.match(await failureOf(() => page.operator.start()), "checkCrds needs the permission to get");
    assert.is(fault.hits, 1);
  });
});

const APPLY = "apply deploy/generated/crds of this operator, or run gen-operator generate with the CRD of the cluster";
const text = { type: "string" };
const textsOf = (...names: string[]) => ({
  type: "object",
  properties: Object.fromEntries(names.map((each) => [each, text])),
});

/** Returns the definition of a kind with a status; `spec` is the schema of its specification. */
function crdOf(kind: string, spec: object, { subresources = { status: {} } as object } = {}) {
  const names = { kind, plural: `${kind.toLowerCase()}s`, singular: kind.toLowerCase(), listKind: `${kind}List` };
  const properties = { spec, status: textsOf("text") };
  const schema = { openAPIV3Schema: { type: "object", properties } };
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${names.plural}.example.com` },
    spec: {
      ...{ group: "example.com", scope: "Namespaced" as const, names },
      versions: [{ name: "v1", served: true, storage: true, schema, subresources }],
    },
  };
}

const containers = (...fields: string[]) => ({
  type: "object",
  properties: { containers: { type: "array", items: textsOf(...fields) } },
});
// Of each kind the cluster has an older definition than the operator was generated from.
const older = {
  leaf: crdOf("Leaf", containers("name")),
  tree: crdOf("Tree", textsOf("a"), { subresources: {} }),
};
const newer = {
  leaf: crdOf("Leaf", containers("name", "image")),
  tree: crdOf("Tree", textsOf("a", "b", "c", "d", "e", "f", "g", "h")),
};
const FILES = ["notes.example.com", "postgresqls.db.example.com", "tenants.example.com", "ordinary/gateways"];
const files = FILES.map((name) => `fixtures/crds/${name}.yaml`);
const sharedServer = shared(() => startTestApiServer({ crds: [older.leaf, older.tree, ...files] }));

async function createCheckedOperator(crd: CrdObject) {
  const server = await sharedServer();
  const workflow = { primary: customDefinition(crd), dependents: [] };
  const { url, token, ca } = server;
  const connection = { url, token, ca };
  const controller = { name: "checked", workflow, reconciler: { reconcile: () => noUpdate() } };
  return { server, ...createRecordedOperator({ controllers: [controller], connection, checkCrds: true }) };
}

suite("checkCrds schema comparison", (test) => {
  test("accepts installed definitions equal to those of the operator", async () => {
    const server = await sharedServer();
    const client = new ApiClient(createConnection(server));
    const crds = files.flatMap((file) =>
      parseAllDocuments(readFileSync(join(repositoryRoot, file), "utf8")).map(
        (each) => each.toJS() as CrdObject & { kind: string },
      ),
    );
    const definitions = crds
      .filter(({ kind }) => kind === "CustomResourceDefinition")
      .flatMap(({ spec }) =>
        spec.versions.filter(({ served }) => served).map((each) => ({ spec: { ...spec, versions: [each] } })),
      )
      .map(customDefinition);
    const logger = { debug() {}, info() {}, warn() {}, error() {} };
    await checkCrds(client, definitions, { logger, signal: AbortSignal.timeout(10_000) }).finally(() => client.close());
    assert.ok(definitions.length >= FILES.length);
  });

  test("names the missing field of an older definition, and accepts it after an upgrade", async () => {
    await using checked = await createCheckedOperator(newer.leaf);
    const { server, operator } = checked;
    const what = "leafs.example.com v1 has another schema in the cluster than in the operator";
    const difference = "spec.containers[].image (expected string, found no such field)";
    assert.is(await failureOf(() => operator.start()), `${server.url}: ${what}: ${difference}; ${APPLY}`);
    const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/leafs.example.com";
    const contentType = "application/apply-patch+yaml";
    const body = newer.leaf;
    await apiRequestOrThrow(server, `PATCH ${path}?fieldManager=upgrade&force=true`, { body, contentType });
    await operator.start();
    assert.is(operator.health().status, "healthy");
  });

  test("lists 5 of 7 differing paths, and a missing status subresource", async () => {
    await using checked = await createCheckedOperator(newer.tree);
    const message = await failureOf(() => checked.operator.start());
    assert.match(
      message,
      `trees.example.com v1 has no status subresource in the cluster; ${APPLY}; trees.example.com v1`,
    );
    const named = [..."bcdef"].map((each) => `spec.${each} (expected string, found no such field)`);
    assert.match(message, `in the operator: ${named.join(", ")} and 2 more; ${APPLY}`);
  });

  test("rejects a definition with a status subresource that the operator does not expect", async () => {
    await using checked = await createCheckedOperator(crdOf("Leaf", containers("name"), { subresources: {} }));
    const message = `leafs.example.com v1 has a status subresource in the cluster; ${APPLY}`;
    assert.match(await failureOf(() => checked.operator.start()), message);
  });

  test("accepts a definition with more fields than the operator expects", async () => {
    await using checked = await createCheckedOperator(crdOf("Leaf", containers("name")));
    await checked.operator.start();
    assert.is(checked.operator.health().status, "healthy");
  });
});
