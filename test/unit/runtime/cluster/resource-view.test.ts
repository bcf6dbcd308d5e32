// What one controller is told around its own writes (the parts of JOSDK's InformerEventSourceTest and ControllerEventSourceTest that are
// about the cache).
import { createView } from "../../../support/resource-view.js";
import { assert, suite } from "../../../support/suite.js";

const KEY = "x/a";
const object = (resourceVersion: string, more: object = {}) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "a", namespace: "x", uid: "u1", resourceVersion, ...more },
});

function createTold() {
  const { view, cache } = createView({ indexes: { label: ({ metadata }) => Object.keys(metadata.labels ?? {}) } });
  const told: string[] = [];
  view.onChange(({ kind, object: { metadata }, old }) => {
    told.push(`${kind} ${metadata.resourceVersion}${old === undefined ? "" : `<${old.metadata.resourceVersion}`}`);
  });
  cache.observe({ object: object("1") });
  told.length = 0;
  const endWrite = (version: string) => view.endWrite(KEY, { entry: { object: object(version) }, isOwn: true });
  return { view, cache, told, endWrite };
}

suite("resource view", (test) => {
  test("keys are those of the watch and of answers, each once", () => {
    const { view } = createTold();
    view.put({ object: object("2") });
    view.put({ object: object("3", { name: "b", uid: "u2" }) });
    assert.equal([...view.keys()].sort(), ["x/a", "x/b"]);
  });

  test("a deletion by somebody else during an own write is told", () => {
    const { view, cache, told, endWrite } = createTold();
    view.beginWrite(KEY);
    cache.observe({ object: object("2") });
    cache.observeDeletion(object("3"));
    endWrite("2");
    assert.equal(
      told,
      ["deleted 3"].map((line) => `${line}<2`),
    );
    assert.not(view.has(KEY));
  });

  test("several changes by somebody else during an own write are told as one", () => {
    const { view, cache, told, endWrite } = createTold();
    view.beginWrite(KEY);
    cache.observe({ object: object("2") });
    cache.observe({ object: object("3") });
    cache.observe({ object: object("4") });
    assert.equal(told, []);
    endWrite("4");
    assert.equal(told, ["updated 4<1"]);
  });

  test("the index follows every change, whether or not it is told", () => {
    const { view, cache, told } = createTold();
    view.beginWrite(KEY);
    cache.observe({ object: object("2", { labels: { red: "" } }) });
    assert.equal([[...view.keysByIndex("label", "red")], told], [[KEY], []]);
    cache.observeDeletion(object("3", { labels: { red: "" } }));
    assert.equal([...view.keysByIndex("label", "red")], []);
    view.endWrite(KEY);
    assert.equal(told, ["deleted 3<2"]);
  });
});
