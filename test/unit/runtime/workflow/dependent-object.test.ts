import { completeDesired } from "#runtime/workflow/dependent-object.js";
import type { KubernetesDependent } from "#runtime/workflow/workflow-definition.js";
import { defineResource } from "@gen-operator/runtime/codegen";
import { assert, suite } from "../../../support/suite.js";

const facts = { version: "v1", scope: "Namespaced", hasStatusSubresource: false, isCustom: true, schema: {} } as const;
const definition = defineResource({ ...facts, group: "example.com", kind: "Page", plural: "pages" });
const resource = defineResource({ ...facts, group: "", kind: "ConfigMap", plural: "configmaps" });
const primary = { apiVersion: "example.com/v1", kind: "Page", metadata: { name: "one", namespace: "home", uid: "u1" } };

function complete(
  desired: object,
  options: { dependent?: Partial<KubernetesDependent>; namespaces?: readonly string[]; item?: string } = {},
) {
  const { dependent: rest, ...place } = options;
  const dependent: KubernetesDependent = {
    name: "map",
    resource,
    dependsOn: [],
    desired: () => ({}),
    isGarbageCollected: true,
    ...rest,
  };
  return completeDesired(desired, { dependent, primary, definition, ...place });
}

suite("completeDesired", (test) => {
  test("the namespace and the owner are those of the primary", () => {
    assert.equal(complete({ metadata: { name: "x" }, data: { a: "1" } }), {
      metadata: {
        name: "x",
        namespace: "home",
        annotations: { "gen-operator.dev/dependent": "map" },
        ownerReferences: [
          {
            apiVersion: "example.com/v1",
            kind: "Page",
            name: "one",
            uid: "u1",
            controller: true,
            blockOwnerDeletion: true,
          },
        ],
      },
      data: { a: "1" },
    });
  });

  test("an object of another kind is refused, and one that states its own is not", () => {
    const metadata = { name: "x" };
    assert.is(complete({ apiVersion: "v1", kind: "ConfigMap", metadata }).metadata.name, "x");
    assert.throws(
      () => complete({ apiVersion: "v1", kind: "Secret", metadata }),
      'desired() of dependent "map" returned a Secret of v1, and the dependent is a ConfigMap of v1',
    );
  });

  test("annotations tie what no owner reference can", () => {
    const { metadata } = complete(
      { metadata: { name: "x" } },
      { dependent: { isGarbageCollected: false, namespace: "away" } },
    );
    assert.equal(metadata, {
      name: "x",
      namespace: "away",
      annotations: {
        "gen-operator.dev/primary-name": "one",
        "gen-operator.dev/primary-namespace": "home",
        "gen-operator.dev/primary-type": "Page.example.com",
        "gen-operator.dev/dependent": "map",
      },
    });
  });

  test("a namespace that is not watched is refused, because nothing there would be seen again", () => {
    const free = { isGarbageCollected: false };
    const desired = { metadata: { name: "x", namespace: "away" } };
    assert.is(complete(desired, { dependent: free }).metadata.namespace, "away");
    assert.is(complete(desired, { dependent: free, namespaces: ["home", "away"] }).metadata.namespace, "away");
    assert.throws(
      () => complete(desired, { dependent: free, namespaces: ["home", "garden"] }),
      'puts the object into namespace "away", and the controller watches home, garden only',
    );
    assert.throws(
      () => complete(desired, { dependent: { ...free, namespace: "cellar" }, namespaces: ["cellar"] }),
      "watches cellar only",
    );
  });
});
