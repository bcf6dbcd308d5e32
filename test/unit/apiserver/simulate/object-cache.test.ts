import { ObjectCache } from "#apiserver/simulate/feed/cluster.js";
import type { KubernetesObject } from "#apiserver/simulate/feed/kubernetes-object.js";
import { assert, suite } from "../../../support/suite.js";

suite("ObjectCache", (test) => {
  let version = 0;
  const object = (name: string, { namespace = "a", owner }: { namespace?: string; owner?: string } = {}) => {
    const reference = { apiVersion: "v1", kind: "K", name: "o", uid: owner ?? "", controller: true };
    const metadata = { name, namespace, uid: `uid-${namespace}-${name}`, resourceVersion: String(++version) };
    return { metadata: { ...metadata, ...(owner === undefined ? {} : { ownerReferences: [reference] }) } };
  };
  const namesOf = (objects: KubernetesObject[]) => objects.map(({ metadata }) => metadata.name);

  test("lists objects by namespace, by controller, and without controller", () => {
    const cache = new ObjectCache();
    for (const one of [object("x"), object("y", { owner: "1" }), object("z", { namespace: "b", owner: "1" })])
      cache.set(one);
    assert.equal(namesOf(cache.list("a")), ["x", "y"]);
    assert.equal(namesOf(cache.controlledBy("1")), ["y", "z"]);
    assert.equal([namesOf(cache.orphans("a")), namesOf(cache.orphans("b"))], [["x"], []]);
    assert.equal(namesOf(cache.list()), ["x", "y", "z"]);
  });

  test("updates its indexes when an object is adopted, moved to another owner, released, and deleted", () => {
    const cache = new ObjectCache();
    const seen = () =>
      ["1", "2"].map((uid) => namesOf(cache.controlledBy(uid)).join()).concat(namesOf(cache.orphans("a")).join());
    cache.set(object("x"));
    assert.equal(seen(), ["", "", "x"]);
    cache.set(object("x", { owner: "1" }));
    assert.equal(seen(), ["x", "", ""]);
    cache.set(object("x", { owner: "2" }));
    assert.equal(seen(), ["", "x", ""]);
    const released = object("x");
    cache.set(released);
    assert.equal(seen(), ["", "", "x"]);
    cache.remove(released);
    assert.equal([seen(), cache.list("a")], [["", "", ""], []]);
  });

  test("keeps the newer version, and drops a deleted object before its watch event arrives", () => {
    const cache = new ObjectCache();
    const [older, newer] = [object("x", { owner: "1" }), object("x")];
    assert.equal([cache.set(newer), cache.set(older)], [true, false]);
    assert.equal(namesOf(cache.orphans("a")), ["x"]);
    cache.forget(newer);
    assert.is(cache.set(newer), false);
    assert.equal([cache.orphans("a"), cache.controlledBy("1")], [[], []]);
  });
});
