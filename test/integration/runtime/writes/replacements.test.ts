// What is asked of the API server before an object is deleted to create it again.
import { startTestApiServer } from "../../../support/api/api-server.js";
import { builtinDefinition } from "../../../support/kinds/kind-definitions.js";
import { failureOf } from "../../../support/runtime/failures.js";
import { assert, shared, suite } from "../../../support/suite.js";
import { startWriting as startWritingTo } from "./one-object.js";

const server = shared(() => startTestApiServer());
const startWriting = async (apiVersion: string, kind: string) =>
  startWritingTo(await server(), builtinDefinition(apiVersion, kind));
const labels = { app: "x" };
const template = { metadata: { labels }, spec: { containers: [{ name: "main", image: "image" }] } };
const setOf = (serviceName: string) => ({ spec: { selector: { matchLabels: labels }, serviceName, template } });
const mapOf = (value: string) => ({ immutable: true, data: { value } });

suite("replacement", (test) => {
  test("orphans the Pods of a StatefulSet, and deletes other objects in the foreground", async () => {
    await using set = await startWriting("apps/v1", "StatefulSet");
    await set.apply(setOf("a"));
    assert.is((await set.replacement(setOf("b"))).propagationPolicy, "Orphan");
    await using map = await startWriting("v1", "ConfigMap");
    await map.apply(mapOf("a"));
    assert.is((await map.replacement(mapOf("b"))).propagationPolicy, "Foreground");
    assert.equal(map.requests, ["dry POST 409"]);
  });

  test("is rejected if the API server would reject the desired object", async () => {
    await using set = await startWriting("apps/v1", "StatefulSet");
    await set.apply(setOf("a"));
    const invalid = { spec: { ...setOf("b").spec, replicas: -1 } };
    assert.match(await failureOf(() => set.replacement(invalid)), /could not be created again: .*spec\.replicas/);
    // It counts as no replacement.
    assert.ok(await set.replacement(setOf("b")));
  });

  test("is rejected a second time for the same content", async () => {
    await using map = await startWriting("v1", "ConfigMap");
    await map.apply(mapOf("a"));
    await map.replacement(mapOf("b"));
    assert.match(await failureOf(() => map.replacement(mapOf("b"))), "it was created again for the same desired state");
    await map.apply(mapOf("a"));
    assert.match(await failureOf(() => map.replacement(mapOf("b"))), "it is not deleted");
    await map.replacement(mapOf("c"));
    await map.replacement(mapOf("b"));
  });
});
