import { keyOf } from "#runtime/base/kubernetes-object.js";
import { cachingInboundSource } from "#runtime/sources/caching-inbound-source.js";
import { isolated } from "#runtime/sources/dependent-sources.js";
import { assert, suite } from "../../../../support/suite.js";
import { changeOf, createSourceContext, primaryOf } from "../source-context.js";

function createSource() {
  let failure: Error | undefined = new Error("no route");
  const inner = cachingInboundSource<string>({
    name: "prices",
    idOf: (text) => text,
    fetch: ({ metadata }) => {
      if (failure !== undefined && keyOf(metadata) === "home/one") throw failure;
      return ["a"];
    },
  });
  const source = isolated(inner);
  const load = async (key: "home/one" | "home/two") => {
    await source.load?.(primaryOf(key), new AbortController().signal);
  };
  return { source, load, recover: () => void (failure = undefined) };
}

suite("isolated source", (test) => {
  test("throws a fetch error to readers of that primary only, until a fetch succeeds", async () => {
    const { source, load, recover } = createSource();
    await source.start(createSourceContext().context);
    await load("home/one");
    await load("home/two");
    assert.throws(() => source.secondariesOf(primaryOf("home/one")), /no route/);
    assert.equal(source.secondariesOf(primaryOf("home/two")), ["a"]);
    assert.is(source.health.status, "unhealthy");
    recover();
    await load("home/one");
    assert.equal(source.secondariesOf(primaryOf("home/one")), ["a"]);
    assert.is(source.health.status, "healthy");
    await source.stop();
  });

  test("drops the error when the primary is deleted or the source stops", async () => {
    const { source, load } = createSource();
    await source.start(createSourceContext().context);
    const read = () => source.secondariesOf(primaryOf("home/one"));
    await load("home/one");
    source.onPrimaryChange?.(changeOf("updated", primaryOf("home/one")));
    source.onPrimaryChange?.(changeOf("deleted", primaryOf("home/two")));
    assert.throws(read, /no route/, "no update and no other primary drops it");
    source.onPrimaryChange?.(changeOf("deleted", primaryOf("home/one")));
    assert.equal(read(), []);
    await load("home/one");
    assert.throws(read, /no route/);
    await source.stop();
    await source.start(createSourceContext().context);
    assert.equal(read(), []);
    await source.stop();
  });

  test("delegates put() and the deletion of a primary to the inner source", async () => {
    const { source } = createSource();
    const { context, notified } = createSourceContext();
    await source.start(context);
    source.put("home/one", "b");
    assert.equal(source.secondariesOf(primaryOf("home/one")), ["b"]);
    assert.equal(notified(), ["home/one"]);
    source.onPrimaryChange?.(changeOf("deleted", primaryOf("home/one")));
    assert.equal(source.secondariesOf(primaryOf("home/one")), []);
    await source.stop();
  });
});
