import { readFileSync } from "node:fs";
import { join } from "node:path";
import { untypedResource } from "#runtime/codegen/define-resource.js";
import { repositoryRoot } from "../../../support/repository.js";
import { assert, suite } from "../../../support/suite.js";

const isCustom = (apiVersion: string) =>
  untypedResource({ apiVersion, kind: "Any", plural: "anies", scope: "Namespaced" }).definition.isCustom;

suite("untypedResource", (test) => {
  test("takes each kind that the API server serves by itself for a built-in one", () => {
    const file = join(repositoryRoot, "generator/data/kubernetes-1.36-discovery.json");
    const served = JSON.parse(readFileSync(file, "utf8")) as { group: string; version: string }[];
    const wrong = served
      .map(({ group, version }) => (group === "" ? version : `${group}/${version}`))
      .filter((apiVersion) => isCustom(apiVersion));
    assert.equal(wrong, []);
  });

  test("takes kinds of other groups of Kubernetes for custom ones", () => {
    const custom = ["gateway.networking.k8s.io/v1", "snapshot.storage.k8s.io/v1", "cluster.x-k8s.io/v1beta1"];
    assert.equal(custom.filter(isCustom), custom);
  });
});
