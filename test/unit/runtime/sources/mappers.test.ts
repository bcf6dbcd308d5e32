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

suite("owner mappers", (test) => {
  test("map an owner reference to the primary in the namespace of the object", () => {
    assert.equal(byOwnerReference(Page)(objectWith({ ownerReferences: [owner] })), ["home/one"]);
  });

  test("compare group and kind of the owner, but not its version", () => {
    const references = [
      { ...owner, apiVersion: "example.com/v1beta1", name: "old" },
      { ...owner, apiVersion: "example.org/v1", name: "other-group" },
      { ...owner, apiVersion: "v1", name: "core" },
      { ...owner, kind: "Site", name: "other-kind" },
    ];
    assert.equal(byOwnerReference(Page)(objectWith({ ownerReferences: references })), ["home/old"]);
  });

  test("return all owners of the kind", () => {
    const references = [owner, { ...owner, name: "two", uid: "u2" }];
    assert.equal(byOwnerReference(Page)(objectWith({ ownerReferences: references })), ["home/one", "home/two"]);
  });

  test("return a key without namespace for a cluster-scoped owner", () => {
    assert.equal(byOwnerReference(Site)(objectWith({ ownerReferences: [{ ...owner, kind: "Site" }] })), ["one"]);
  });

  test("support an owner of the core group", () => {
    const references = [{ apiVersion: "v1", kind: "Namespace", name: "home", uid: "u" }];
    assert.equal(byOwnerReference(Namespace)(objectWith({ ownerReferences: references })), ["home"]);
  });

  test("ignore the group of the owner in byOwnerType", () => {
    const references = [{ ...owner, apiVersion: "example.org/v1" }];
    assert.equal(byOwnerType(Page)(objectWith({ ownerReferences: references })), ["home/one"]);
    assert.equal(byOwnerType(Site)(objectWith({ ownerReferences: references })), []);
  });

  test("return nothing for an object without a link", () => {
    assert.equal(byAnyLink(Page)(objectWith({ labels: { a: "b" } })), []);
  });
});

suite("label and annotation mappers", (test) => {
  const keys = { name: "owner", namespace: "owner-namespace", type: "owner-type" };

  test("return the primary in the namespace of the object, or in that of a namespace key", () => {
    const labels = { owner: "one", "owner-namespace": "away" };
    assert.equal(byLabel(Page, { name: "owner" })(objectWith({ labels })), ["home/one"]);
    assert.equal(byLabel(Page, keys)(objectWith({ labels })), ["away/one"]);
    assert.equal(byAnnotation(Page, keys)(objectWith({ annotations: labels })), ["away/one"]);
  });

  test("return nothing without a name", () => {
    assert.equal(byLabel(Page, keys)(objectWith({ labels: { "owner-namespace": "away" } })), []);
    assert.equal(byLabel(Page, keys)(objectWith({})), []);
    assert.equal(byAnnotation(Page, keys)(objectWith({ labels: { owner: "one" } })), [], "a label is no annotation");
  });

  test("return a key without namespace if the namespace key is missing", () => {
    assert.equal(byLabel(Page, keys)(objectWith({ labels: { owner: "one" } })), ["one"]);
  });

  test("return a key without namespace for a cluster-scoped primary", () => {
    const labels = { owner: "one", "owner-namespace": "away" };
    assert.equal(byLabel(Site, keys)(objectWith({ labels })), ["one"]);
    assert.equal(byLabel(Site, { name: "owner" })(objectWith({ labels })), ["one"]);
  });

  test("compare the type of the primary only if it is set", () => {
    const labels = { owner: "one", "owner-namespace": "home" };
    const ofType = (type: string) => objectWith({ labels: { ...labels, "owner-type": type } });
    assert.equal(byLabel(Page, keys)(ofType("Page.example.com")), ["home/one"]);
    assert.equal(byLabel(Page, keys)(ofType("Site.example.com")), []);
    assert.equal(byLabel(Page, keys)(objectWith({ labels })), ["home/one"]);
  });
});

suite("mappers of runtime links", (test) => {
  const annotations = {
    "gen-operator.dev/primary-name": "one",
    "gen-operator.dev/primary-namespace": "away",
    "gen-operator.dev/primary-type": "Page.example.com",
  };

  test("map annotations to a primary in another namespace", () => {
    assert.equal(byDefaultAnnotations(Page)(objectWith({ annotations })), ["away/one"]);
    assert.equal(byDefaultAnnotations(Site)(objectWith({ annotations })), [], "another kind");
    assert.equal(byDefaultAnnotations(Page)(objectWith({ ownerReferences: [owner] })), []);
  });

  test("return a primary once that both owner reference and annotations name", () => {
    const both = { annotations: { ...annotations, "gen-operator.dev/primary-namespace": "home" } };
    assert.equal(byAnyLink(Page)(objectWith({ ...both, ownerReferences: [owner] })), ["home/one"]);
    assert.equal(byAnyLink(Page)(objectWith({ annotations, ownerReferences: [owner] })), ["home/one", "away/one"]);
  });
});
