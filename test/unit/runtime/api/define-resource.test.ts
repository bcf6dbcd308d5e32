import { readFileSync } from "node:fs";
import { join } from "node:path";
import { asStored, untypedResource } from "#runtime/api/define-resource.js";
import { ConfigMap, WebPage } from "#webpage/generated/index.js";
import { repositoryRoot } from "../../../support/repository.js";
import { assert, suite } from "../../../support/suite.js";

const isCustom = (apiVersion: string) =>
  untypedResource({ apiVersion, kind: "Any", plural: "anies", scope: "Namespaced" }).definition.isCustom;

const ref = { name: "home", namespace: "default" };

suite("asStored", (test) => {
  test("returns an object with its defaults and the metadata that the API server sets", () => {
    const { metadata, spec } = asStored(WebPage, { metadata: ref, spec: { html: "x" } });
    const { uid, creationTimestamp, ...rest } = metadata;
    assert.equal(rest, { ...ref, resourceVersion: "1", generation: 1 });
    assert.match(uid, /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/);
    assert.match(creationTimestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    assert.equal(spec, { html: "x", replicas: 1, exposed: false });
  });

  test("keeps the given values and does not modify the object", () => {
    const stated = { uid: "u", resourceVersion: "7", creationTimestamp: "2026-01-01T00:00:00Z", generation: 3 };
    const object = WebPage.parse({
      apiVersion: "example.com/v1",
      kind: "WebPage",
      metadata: { ...ref, ...stated },
      spec: { html: "x" },
      status: { ready: true },
    });
    const copy = structuredClone(object);
    assert.equal(asStored(WebPage, object), copy);
    const { metadata } = asStored(WebPage, { ...object, metadata: { ...ref, uid: undefined } });
    assert.type(metadata.uid, "string");
    assert.equal(object, copy);
  });

  test("assigns a unique uid, and no generation for built-in kinds", () => {
    const [first, second] = ["a", "b"].map((name) => asStored(ConfigMap, { metadata: { name, namespace: "default" } }));
    assert.is.not(first?.metadata.uid, second?.metadata.uid);
    assert.not("generation" in first!.metadata);
  });
});

suite("untypedResource", (test) => {
  test("treats every kind that kube-apiserver serves itself as built-in", () => {
    const file = join(repositoryRoot, "generator/data/kubernetes-1.36-discovery.json");
    const served = JSON.parse(readFileSync(file, "utf8")) as { group: string; version: string }[];
    const wrong = served
      .map(({ group, version }) => (group === "" ? version : `${group}/${version}`))
      .filter((apiVersion) => isCustom(apiVersion));
    assert.equal(wrong, []);
  });

  test("treats kinds of CRDs in *.k8s.io groups as custom", () => {
    const custom = ["gateway.networking.k8s.io/v1", "snapshot.storage.k8s.io/v1", "cluster.x-k8s.io/v1beta1"];
    assert.equal(custom.filter(isCustom), custom);
  });
});
