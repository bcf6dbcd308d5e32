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

suite("OwnerGraph", (test) => {
  test("returns the dependents that currently reference an owner, after any sequence of changes", () => {
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
    ["keeps the object if its owner exists", ["solid"], false, [], { kind: "keep", withoutOwners: [] }],
    [
      "keeps the object and removes the other owner references if one owner exists",
      ["solid", "dangling", "waiting"],
      true,
      [],
      { kind: "keep", withoutOwners: ["1", "2"] },
    ],
    [
      "deletes in the background if no owner exists",
      ["dangling"],
      true,
      [],
      { kind: "delete", propagationPolicy: "Background" },
    ],
    [
      "deletes in the background if an owner waits for it and it has no dependents",
      ["waiting"],
      false,
      [],
      { kind: "delete", propagationPolicy: "Background" },
    ],
    [
      "deletes in the foreground if an owner waits for it and it has dependents",
      ["waiting"],
      true,
      [],
      { kind: "delete", propagationPolicy: "Foreground" },
    ],
    [
      "orphans its dependents if it has the orphan finalizer",
      ["dangling"],
      true,
      ["orphan"],
      { kind: "delete", propagationPolicy: "Orphan" },
    ],
    [
      "deletes in the foreground if it has the foregroundDeletion finalizer",
      ["dangling"],
      true,
      ["foregroundDeletion"],
      { kind: "delete", propagationPolicy: "Foreground" },
    ],
  ];
  for (const [title, given, hasDependents, finalizers, want] of verdicts) {
    test(`${title}`, () => {
      const states = given.map((state, index) => ({ uid: String(index), state }));
      assert.equal(judge(owned("x", { finalizers }), states, { hasDependents }), want);
    });
  }

  const reference = { apiVersion: "v1", kind: "ConfigMap", name: "owner", uid: "u" };
  const scopes: [title: string, owner: object, dependent: object, reference: OwnerReference, want: boolean][] = [
    ["to an owner in the same namespace", { namespace: "a" }, { namespace: "a" }, reference, true],
    ["to an owner in another namespace", { namespace: "a" }, { namespace: "b" }, reference, false],
    ["to a cluster-scoped owner", { namespaced: false }, { namespace: "b" }, reference, true],
    ["of a cluster-scoped object to a namespaced owner", { namespace: "a" }, { namespaced: false }, reference, false],
    ["with another uid", { namespace: "a" }, { namespace: "a" }, { ...reference, uid: "v" }, false],
    ["with another name", { namespace: "a" }, { namespace: "a" }, { ...reference, name: "other" }, false],
    ["with another kind", { namespace: "a" }, { namespace: "a" }, { ...reference, kind: "Secret" }, false],
    ["with another group", { namespace: "a" }, { namespace: "a" }, { ...reference, apiVersion: "apps/v1" }, false],
  ];
  for (const [title, owner, dependent, given, want] of scopes) {
    test(`${want ? "accepts" : "ignores"} an owner reference ${title}`, () => {
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
