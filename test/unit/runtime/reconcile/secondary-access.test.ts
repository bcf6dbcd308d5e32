import { type KubernetesObject, type ResourceDefinition, hasType } from "#runtime/base/kubernetes-object.js";
import type { EventSource } from "#runtime/sources/event-source.js";
import { type SecondarySources } from "#runtime/sources/controller-sources.js";
import { SecondaryAccess } from "#runtime/reconcile/reconcile-context.js";
import { builtinDefinition } from "../../../support/kinds/kind-definitions.js";
import { assert, suite } from "../../../support/suite.js";
import { configMap, dependentOf, workflowOf } from "../workflow/graphs.js";

const secret = builtinDefinition("v1", "Secret");
const node = builtinDefinition("v1", "Node");
const primary: KubernetesObject = {
  apiVersion: "example.com/v1",
  kind: "Page",
  metadata: { name: "one", namespace: "home" },
};

function objectOf(name: string, resourceVersion = "1", namespace: string | undefined = "home"): KubernetesObject {
  return { apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace, resourceVersion } };
}

/** An event source that knows these resources, and others by key. */
function sourceOf(
  name: string,
  type: ResourceDefinition | string | undefined,
  { related = [], byKey }: { related?: unknown[]; byKey?: { [key: string]: unknown } } = {},
): EventSource {
  return {
    name,
    type,
    health: { status: "healthy" },
    start: async () => {},
    stop: async () => {},
    secondariesOf: () => related,
    ...(byKey === undefined ? {} : { get: (key: string) => byKey[key] }),
  };
}

function registryOf(sources: readonly EventSource[]): SecondarySources {
  const get = (name: string) => sources.find((source) => source.name === name);
  return {
    get,
    find: (type, name) =>
      sources.filter((source) => hasType(source, type) && (name === undefined || source.name === name)),
    register: async (source) => source,
    deregister: async () => {},
    names: () => sources.map(({ name }) => name),
    activate: () => Promise.resolve(),
    load: async () => {},
  };
}

function accessTo(...sources: EventSource[]): SecondaryAccess {
  return new SecondaryAccess(registryOf(sources), workflowOf([]));
}

