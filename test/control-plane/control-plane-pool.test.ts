import { apiRequest, apiRequestOrThrow } from "../support/api/api-request.js";
import { installCrd, type Crd } from "../support/api/api-server.js";
import { ControlPlanePool } from "../support/machine/control-plane-pool.js";
import { assert, suite } from "../support/suite.js";

const NOTES = "/apis/pool.example.com/v1/namespaces/default/notes";

/** A kind whose objects have one field. */
const crdOf = (field: string) =>
  ({
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: "notes.pool.example.com" },
    spec: {
      group: "pool.example.com",
      scope: "Namespaced",
      names: { plural: "notes", singular: "note", kind: "Note", listKind: "NoteList" },
      versions: [
        {
          ...{ name: "v1", served: true, storage: true },
          schema: { openAPIV3Schema: { type: "object", properties: { [field]: { type: "string" } } } },
        },
      ],
    },
  }) as unknown as Crd;

const noteOf = (name: string) => ({
  ...{ apiVersion: "pool.example.com/v1", kind: "Note", metadata: { name } },
  ...{ first: "a", second: "b" },
});

suite("pooled control plane", (test) => {
  test("is reset between tests, and serves the same kind with another schema", async () => {
    await using pool = new ControlPlanePool();
    const before = await pool.borrow();
    await installCrd(before, crdOf("first"));
    await apiRequestOrThrow(before, `POST ${NOTES}`, { body: noteOf("one") });
    const namespace = { apiVersion: "v1", kind: "Namespace", metadata: { name: "pool" } };
    await apiRequestOrThrow(before, "POST /api/v1/namespaces", { body: namespace });
    const label = { body: { metadata: { labels: { pool: "yes" } } }, contentType: "application/merge-patch+json" };
    await apiRequestOrThrow(before, "PATCH /api/v1/namespaces/default", label);
    await before.close();
    await using after = await pool.borrow();
    assert.is(after.url, before.url, "it was not started anew");
    assert.is((await apiRequest(after, "GET /apis/pool.example.com/v1")).status, 404);
    assert.is((await apiRequest(after, "GET /api/v1/namespaces/pool")).status, 404);
    const { metadata } = await apiRequestOrThrow<{ metadata: { labels: object } }>(
      after,
      "GET /api/v1/namespaces/default",
    );
    assert.equal(metadata.labels, { "kubernetes.io/metadata.name": "default" });
    await installCrd(after, crdOf("second"));
    assert.is((await apiRequest(after, `GET ${NOTES}/one`)).status, 404);
    const note = await apiRequestOrThrow<{ first?: string; second?: string }>(after, `POST ${NOTES}`, {
      body: noteOf("one"),
    });
    assert.equal([note.first, note.second], [undefined, "b"]);
  });

  test("is not reused after a test that created admission policies", async () => {
    await using pool = new ControlPlanePool();
    const before = await pool.borrow();
    const policy = {
      apiVersion: "admissionregistration.k8s.io/v1",
      kind: "ValidatingAdmissionPolicy",
      metadata: { name: "pool" },
      spec: {
        matchConstraints: {
          resourceRules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["configmaps"] }],
        },
        validations: [{ expression: "false" }],
      },
    };
    const path = "POST /apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
    await apiRequestOrThrow(before, path, { body: policy });
    await before.close();
    await using after = await pool.borrow();
    assert.is.not(after.url, before.url);
  });
});
