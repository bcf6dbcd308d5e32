import type { JsonObject } from "#apiserver/json.js";
import type { ObjectBody } from "#runtime/base/kubernetes-object.js";
import type { RetryAfterError } from "#runtime/base/errors.js";
import { replacementOf } from "#runtime/apply/update.js";
import { checkAdoption, untyingOperations } from "#runtime/apply/writer.js";
import { applyJsonPatch } from "#schema/json/patch.js";
import type { JsonResource } from "../../../support/kinds/kind-definitions.js";
import { assert, suite } from "../../../support/suite.js";

const owner = (uid: string, controller = false) => ({ apiVersion: "v1", kind: "X", name: uid, uid, controller });
const link = {
  "gen-operator.dev/primary-name": "one",
  "gen-operator.dev/primary-namespace": "home",
  "gen-operator.dev/primary-type": "Page.example.com",
  // Earlier versions wrote it where the label is now.
  "gen-operator.dev/controller": "page",
  "gen-operator.dev/dependent": "a",
  "gen-operator.dev/object": "home/a",
  "gen-operator.dev/item": "x/y",
};

function objectOf(metadata: JsonObject, content: JsonObject = {}): JsonResource {
  return { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a", uid: "u", ...metadata }, ...content };
}

suite("release of an object", (test) => {
  test("removes the link and keeps all other metadata", () => {
    const object = objectOf({
      labels: { theirs: "x", "gen-operator.dev/controller": "page" },
      annotations: { theirs: "x", ...link },
      ownerReferences: [owner("1"), owner("2"), owner("1"), owner("3")],
    });
    const after = applyJsonPatch(object, untyingOperations(object, "1")) as JsonResource;
    assert.equal([after.metadata.annotations, after.metadata.labels], [{ theirs: "x" }, { theirs: "x" }]);
    assert.equal(
      after.metadata.ownerReferences?.map(({ uid }) => uid),
      ["2", "3"],
    );
  });

  test("fails if the link was changed concurrently", () => {
    const tied = { annotations: link, ownerReferences: [owner("1"), owner("2")] };
    const object = objectOf(tied);
    const operations = untyingOperations(object, "1");
    const changed: [path: string, metadata: JsonObject][] = [
      [
        "/metadata/annotations/gen-operator.dev~1dependent",
        { annotations: { ...link, "gen-operator.dev/dependent": "b" } },
      ],
      ["/metadata/ownerReferences/0/uid", { ownerReferences: [owner("2"), owner("1")] }],
      ["/metadata/uid", { uid: "other" }],
    ];
    for (const [path, metadata] of changed) {
      const other = objectOf({ ...tied, ...metadata });
      assert.throws(() => applyJsonPatch(other, operations), `testing value ${path} failed: test failed`);
    }
  });

  test("returns no operations for an object without a link", () => {
    assert.equal(untyingOperations(objectOf({ annotations: { theirs: "x" }, ownerReferences: [owner("2")] }), "1"), []);
  });
});

suite("PUT body", (test) => {
  const live = objectOf(
    {
      resourceVersion: "7",
      labels: { theirs: "x", both: "old" },
      finalizers: ["a"],
      ownerReferences: [owner("1"), owner("2")],
    },
    { data: { old: "x" }, immutable: true, status: { at: "x" } },
  );

  test("merges the live metadata with the desired one, and has all other fields as desired", () => {
    const desired = {
      metadata: { name: "a", labels: { both: "new" }, finalizers: ["a", "b"], ownerReferences: [owner("2", true)] },
      data: { new: "x" },
    };
    assert.equal(replacementOf(live, desired, { hasStatusSubresource: true }), {
      metadata: {
        name: "a",
        uid: "u",
        resourceVersion: "7",
        labels: { theirs: "x", both: "new" },
        finalizers: ["a", "b"],
        ownerReferences: [owner("1"), owner("2", true)],
      },
      data: { new: "x" },
    });
  });

  test("replaces the owner reference of a deleted owner of the same name", () => {
    const before = { ...owner("0", true), name: "one" };
    const after = { ...owner("1", true), name: "one" };
    const others = [owner("2"), { ...before, uid: "3", apiVersion: "other.example.com/v1", controller: false }];
    const stale = objectOf({ ownerReferences: [before, ...others] });
    const { metadata } = replacementOf(
      stale,
      { metadata: { name: "a", ownerReferences: [after] } },
      { hasStatusSubresource: true },
    );
    assert.equal(metadata.ownerReferences, [...others, after]);
  });

  test("keeps a status without a subresource, and all content if only metadata is desired", () => {
    const status = { at: "x" };
    const desired: ObjectBody & { data: object } = { metadata: { name: "a" }, data: {} };
    const ofStatus = replacementOf(live, desired, { hasStatusSubresource: false });
    assert.equal({ ...ofStatus, metadata: {} }, { metadata: {}, data: {}, status });
    const ofLink = replacementOf(live, { metadata: { name: "a" } }, { hasStatusSubresource: true });
    assert.equal({ ...ofLink, metadata: {} }, { metadata: {}, data: { old: "x" }, immutable: true, status });
  });
});

suite("adoption", (test) => {
  const desired = { name: "a", namespace: "home", ownerReferences: [owner("1", true)] };
  const refused: [title: string, metadata: JsonObject, policy: "adopt" | "refuse", message: RegExp][] = [
    [
      "an object without existing: adopt",
      {},
      "refuse",
      /already exists and is not owned by this primary; .* set existing: adopt/,
    ],
    [
      "an object that is being deleted without existing: adopt",
      { deletionTimestamp: "x" },
      "refuse",
      /it is being deleted: wait for that/,
    ],
    [
      "an object that another controller owns",
      { ownerReferences: [owner("2", true)] },
      "adopt",
      /it is owned by X "2"/,
    ],
    ["an object of another primary", { annotations: link }, "adopt", /it is owned by Page.example.com "home\/one"/],
    [
      "an object that is being deleted with existing: adopt",
      { deletionTimestamp: "x" },
      "adopt",
      /cannot be adopted: it is being deleted/,
    ],
  ];
  for (const [title, metadata, policy, message] of refused)
    test(`rejects ${title}`, () => {
      assert.throws(() => checkAdoption(desired, objectOf(metadata), policy), message);
    });

  test("retries after 10 s without counting an attempt if the object is being deleted", () => {
    const live = objectOf({ deletionTimestamp: "x" });
    for (const policy of ["adopt", "refuse"] as const)
      try {
        checkAdoption(desired, live, policy);
        assert.unreachable();
      } catch (error) {
        assert.is((error as RetryAfterError).name, "RetryAfterError");
        assert.is((error as RetryAfterError).retryAfterMs, 10_000);
      }
  });

  test("accepts an object without owner, or with an owner that is not its controller", () => {
    for (const metadata of [{}, { ownerReferences: [owner("2")] }, { ownerReferences: [owner("1", true)] }])
      assert.is(checkAdoption(desired, objectOf(metadata), "adopt"), undefined);
  });
});
