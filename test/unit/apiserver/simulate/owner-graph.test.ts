import type { OwnerReference } from "#apiserver/simulate/feed/kubernetes-object.js";
import {
  judge,
  names,
  type OwnedObject,
  OwnerGraph,
  type ReferenceState,
} from "#apiserver/simulate/garbage-collection.js";
import fc from "../../../support/fast-check.js";
import { assert, suite } from "../../../support/suite.js";

suite("owner graph", (test) => {
  test("dependents are those that name the owner now, whatever came before", () => {
    const change = fc.record({
      uid: fc.constantFrom("a", "b", "c", "d"),
      owners: fc.uniqueArray(fc.constantFrom("a", "b", "c", "x")),
      isDeleted: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(change), (changes) => {
        const graph = new OwnerGraph();
        const expected = new Map<string, string[]>();
        for (const { uid, owners, isDeleted } of changes) {
          if (isDeleted) graph.delete(uid);
          else graph.set(owned(uid, { owners }));
          expected.delete(uid);
          if (!isDeleted) expected.set(uid, owners);
        }
        for (const owner of ["a", "b", "c", "d", "x"]) {
          const dependents = [...expected].filter(([, owners]) => owners.includes(owner)).map(([uid]) => uid);
          assert.equal(uidsOf(graph.dependentsOf(owner)).sort(), dependents.sort());
        }
      }),
    );
  });

  const verdicts: [
    title: string,
    given: ReferenceState[],
    hasDependents: boolean,
    finalizers: string[],
    want: unknown,
  ][] = [
    ["one owner exists", ["solid"], false, [], { kind: "keep", withoutOwners: [] }],
    [
      "one exists, others do not",
      ["solid", "dangling", "waiting"],
      true,
      [],
      { kind: "keep", withoutOwners: ["1", "2"] },
    ],
    ["none exists", ["dangling"], true, [], { kind: "delete", propagationPolicy: "Background" }],
    ["an owner waits for a leaf", ["waiting"], false, [], { kind: "delete", propagationPolicy: "Background" }],
    ["an owner waits for a branch", ["waiting"], true, [], { kind: "delete", propagationPolicy: "Foreground" }],
    ["its own finalizer says orphan", ["dangling"], true, ["orphan"], { kind: "delete", propagationPolicy: "Orphan" }],
    [
      "its own finalizer says foreground",
      ["dangling"],
      true,
      ["foregroundDeletion"],
      { kind: "delete", propagationPolicy: "Foreground" },
    ],
  ];
  for (const [title, given, hasDependents, finalizers, want] of verdicts) {
    test(`verdict: ${title}`, () => {
      const states = given.map((state, index) => ({ uid: String(index), state }));
      assert.equal(judge(owned("x", { finalizers }), states, { hasDependents }), want);
    });
  }

  const reference = { apiVersion: "v1", kind: "ConfigMap", name: "owner", uid: "u" };
  const scopes: [title: string, owner: object, dependent: object, reference: OwnerReference, want: boolean][] = [
    ["an owner in the same namespace", { namespace: "a" }, { namespace: "a" }, reference, true],
    ["an owner in another namespace", { namespace: "a" }, { namespace: "b" }, reference, false],
    ["a cluster-scoped owner", { namespaced: false }, { namespace: "b" }, reference, true],
    ["a namespaced owner of a cluster-scoped object", { namespace: "a" }, { namespaced: false }, reference, false],
    ["another uid", { namespace: "a" }, { namespace: "a" }, { ...reference, uid: "v" }, false],
    ["another name", { namespace: "a" }, { namespace: "a" }, { ...reference, name: "other" }, false],
    ["another kind", { namespace: "a" }, { namespace: "a" }, { ...reference, kind: "Secret" }, false],
    ["another group", { namespace: "a" }, { namespace: "a" }, { ...reference, apiVersion: "apps/v1" }, false],
  ];
  for (const [title, owner, dependent, given, want] of scopes) {
    test(`a reference to ${title} ${want ? "counts" : "does not count"}`, () => {
      assert.is(names(given, owned("u", { name: "owner", ...owner }), owned("d", dependent)), want);
    });
  }
});

interface Given {
  owners?: string[];
  finalizers?: string[];
  name?: string;
  namespace?: string;
  namespaced?: boolean;
}

function owned(
  uid: string,
  { owners = [], finalizers = [], name = uid, namespace, namespaced = true }: Given,
): OwnedObject {
  const ownerReferences = owners.map((owner) => ({ apiVersion: "v1", kind: "ConfigMap", name: owner, uid: owner }));
  const scope = namespace === undefined ? {} : { namespace };
  return {
    kind: { group: "", version: "v1", kind: "ConfigMap", plural: "configmaps", namespaced, verbs: [] },
    object: { metadata: { name, uid, resourceVersion: "1", finalizers, ownerReferences, ...scope } },
  };
}

function uidsOf(objects: OwnedObject[]): string[] {
  return objects.map(({ object }) => object.metadata.uid);
}
