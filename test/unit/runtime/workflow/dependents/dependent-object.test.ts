import { hasLink, linkOf } from "#runtime/base/primary-link.js";
import { completeDesired } from "#runtime/dependents/kubernetes-reconciler.js";
import type { KubernetesDependent } from "#runtime/workflow/workflow-definition.js";
import { defineResource } from "@gen-operator/runtime/codegen";
import { assert, suite } from "../../../../support/suite.js";

const facts = { version: "v1", scope: "Namespaced", hasStatusSubresource: false, isCustom: true, schema: {} } as const;
const definition = defineResource({ ...facts, group: "example.com", kind: "Page", plural: "pages" });
const resource = defineResource({ ...facts, group: "", kind: "ConfigMap", plural: "configmaps" });
const primary = { apiVersion: "example.com/v1", kind: "Page", metadata: { name: "one", namespace: "home", uid: "u1" } };

const dependentOf = (rest: Partial<KubernetesDependent> = {}): KubernetesDependent => ({
  name: "map",
  resource,
  dependsOn: [],
  desired: () => ({}),
  ...rest,
});

function complete(
  desired: object,
  options: { dependent?: Partial<KubernetesDependent>; namespaces?: readonly string[]; item?: string } = {},
) {
  const { dependent: rest, ...place } = options;
  return completeDesired(desired, { dependent: dependentOf(rest), primary, definition, label: "page", ...place });
}

suite("completeDesired", (test) => {
  test("sets the namespace and the owner reference of the primary", () => {
    assert.equal(complete({ metadata: { name: "x" }, data: { a: "1" } }), {
      metadata: {
        name: "x",
        namespace: "home",
        labels: { "gen-operator.dev/controller": "page" },
        annotations: { "gen-operator.dev/dependent": "map", "gen-operator.dev/object": "home/x" },
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

  test("rejects an object of another kind and accepts an explicit matching one", () => {
    const metadata = { name: "x" };
    assert.is(complete({ apiVersion: "v1", kind: "ConfigMap", metadata }).metadata.name, "x");
    assert.throws(
      () => complete({ apiVersion: "v1", kind: "Secret", metadata }),
      'desired() of dependent "map" returned a Secret of v1, and the dependent is a ConfigMap of v1',
    );
  });

  test("rejects invalid base64 with the name of its field", () => {
    const metadata = { name: "x" };
    const secret = defineResource({ ...facts, group: "", kind: "Secret", plural: "secrets" });
    const dependent = { resource: secret };
    for (const value of ["plain text", "YQ", "YQ=", "Y===", "YQ==x"])
      assert.throws(
        () => complete({ metadata, data: { good: "YQ==", password: value } }, { dependent }),
        'desired() of dependent "map" returned invalid base64 in data.password; encode the value, or use stringData',
      );
    for (const value of ["", "YQ==", "YWI=", "YWJj", "YW\r\nJj"])
      complete({ metadata, data: { value } }, { dependent });
    complete({ metadata, stringData: { password: "plain text" } }, { dependent });
    complete({ metadata, data: { password: "plain text" } });
    assert.throws(
      () => complete({ metadata, binaryData: { logo: "plain text" } }),
      "returned invalid base64 in binaryData.logo; encode the value, or use data",
    );
  });

  test("links the object by annotations if an owner reference is impossible", () => {
    const { metadata } = complete(
      { metadata: { name: "x" } },
      { dependent: { deletion: "ordered", namespace: "away" } },
    );
    assert.equal(metadata, {
      name: "x",
      namespace: "away",
      labels: { "gen-operator.dev/controller": "page" },
      annotations: {
        "gen-operator.dev/primary-name": "one",
        "gen-operator.dev/primary-namespace": "home",
        "gen-operator.dev/primary-type": "Page.example.com",
        "gen-operator.dev/primary-uid": "u1",
        "gen-operator.dev/dependent": "map",
        "gen-operator.dev/object": "away/x",
      },
    });
  });

  test("rejects a namespace that the controller does not watch", () => {
    const free = { deletion: "ordered" } as const;
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

  test("adds item, dependent, object and controller to labels and annotations", () => {
    const { metadata } = completeDesired(
      { metadata: { name: "x", annotations: { theirs: "y" }, labels: { app: "z" } } },
      { dependent: dependentOf(), primary, definition, item: "k", label: "page" },
    );
    assert.equal(metadata.annotations, {
      theirs: "y",
      "gen-operator.dev/dependent": "map",
      "gen-operator.dev/object": "home/x",
      "gen-operator.dev/item": "k",
    });
    assert.equal(metadata.labels, { app: "z", "gen-operator.dev/controller": "page" });
  });

  test("rejects another value for the controller label", () => {
    const completeWith = (value: string) =>
      completeDesired(
        { metadata: { name: "x", labels: { "gen-operator.dev/controller": value } } },
        { dependent: dependentOf(), primary, definition, label: "page" },
      );
    assert.is(completeWith("page").metadata.labels?.["gen-operator.dev/controller"], "page");
    assert.throws(
      () => completeWith("other"),
      (error: Error) =>
        error.name === "TerminalError" &&
        error.message ===
          'desired() of dependent "map" sets the label gen-operator.dev/controller to "other", which the runtime sets itself; leave it out',
    );
  });

  test("sets the controller label even if desired() returns undefined for it", () => {
    const { metadata } = complete({
      metadata: { name: "x", labels: { app: "z", "gen-operator.dev/controller": undefined } },
    });
    assert.equal(metadata.labels, { app: "z", "gen-operator.dev/controller": "page" });
  });

  test("replaces an explicit owner reference of the primary and keeps others", () => {
    const own = { apiVersion: "example.com/v1", kind: "Page", name: "one", uid: "u1" };
    const { metadata } = complete({ metadata: { name: "x", ownerReferences: [own, { ...own, uid: "u2" }] } });
    assert.equal(
      metadata.ownerReferences?.map(({ uid, controller }) => [uid, controller]),
      [
        ["u2", undefined],
        ["u1", true],
      ],
    );
  });

  test("rejects another namespace with an owner reference, invalid results, and missing selector labels", () => {
    assert.throws(
      () => complete({ metadata: { name: "x", namespace: "away" } }),
      'puts the object into namespace "away", where no owner reference to its primary is allowed; state deletion: ordered',
    );
    assert.throws(
      () => completeDesired(undefined, { dependent: dependentOf(), primary, definition, label: "page", item: "k" }),
      'desired() of dependent "map" for its item "k" returned undefined',
    );
    const selected = { dependent: { labelSelector: "app=x" } };
    assert.throws(
      () => complete({ metadata: { name: "x" } }, selected),
      'labels that its labelSelector "app=x" asks for',
    );
  });
});

suite("link of a dependent", (test) => {
  test("contains name, labels, annotations and owner references, and requires all of them on a live object", () => {
    const desired = complete({ metadata: { name: "x", labels: { a: "b" }, annotations: { c: "d" } }, data: {} });
    const link = linkOf(desired.metadata);
    assert.equal(link, {
      name: "x",
      namespace: "home",
      labels: { "gen-operator.dev/controller": "page" },
      annotations: { "gen-operator.dev/dependent": "map", "gen-operator.dev/object": "home/x" },
      ownerReferences: desired.metadata.ownerReferences,
    });
    assert.is(hasLink(link, desired.metadata), true);
    for (const missing of [{ labels: {} }, { annotations: {} }, { ownerReferences: [] }])
      assert.is(hasLink({ ...link, ...missing }, desired.metadata), false);
  });
});
