// JOSDK's MappersTest, and what ours promise besides.
import type { KubernetesObject, ObjectMeta } from "#runtime/base/kubernetes-object.js";
import { defineResource } from "#runtime/api/define-resource.js";
import {
  byAnnotation,
  byAnyLink,
  byDefaultAnnotations,
  byLabel,
  byOwnerReference,
  byOwnerType,
} from "#runtime/sources/mappers.js";
import { assert, suite } from "../../../support/suite.js";

const facts = { version: "v1", hasStatusSubresource: true, isCustom: true, schema: {} };
const Page = {
  definition: defineResource({ ...facts, group: "example.com", kind: "Page", plural: "pages", scope: "Namespaced" }),
};
const Site = {
  definition: defineResource({ ...facts, group: "example.com", kind: "Site", plural: "sites", scope: "Cluster" }),
};
const Namespace = {
  definition: defineResource({ ...facts, group: "", kind: "Namespace", plural: "namespaces", scope: "Cluster" }),
};

function objectWith(metadata: Partial<ObjectMeta>): KubernetesObject {
  return { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "child", namespace: "home", ...metadata } };
}

const owner = { apiVersion: "example.com/v1", kind: "Page", name: "one", uid: "u1" };

suite("mappers by owner", (test) => {
  test("an owner reference leads to the primary in the namespace of the object", () => {
    assert.equal(byOwnerReference(Page)(objectWith({ ownerReferences: [owner] })), ["home/one"]);
  });

  test("the version of the owner does not matter, its group and kind do", () => {
    const references = [
      { ...owner, apiVersion: "example.com/v1beta1", name: "old" },
      { ...owner, apiVersion: "example.org/v1", name: "other-group" },
      { ...owner, apiVersion: "v1", name: "core" },
      { ...owner, kind: "Site", name: "other-kind" },
    ];
    assert.equal(byOwnerReference(Page)(objectWith({ ownerReferences: references })), ["home/old"]);
  });

  test("all owners of the kind are found", () => {
    const references = [owner, { ...owner, name: "two", uid: "u2" }];
    assert.equal(byOwnerReference(Page)(objectWith({ ownerReferences: references })), ["home/one", "home/two"]);
  });

  test("a cluster-scoped owner has a key without a namespace", () => {
    assert.equal(byOwnerReference(Site)(objectWith({ ownerReferences: [{ ...owner, kind: "Site" }] })), ["one"]);
  });

  test("an owner of the core group is recognised", () => {
    const references = [{ apiVersion: "v1", kind: "Namespace", name: "home", uid: "u" }];
    assert.equal(byOwnerReference(Namespace)(objectWith({ ownerReferences: references })), ["home"]);
  });

  test("by type, the group of the owner does not matter either", () => {
    const references = [{ ...owner, apiVersion: "example.org/v1" }];
    assert.equal(byOwnerType(Page)(objectWith({ ownerReferences: references })), ["home/one"]);
    assert.equal(byOwnerType(Site)(objectWith({ ownerReferences: references })), []);
  });

  test("an object that belongs to nobody maps to nothing", () => {
    assert.equal(byAnyLink(Page)(objectWith({ labels: { a: "b" } })), []);
  });
});

suite("mappers by label and annotation", (test) => {
  const keys = { name: "owner", namespace: "owner-namespace", type: "owner-type" };

  test("the name leads to the primary in the namespace of the object, unless another one is to be named", () => {
    const labels = { owner: "one", "owner-namespace": "away" };
    assert.equal(byLabel(Page, { name: "owner" })(objectWith({ labels })), ["home/one"]);
    assert.equal(byLabel(Page, keys)(objectWith({ labels })), ["away/one"]);
    assert.equal(byAnnotation(Page, keys)(objectWith({ annotations: labels })), ["away/one"]);
  });

  test("without the name there is no primary", () => {
    assert.equal(byLabel(Page, keys)(objectWith({ labels: { "owner-namespace": "away" } })), []);
    assert.equal(byLabel(Page, keys)(objectWith({})), []);
    assert.equal(byAnnotation(Page, keys)(objectWith({ labels: { owner: "one" } })), [], "a label is no annotation");
  });

  test("a namespace that is to be named and is not means a primary without one", () => {
    assert.equal(byLabel(Page, keys)(objectWith({ labels: { owner: "one" } })), ["one"]);
  });

  test("a cluster-scoped primary never has a namespace", () => {
    const labels = { owner: "one", "owner-namespace": "away" };
    assert.equal(byLabel(Site, keys)(objectWith({ labels })), ["one"]);
    assert.equal(byLabel(Site, { name: "owner" })(objectWith({ labels })), ["one"]);
  });

  test("a type that is named must be the primary's; one that is not named may be anything", () => {
    const labels = { owner: "one", "owner-namespace": "home" };
    const ofType = (type: string) => objectWith({ labels: { ...labels, "owner-type": type } });
    assert.equal(byLabel(Page, keys)(ofType("Page.example.com")), ["home/one"]);
    assert.equal(byLabel(Page, keys)(ofType("Site.example.com")), []);
    assert.equal(byLabel(Page, keys)(objectWith({ labels })), ["home/one"]);
  });
});

suite("mappers by what the runtime writes", (test) => {
  const annotations = {
    "gen-operator.dev/primary-name": "one",
    "gen-operator.dev/primary-namespace": "away",
    "gen-operator.dev/primary-type": "Page.example.com",
  };

  test("annotations lead to a primary in another namespace", () => {
    assert.equal(byDefaultAnnotations(Page)(objectWith({ annotations })), ["away/one"]);
    assert.equal(byDefaultAnnotations(Site)(objectWith({ annotations })), [], "another kind");
    assert.equal(byDefaultAnnotations(Page)(objectWith({ ownerReferences: [owner] })), []);
  });

  test("a primary that owner reference and annotation tell is named once", () => {
    const both = { annotations: { ...annotations, "gen-operator.dev/primary-namespace": "home" } };
    assert.equal(byAnyLink(Page)(objectWith({ ...both, ownerReferences: [owner] })), ["home/one"]);
    assert.equal(byAnyLink(Page)(objectWith({ annotations, ownerReferences: [owner] })), ["home/one", "away/one"]);
  });
});
