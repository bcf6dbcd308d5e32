import { applyOf } from "#runtime/apply/write.js";
import { observedOf } from "#runtime/apply/sender.js";
import { classOf, customDefinition } from "../../../support/kinds/kind-definitions.js";
import { createView } from "../../../support/runtime/resource-view.js";
import { pageCrd } from "../../../integration/runtime/page.js";
import { assert, suite } from "../../../support/suite.js";

suite("observedOf", (test) => {
  const { definition: withSubresource } = classOf(customDefinition(pageCrd));
  const { view: cache } = createView();
  const pageOf = (generation: number) => ({
    apiVersion: "example.com/v1",
    kind: "Page",
    metadata: { name: "one", namespace: "x", uid: "u1", generation },
    status: { text: "a" },
  });
  const observed = (hasStatusSubresource: boolean, generation: number, followsEvent: boolean) => {
    const definition = { ...withSubresource, hasStatusSubresource };
    const primary = pageOf(generation);
    const cause = { primary, followsEvent };
    const write = applyOf({ definition, cache }, primary, "status");
    return observedOf({ ...write, before: { object: primary }, cause }, "content", `${generation}`);
  };

  test("uses the generation as input of a status write, unless that write increments it", () => {
    for (const followsEvent of [false, true]) {
      assert.is.not(observed(true, 1, followsEvent).input, observed(true, 2, followsEvent).input);
      assert.is(observed(false, 1, followsEvent).input, observed(false, 2, followsEvent).input);
      assert.is(observed(false, 1, followsEvent).isFollowing, followsEvent);
    }
    assert.is(observed(true, 1, false).input, observed(true, 1, true).input, "an event is no new input");
  });
});
