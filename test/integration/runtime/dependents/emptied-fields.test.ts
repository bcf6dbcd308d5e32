// Maps and lists that were applied with entries and are applied empty; the same on the embedded and on the real API server.
import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import { ApiClient } from "#runtime/client/api-client.js";
import { createConnection } from "#runtime/client/connection.js";
import { startTestApiServer } from "../../../support/api/api-server.js";
import { classOf, customDefinition, type CrdObject } from "../../../support/kinds/kind-definitions.js";
import { assert, shared, suite } from "../../../support/suite.js";

const text = { type: "string" };
const map = { type: "object", additionalProperties: text };
const keyed = {
  type: "array",
  "x-kubernetes-list-type": "map",
  "x-kubernetes-list-map-keys": ["name"],
  items: { type: "object", required: ["name"], properties: { name: text, labels: map } },
};
const set = { type: "array", "x-kubernetes-list-type": "set", items: text };
const schema = {
  type: "object",
  properties: {
    spec: {
      type: "object",
      properties: { set, deep: { type: "object", properties: { set } }, map, second: map, keyed, other: text },
    },
    status: { type: "object", required: ["map"], properties: { map } },
  },
};
const crd = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "boxes.example.com" },
  spec: {
    group: "example.com",
    scope: "Namespaced",
    names: { kind: "Box", plural: "boxes", singular: "box", listKind: "BoxList" },
    versions: [{ name: "v1", served: true, storage: true, schema: { openAPIV3Schema: schema } }],
  },
} satisfies CrdObject & KubernetesObject;

interface Box extends KubernetesObject {
  spec: object;
  status?: object;
}
const Box = classOf<Box>(customDefinition(crd));

const server = shared(() => startTestApiServer({ crds: [crd] }));
let boxes = 0;

/** Applies states of one object, each of them under one name, and returns what is stored in the end, and the answers to the last. */
async function applyAll(...states: readonly Pick<Box, "spec" | "status">[]) {
  const { url, token, ca } = await server();
  const answers: (number | undefined)[] = [];
  const connection = createConnection({ url, token, ca });
  await using client = Object.assign(
    new ApiClient(connection, { observe: ({ status }) => void answers.push(status) }),
    {
      async [Symbol.asyncDispose]() {
        await client.close();
      },
    },
  );
  const metadata = { name: `box-${++boxes}`, namespace: "default" };
  let error: Error | undefined;
  for (const state of states) {
    answers.length = 0;
    error = await client.apply(Box, { metadata, ...state }, { fieldManager: "test" }).then(
      () => undefined,
      (thrown: unknown) => thrown as Error,
    );
  }
  const last = [...answers];
  const { spec, status } = (await client.get(Box, metadata))!;
  return { spec, status, answers: last, error };
}

suite("apply of emptied fields", (test) => {
  const cases: [string, object, object, number[]?][] = [
    ["a list by key", { keyed: [{ name: "a" }] }, { keyed: [] }, [200, 200]],
    ["a set", { set: ["a"] }, { set: [] }, [200, 200]],
    ["a set that is the only field of its parent", { deep: { set: ["a"] } }, { deep: { set: [] } }, [200, 200]],
    ["a list and a map", { set: ["a"], map: { a: "1" } }, { set: [], map: {} }],
    ["a map", { map: { a: "1", b: "2" } }, { map: {} }],
    ["a map beside other changes", { map: { a: "1" }, second: { b: "2" } }, { map: {}, second: {}, other: "y" }],
    [
      "a map in a list item",
      {
        keyed: [
          { name: "a", labels: {} },
          { name: "b", labels: { c: "d" } },
        ],
      },
      { keyed: [{ name: "b", labels: {} }] },
    ],
  ];
  for (const [title, before, after, expected = [422, 200, 200]] of cases)
    test(`stores ${title} empty after it had entries, with ${expected.length} requests`, async () => {
      const wanted = { other: "x", ...after };
      const { spec, answers, error } = await applyAll({ spec: { other: "x", ...before } }, { spec: wanted });
      assert.is(error, undefined);
      assert.equal(spec, wanted);
      assert.equal(answers, expected);
    });

  test("sends one request if the fields were already empty", async () => {
    const { spec, answers } = await applyAll(
      { spec: { map: {}, set: [] } },
      { spec: { map: {}, set: [], other: "x" } },
    );
    assert.equal(spec, { map: {}, set: [], other: "x" });
    assert.equal(answers, [200]);
  });

  test("fails with the first error if the schema requires the field", async () => {
    const { error, status } = await applyAll(
      { spec: {}, status: { map: { a: "1" } } },
      { spec: {}, status: { map: {} } },
    );
    assert.match(
      error?.message ?? "",
      /apply of Box "default\/box-\d+" failed: 422 Invalid: .*status\.map: Invalid value: "null"/,
    );
    assert.equal(status, { map: { a: "1" } });
  });

  test("sends one request if another field is invalid", async () => {
    const { error, answers } = await applyAll({ spec: {} }, { spec: { map: {}, other: 1 } });
    assert.match(error?.message ?? "", /spec\.other/);
    assert.is(answers.length, 1);
  });
});