suite("SecondaryAccess", (test) => {
  test("returns the only resource of a type, or undefined", () => {
    const object = objectOf("a");
    const access = accessTo(sourceOf("maps", configMap, { related: [object] }), sourceOf("secrets", secret));
    assert.is(access.find(primary, configMap), object);
    assert.is(access.find(primary, secret), undefined);
  });

  test("throws an error with advice if there are several resources of a type", () => {
    const access = accessTo(sourceOf("maps", configMap, { related: [objectOf("a"), objectOf("b")] }));
    assert.throws(
      () => access.find(primary, configMap),
      /^2 resources of the type ConfigMap\.v1 belong to Page "home\/one"; ask for one by its name/,
    );
    assert.is(access.list(primary, configMap).length, 2);
  });

  test("returns the latest version of an object in two event sources", () => {
    const [older, newer] = [objectOf("a", "9"), objectOf("a", "10")];
    const access = accessTo(
      sourceOf("x", configMap, { related: [older] }),
      sourceOf("y", configMap, { related: [newer] }),
    );
    assert.is(access.find(primary, configMap), newer);
    assert.equal(access.list(primary, configMap), [older, newer]);
    assert.equal(access.list(primary, configMap, { deduplicated: true }), [newer]);
  });

  test("selects an event source by name", () => {
    const access = accessTo(
      sourceOf("x", configMap, { related: [objectOf("a")] }),
      sourceOf("y", configMap, { related: [objectOf("b")] }),
    );
    assert.is((access.find(primary, configMap, { source: "y" }) as KubernetesObject).metadata.name, "b");
    assert.equal(access.list(primary, configMap, { source: "x" }), [objectOf("a")]);
  });

  test("returns only resources related to the primary from a named event source", () => {
    const [related, unrelated] = [objectOf("a"), objectOf("b")];
    const byKey = { "home/a": related, "home/b": unrelated };
    const access = accessTo(sourceOf("maps", configMap, { related: [related], byKey }));
    assert.equal(access.list(primary, configMap, { source: "maps" }), [related]);
    assert.is(access.find(primary, configMap, { source: "maps" }), related);
  });

  test("combines all event sources of a type unless one is named", () => {
    const [a, b] = [objectOf("a"), objectOf("b")];
    const access = accessTo(sourceOf("x", configMap, { related: [a] }), sourceOf("y", configMap, { related: [b] }));
    assert.equal(access.list(primary, configMap), [a, b]);
    assert.throws(() => access.find(primary, configMap), "2 resources of the type ConfigMap.v1");
    assert.is(access.find(primary, configMap, { source: "y" }), b);
  });

  test("returns an object by name, in the namespace of the primary by default, even if unrelated", () => {
    const byKey = { "home/a": objectOf("a"), "away/a": objectOf("a", "1", "away") };
    const access = accessTo(
      sourceOf("maps", configMap, { byKey }),
      sourceOf("nodes", node, { byKey: { a: objectOf("a", "1", "") } }),
    );
    assert.is(access.find(primary, configMap, { name: "a" }), byKey["home/a"]);
    assert.is(access.find(primary, configMap, { name: "a", namespace: "away" }), byKey["away/a"]);
    assert.is(access.find(primary, configMap, { name: "b" }), undefined);
    assert.is((access.find(primary, node, { name: "a" }) as KubernetesObject).metadata.name, "a");
  });

  test("rejects a lookup by name in an event source without keys, and by namespace alone", () => {
    const access = accessTo(sourceOf("maps", configMap));
    assert.throws(() => access.find(primary, configMap, { name: "a" }), 'event source "maps" cannot look up');
    assert.throws(() => access.find(primary, configMap, { namespace: "a" }), "without a name");
  });

  test("throws an error with the available types for an unknown type", () => {
    const access = accessTo(sourceOf("maps", configMap), sourceOf("schemas", "Schema"), sourceOf("ticks", undefined));
    const listed = 'there are ConfigMap.v1 ("maps"), Schema ("schemas"), "ticks"';
    const none = `no event source of the controller of pages has the type Secret.v1; ${listed}`;
    assert.throws(
      () => access.find(primary, secret),
      (error: Error) => error.message === none,
    );
    assert.throws(
      () => access.list(primary, secret),
      (error: Error) => error.message === none,
    );
    const other = `no event source "maps" of the controller of pages has the type Secret.v1; ${listed}`;
    assert.throws(
      () => access.find(primary, secret, { source: "maps" }),
      (error: Error) => error.message === other,
    );
    assert.throws(() => accessTo().find(primary, secret), "it has no event sources");
  });

  test("returns nothing for the type of an inactive dependent, unless an event source is named", () => {
    const dependents = [dependentOf("s", { resource: secret, activationCondition: () => false }), dependentOf("m")];
    const access = new SecondaryAccess(registryOf([]), workflowOf(dependents));
    assert.is(access.find(primary, secret), undefined);
    assert.equal(access.list(primary, secret), []);
    assert.throws(() => access.find(primary, secret, { source: "s" }), 'no event source "s"');
    assert.throws(() => access.find(primary, configMap), "no event source");
  });

  test("does not deduplicate custom types without versions", () => {
    const access = accessTo(sourceOf("x", "Schema", { related: ["a"] }), sourceOf("y", "Schema", { related: ["a"] }));
    assert.equal(access.list(primary, "Schema"), ["a", "a"]);
    assert.throws(() => access.find(primary, "Schema"), "2 resources of the type Schema");
    assert.throws(
      () => access.list(primary, "Schema", { deduplicated: true }),
      "deduplicated is for Kubernetes' kinds",
    );
    assert.is(access.find(primary, "Schema", { source: "x" }), "a");
  });
});
