import { readFile } from "node:fs/promises";
import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { apiRequest, apiRequestOrThrow } from "../../support/api/api-request.js";
import { isRealApiServer, startTestApiServer } from "../../support/api/api-server.js";
import { assert, suite } from "../../support/suite.js";

const GADGET_CRD = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "gadgets.example.com" },
  spec: {
    group: "example.com",
    scope: "Namespaced",
    names: { kind: "Gadget", plural: "gadgets", singular: "gadget", listKind: "GadgetList" },
    versions: [{ name: "v1", served: true, storage: true, schema: { openAPIV3Schema: { type: "object" } } }],
  },
};

suite("startTestApiServer", (test) => {
  test("serves the given CRDs immediately", async () => {
    await using server = await startTestApiServer({ crds: [GADGET_CRD] });
    const body = { apiVersion: "example.com/v1", kind: "Gadget", metadata: { name: "one" } };
    const gadgets = "/apis/example.com/v1/namespaces/default/gadgets";
    assert.is((await apiRequest(server, `POST ${gadgets}`, { body })).status, 201);
    assert.equal((await apiRequestOrThrow(server, `GET ${gadgets}`)).items?.length, 1);
  });

  test("rejects a wrong token with 401", async () => {
    await using server = await startTestApiServer();
    assert.is((await apiRequest({ ...server, token: "wrong" }, "GET /api/v1/namespaces")).status, 401);
  });

  test("writes a kubeconfig", async () => {
    await using server = await startTestApiServer();
    assert.ok((await readFile(server.kubeconfig, "utf8")).includes(server.url));
  });

  // A real server is emptied and lent to the next test instead (control-plane/control-plane-pool.test.ts).
  if (!isRealApiServer)
    test("removes its kubeconfig and stops serving on close", async () => {
      const server = await startTestApiServer();
      await server.close();
      assert.not.ok(existsSync(dirname(server.kubeconfig)));
      await assertRejects(() => apiRequest(server, "GET /version"));
    });
});

async function assertRejects(act: () => Promise<unknown>): Promise<void> {
  const outcome = await act().then(
    () => "fulfilled",
    () => "rejected",
  );
  assert.is(outcome, "rejected");
}
