import { watchOf } from "#runtime/api/kubernetes-dependents.js";
import type { KubernetesDependent, ObjectReference } from "#runtime/workflow/workflow-definition.js";
import { builtinDefinition } from "../../../support/kinds/kind-definitions.js";
import { assert, suite } from "../../../support/suite.js";

const primary = {
  apiVersion: "example.com/v1",
  kind: "Page",
  metadata: { name: "one", namespace: "home" },
  spec: { name: "settings", empty: "", namespace: "elsewhere" },
};
type Page = typeof primary;

function watchFor(ref: ObjectReference<Page>, rest: Partial<KubernetesDependent> = {}) {
  const resource = rest.resource ?? builtinDefinition("v1", "ConfigMap");
  const dependent = { name: "a", dependsOn: [], mode: "readOnly", ...rest, resource, ref } as unknown;
  return watchOf(dependent as KubernetesDependent, new Map(), undefined);
}

suite("watch of a dependent with ref", (test) => {
  test("maps a primary to the key of the object, in its own or the referenced namespace", () => {
    const keysOf = (ref: ObjectReference<Page>, rest?: Partial<KubernetesDependent>) =>
      watchFor(ref, rest).primaryToSecondary?.(primary, { secondary: {} as never });
    const name = ({ primary: { spec } }: { primary: Page }) => spec.name;
    assert.equal(keysOf({ name }), ["home/settings"]);
    assert.equal(keysOf({ name, namespace: ({ primary: { spec } }) => spec.namespace }), ["elsewhere/settings"]);
    assert.equal(keysOf({ name, namespace: () => undefined }), ["home/settings"]);
    assert.equal(keysOf({ name: () => undefined }), []);
    assert.equal(keysOf({ name: ({ primary: { spec } }) => spec.empty }), []);
    assert.equal(keysOf({ name }, { resource: builtinDefinition("v1", "Node") }), ["settings"]);
  });

  test("covers the namespaces of the controller, all for ref.namespace functions, or only a constant one", () => {
    assert.is(watchFor({ name: "x" }).namespaces, undefined);
    assert.is(watchFor({ name: "x", namespace: () => "a" }).namespaces, "all");
    assert.equal(watchFor({ name: "x", namespace: "a" }).namespaces, ["a"]);
  });

  test("adds a constant name to the field selector, with special characters escaped", () => {
    assert.is(watchFor({ name: () => "x" }).fieldSelector, undefined);
    assert.is(watchFor({ name: "x" }, { fieldSelector: "type=Opaque" }).fieldSelector, "type=Opaque,metadata.name=x");
    assert.is(watchFor({ name: "x,y=z" }).fieldSelector, "metadata.name=x\\,y\\=z");
  });

  test("throws an error with the name of the dependent if ref.name returns no string", () => {
    const wrong = watchFor({ name: (() => 3) as never });
    assert.throws(
      () => wrong.primaryToSecondary?.(primary, { secondary: {} as never }),
      'ref.name of dependent "a" returned number',
    );
  });
});
