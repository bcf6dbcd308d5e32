import type { ResourceDefinition } from "#runtime/base/resource-definition.js";
import { crdPresent } from "#runtime/workflow/conditions/builtin-conditions.js";
import { assert, suite } from "../../../../support/suite.js";
import { configMap } from "../graphs.js";

/** A client that counts how often it is asked, and a condition that is asked at a time. */
function createAsking(isServed: boolean) {
  const state = { isServed, calls: 0 };
  const client = {
    connection: {},
    servedVersions: async () => (state.calls++, state.isServed ? ["v1"] : []),
  };
  const ask = async (atMs: number, definition: ResourceDefinition | undefined = configMap) => {
    const { now } = performance;
    performance.now = () => atMs;
    try {
      const dependent = { name: "a", live: undefined, ...(definition === undefined ? {} : { definition }) };
      return await crdPresent({ dependent, context: { client, eventSources: { get: () => undefined } } } as never);
    } finally {
      performance.now = now;
    }
  };
  return { state, ask };
}

suite("crdPresent", (test) => {
  test("an absent kind is asked for again after ten seconds, and a present one never [CRDPresentActivationConditionTest]", async () => {
    const { state, ask } = createAsking(false);
    assert.not(await ask(0));
    assert.not(await ask(9_999));
    assert.is(state.calls, 1);
    assert.not(await ask(10_000));
    assert.is(state.calls, 2);
    state.isServed = true;
    assert.not(await ask(19_999), "it is not asked again before its time");
    assert.ok(await ask(20_000));
    state.isServed = false;
    assert.ok(await ask(1e9));
    assert.is(state.calls, 3);
  });
});
