import type { ResourceDefinition } from "#runtime/base/kubernetes-object.js";
import { not } from "#runtime/sources/event-source.js";
import { crdPresent, kindsAskedFor } from "#runtime/workflow/conditions.js";
import { assert, suite } from "../../../../support/suite.js";
import { configMap } from "../graphs.js";

/** A client that counts how often it is asked, and a condition that is asked at a time; `watched` is what is known of the definition. */
function createAsking(isServed: boolean, watched?: object) {
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
      return await crdPresent({ dependent, context: { client, eventSources: { get: () => watched } } } as never);
    } finally {
      performance.now = now;
    }
  };
  return { state, ask };
}

suite("crdPresent", (test) => {
  test("checks an absent kind again after 10 s, and a present one never [CRDPresentActivationConditionTest]", async () => {
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

  test("checks a kind without a CRD every 10 minutes, as an aggregated API server may serve it", async () => {
    const { state, ask } = createAsking(false, { servedVersions: [], wasDefined: false });
    assert.not(await ask(0));
    assert.not(await ask(599_999));
    assert.is(state.calls, 1);
    state.isServed = true;
    assert.ok(await ask(600_000));
    state.isServed = false;
    assert.ok(await ask(609_999));
    assert.not(await ask(610_000), "an APIService may go");
    assert.is(state.calls, 3);
  });

  test("is false without a request if the CRD was deleted", async () => {
    const watched = { servedVersions: ["v1"], wasDefined: true };
    // The API server still lists the kind for a moment.
    const { state, ask } = createAsking(true, watched);
    assert.ok(await ask(0));
    watched.servedVersions = [];
    for (const atMs of [1, 1e9]) assert.not(await ask(atMs));
    watched.servedVersions = ["v1"];
    assert.ok(await ask(1e9));
    assert.is(state.calls, 0);
  });

  test("can be negated for its own or another kind, with boolean and detailed results", async () => {
    const args = {
      dependent: { name: "a", definition: configMap },
      context: { eventSources: { get: () => undefined } },
    };
    const served = (versions: string[]) => ({
      ...args,
      context: { ...args.context, client: { connection: {}, servedVersions: async () => versions } },
    });
    const other = { definition: { ...configMap, kind: "Route", plural: "routes", isCustom: true } };
    for (const condition of [crdPresent, crdPresent(other)] as const) {
      assert.is(await not(condition)(served(["v1"]) as never), false);
      assert.is(await not(condition)(served([]) as never), true);
    }
    const detailed = not(() => ({ isMet: false, detail: "why" }));
    assert.equal(detailed(), { isMet: true, detail: "why" });
    const negated = not(crdPresent(other));
    const asked = [
      { resource: { ...configMap, isCustom: true }, activationCondition: not(crdPresent) },
      { resource: configMap, reconcilePrecondition: negated },
      { resource: configMap, activationCondition: crdPresent },
      { resource: configMap, cluster: "edge", activationCondition: negated },
    ];
    assert.equal(
      kindsAskedFor(asked).map(({ kind }) => kind),
      ["ConfigMap", "Route"],
    );
  });
});
