import { takenFields, valueOfFields } from "#generator/doctor/check-takeover.js";
import { assert, suite } from "../../../support/suite.js";

const object = {
  metadata: { labels: { a: "1", "old.example.com/b": "2" }, finalizers: ["x/keep", "x/old"] },
  spec: {
    replicas: 3,
    strategy: { type: "Recreate" },
    containers: [
      { name: "main", image: "a" },
      { name: "side", image: "b" },
    ],
  },
};
const LEAF = {};
const side = 'k:{"name":"side"}';
const textsOf = (taken: object, ...others: object[]) =>
  takenFields(object, taken as never, others as never).map(({ text }) => text);

suite("takenFields", (test) => {
  test("returns fields that no other manager owns, with one entry per label and finalizer", () => {
    const metadata = {
      "f:labels": { ".": LEAF, "f:a": LEAF, "f:old.example.com/b": LEAF },
      "f:finalizers": { ".": LEAF, 'v:"x/old"': LEAF },
    };
    const fields = { "f:metadata": metadata, "f:spec": { "f:replicas": LEAF, "f:strategy": { "f:type": LEAF } } };
    const others = { "f:metadata": { "f:labels": { "f:a": LEAF } }, "f:spec": { "f:containers": LEAF } };
    assert.equal(textsOf(fields, others), [
      'metadata.labels["old.example.com/b"]',
      'metadata.finalizers[="x/old"]',
      "spec.replicas",
      "spec.strategy",
    ]);
  });

  test("returns a whole list item unless another manager owns the item itself", () => {
    const item = { ".": LEAF, "f:name": LEAF, "f:image": LEAF };
    const containers = { "f:spec": { "f:containers": { [side]: item } } };
    const inside = { "f:spec": { "f:containers": { 'k:{ "name": "side" }': { "f:image": LEAF } } } };
    const whole = { "f:spec": { "f:containers": { [side]: { ".": LEAF, "f:name": LEAF } } } };
    assert.equal(textsOf(containers, inside), ['spec.containers[name="side"]']);
    assert.equal(textsOf(containers, whole), ['spec.containers[name="side"].image']);
    assert.equal(textsOf(containers, containers), []);
  });

  test("ignores fields that the object no longer has", () => {
    const gone = { "f:spec": { "f:gone": LEAF, "f:containers": { 'k:{"name":"x"}': { ".": LEAF } } } };
    assert.equal(textsOf(gone, { "f:spec": { "f:containers": { [side]: { ".": LEAF } } } }), []);
  });
});

suite("valueOfFields", (test) => {
  test("finds list items by key", () => {
    assert.is(valueOfFields(object, ["f:spec", "f:containers", side, "f:image"]), "b");
    assert.is(valueOfFields(object, ["f:spec", "f:containers", 'k:{"name":"x"}', "f:image"]), undefined);
  });
});
