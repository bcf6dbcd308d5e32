import { inventoryAnnotationOf } from "#runtime/base/primary-link.js";
import {
  definitionOf,
  entryKeyOf,
  formatInventory,
  inventoryOf,
  parseInventory,
  removedOf,
  withoutEntries,
} from "#runtime/workflow/inventory.js";
import { builtinDefinition } from "../../../support/kind-definitions.js";
import { assert, suite } from "../../../support/suite.js";
import { dependentOf, workflowOf } from "./graphs.js";

const clusterRole = builtinDefinition("rbac.authorization.k8s.io/v1", "ClusterRole");
const workflow = workflowOf([
  dependentOf("map"),
  dependentOf("role", { resource: clusterRole, isGarbageCollected: false }),
  dependentOf("far", { cluster: "edge", namespace: "shared", isGarbageCollected: false, usesServerSideApply: false }),
  dependentOf("theirs", { mode: "readOnly" }),
]);

suite("inventory", (test) => {
  test("it has what is written, in the order of the workflow, and where it is", () => {
    assert.equal(inventoryOf(workflow), [
      { name: "map", apiVersion: "v1", kind: "ConfigMap", plural: "configmaps" },
      {
        name: "role",
        apiVersion: "rbac.authorization.k8s.io/v1",
        kind: "ClusterRole",
        plural: "clusterroles",
        scope: "Cluster",
        ordered: true,
      },
      {
        name: "far",
        apiVersion: "v1",
        kind: "ConfigMap",
        plural: "configmaps",
        namespace: "shared",
        cluster: "edge",
        ordered: true,
        put: true,
      },
    ]);
  });

  test("what is formatted is parsed to the same, and tells how to reach the objects", () => {
    const entries = inventoryOf(workflow);
    assert.equal(parseInventory(formatInventory(entries)), entries);
    const { schema: _schema, hasStatusSubresource: _status, ...facts } = clusterRole;
    const { schema, hasStatusSubresource, ...known } = definitionOf(entries[1]!);
    assert.equal({ ...known, isCustom: false }, facts);
    assert.equal([schema, hasStatusSubresource], [{}, false]);
  });

  test("no dependents are no annotation", () => {
    assert.is(formatInventory([]), undefined);
    assert.equal(parseInventory(undefined), []);
  });

  for (const text of [
    "",
    "nonsense",
    "{}",
    "null",
    "[null]",
    '[{"name":"a"}]',
    '[{"name":"a","apiVersion":"v1","kind":"","plural":"x"}]',
  ])
    test(`what is no inventory has no entries: ${text}`, () => assert.equal(parseInventory(text), []));

  test("an entry stays the same in another version of its kind, and not with another kind or place", () => {
    const [entry] = inventoryOf(workflow);
    const others = [
      { ...entry!, kind: "Secret" },
      { ...entry!, namespace: "x" },
      { ...entry!, cluster: "x" },
      { ...entry!, name: "x" },
    ];
    assert.equal(withoutEntries(others, [entry!]), others);
    const old = { ...entry!, apiVersion: "apps/v1beta1" };
    assert.is(entryKeyOf(old), entryKeyOf({ ...old, apiVersion: "apps/v1" }));
    assert.not.equal(entryKeyOf(old), entryKeyOf({ ...old, apiVersion: "extensions/v1" }));
  });

  test("what a workflow states as removed is looked for whoever wrote it, and however it is tied", () => {
    const removed = { old: { resource: clusterRole, policy: "keep" as const } };
    const [entry] = removedOf({ ...workflow, removed });
    assert.is(entry?.name, "old");
    assert.equal([entry?.ordered, entry?.put], [true, true]);
  });

  test("the annotation has a valid name for every name of a controller", () => {
    const names: [controller: string, name: string][] = [
      ["web-page", "web-page"],
      ["web page", "web-page"],
      ["-x-", "x-x-x"],
      ["é", "x-x"],
    ];
    for (const [controller, name] of names)
      assert.is(inventoryAnnotationOf(controller), `inventory.gen-operator.dev/${name}`);
    const [, name = ""] = inventoryAnnotationOf("-".repeat(100)).split("/");
    assert.is(name.length, 63);
  });
});
