import fc from "../../../support/fast-check.js";
import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import { hasForeignChange } from "#runtime/apply/match.js";
import { parseOwnedFields, schemaOf } from "#runtime/apply/owned-fields.js";
import { customDefinition } from "../../../support/kinds/kind-definitions.js";
import { widgetCrd } from "../../../support/kinds/live-objects.js";
import { assert, suite } from "../../../support/suite.js";

const definition = customDefinition(widgetCrd);
const names = ["a", "b", "c", "d"];
// What JSON is parsed to has a prototype.
const labelsOf = fc.dictionary(fc.constantFrom(...names), fc.constantFrom("1", "2"), { noNullPrototype: true });
const someNames = fc.subarray(names);

interface State {
  readonly labels: { [name: string]: string };
  readonly finalizers: string[];
  readonly version: string;
}

function objectOf({ labels, finalizers, version }: State): KubernetesObject {
  const metadata = { name: "x", namespace: "y", uid: "u", resourceVersion: version, generation: Number(version) };
  return { apiVersion: "v1", kind: "Widget", metadata: { ...metadata, labels, finalizers } };
}

const state = fc.record({ labels: labelsOf, finalizers: someNames, version: fc.constantFrom("1", "2") });

// A list without items below it is owned as a whole.
function ownerOf(labels: readonly string[], finalizers: readonly string[]) {
  const keys = Object.fromEntries(labels.map((name) => [`f:${name}`, {}]));
  const items = Object.fromEntries(finalizers.map((name) => [`v:${JSON.stringify(name)}`, {}]));
  const set = finalizers.length === 0 ? {} : { "f:finalizers": items };
  return parseOwnedFields(JSON.stringify({ "f:metadata": { "f:labels": keys, ...set } }));
}

suite("foreign change", (test) => {
  test("is a change of a key or set item that no owner owns, except of version and generation", () => {
    const owners = fc.array(fc.tuple(someNames, someNames), { maxLength: 2 });
    fc.assert(
      fc.property(state, state, owners, (before, after, all) => {
        const ownedLabels = new Set(all.flatMap(([labels]) => labels));
        const ownedItems = new Set(all.flatMap(([, items]) => items));
        const isForeign =
          names.some((name) => before.labels[name] !== after.labels[name] && !ownedLabels.has(name)) ||
          names.some(
            (name) => before.finalizers.includes(name) !== after.finalizers.includes(name) && !ownedItems.has(name),
          );
        const owned = all.map(([labels, items]) => ownerOf(labels, items));
        const cover = { owned, schema: schemaOf(definition) };
        assert.is(hasForeignChange(objectOf(before), objectOf(after), cover), isForeign);
      }),
      { numRuns: 500 },
    );
  });
});
