import type { KubernetesObject, ObjectMeta } from "#runtime/base/kubernetes-object.js";
import { defineResource } from "#runtime/codegen/define-resource.js";
import { createOwnerMapping } from "#runtime/events/owner-mapping.js";
import { assert, suite } from "../../../support/suite.js";

const facts = { version: "v1", hasStatusSubresource: true, isCustom: true, schema: {} };
const page = defineResource({ ...facts, group: "example.com", kind: "Page", plural: "pages", scope: "Namespaced" });
const site = defineResource({ ...facts, group: "example.com", kind: "Site", plural: "sites", scope: "Cluster" });
const namespace = defineResource({ ...facts, group: "", kind: "Namespace", plural: "namespaces", scope: "Cluster" });

function objectWith(metadata: Partial<ObjectMeta>): KubernetesObject {
  return { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "child", namespace: "home", ...metadata } };
}

const owner = { apiVersion: "example.com/v1", kind: "Page", name: "one", uid: "u1" };

suite("owner mapping", (test) => {
  test("an owner reference leads to the primary in the namespace of the object", () => {
    assert.equal(createOwnerMapping(page)(objectWith({ ownerReferences: [owner] })), ["home/one"]);
  });

  test("the version of the owner does not matter, its group and kind do", () => {
    const references = [
      { ...owner, apiVersion: "example.com/v1beta1", name: "old" },
      { ...owner, apiVersion: "example.org/v1", name: "other-group" },
      { ...owner, apiVersion: "v1", name: "core" },
      { ...owner, kind: "Site", name: "other-kind" },
    ];
    assert.equal(createOwnerMapping(page)(objectWith({ ownerReferences: references })), ["home/old"]);
  });

  test("all owners of the kind are found", () => {
    const references = [owner, { ...owner, name: "two", uid: "u2" }];
    assert.equal(createOwnerMapping(page)(objectWith({ ownerReferences: references })), ["home/one", "home/two"]);
  });

  test("a cluster-scoped owner has a key without a namespace", () => {
    const references = [{ ...owner, kind: "Site" }];
    assert.equal(createOwnerMapping(site)(objectWith({ ownerReferences: references })), ["one"]);
  });

  test("an owner of the core group is recognised", () => {
    const references = [{ apiVersion: "v1", kind: "Namespace", name: "home", uid: "u" }];
    assert.equal(createOwnerMapping(namespace)(objectWith({ ownerReferences: references })), ["home"]);
  });

  test("annotations lead to a primary in another namespace", () => {
    const annotations = {
      "gen-operator.dev/primary-name": "one",
      "gen-operator.dev/primary-namespace": "away",
      "gen-operator.dev/primary-type": "Page.example.com",
    };
    assert.equal(createOwnerMapping(page)(objectWith({ annotations })), ["away/one"]);
    assert.equal(createOwnerMapping(site)(objectWith({ annotations })), [], "another kind");
  });

  test("a primary that both tell is named once", () => {
    const annotations = {
      "gen-operator.dev/primary-name": "one",
      "gen-operator.dev/primary-namespace": "home",
      "gen-operator.dev/primary-type": "Page.example.com",
    };
    assert.equal(createOwnerMapping(page)(objectWith({ annotations, ownerReferences: [owner] })), ["home/one"]);
  });

  test("an object that belongs to nobody maps to nothing", () => {
    assert.equal(createOwnerMapping(page)(objectWith({ labels: { a: "b" } })), []);
  });
});
