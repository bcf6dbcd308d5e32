import { ResourceView } from "#runtime/cache/resource-view.js";
import { decodeResource } from "#runtime/client/object-decoder.js";
import { ApplyMatcher } from "#runtime/apply/apply-matcher.js";
import { findDifferences, type Difference } from "#runtime/apply/match.js";
import { parseOwnedFields, schemaOf } from "#runtime/apply/owned-fields.js";
import { applyOf, withEncodedData } from "#runtime/apply/write.js";
import type { JsonResource } from "../../../support/kinds/kind-definitions.js";
import { FIELD_MANAGER, readLiveObjects, type LiveObject } from "../../../support/kinds/live-objects.js";
import { assert, suite } from "../../../support/suite.js";

function decode({ live }: LiveObject) {
  return decodeResource<JsonResource>(Buffer.from(live), { fieldManagers: [FIELD_MANAGER] });
}

/** Returns the first place where an object is not as desired. */
function differenceOf(liveObject: LiveObject): Difference | undefined {
  const { definition, desired } = liveObject;
  const { object, owned: [owned] = [] } = decode(liveObject);
  if (owned === undefined) return { path: "", reason: "is owned by nobody" };
  const options = { owned: parseOwnedFields(owned.fieldsV1), schema: schemaOf(definition) };
  return findDifferences(structuredClone(withEncodedData(definition, desired)), object, options)[0];
}

// Where the matcher cannot know what the server knows, the object is applied once, and then recognised by what was recorded.
const RECOGNISED_BY_RECORD: { readonly [title: string]: string } = {
  "secret-string-data: unchanged": "what was applied as stringData is applied as data from now on",
};

suite("match of objects recorded from kube-apiserver", (test) => {
  for (const liveObject of readLiveObjects()) {
    const { title, matches, definition, desired } = liveObject;
    const reason = RECOGNISED_BY_RECORD[title];
    if (reason !== undefined)
      test(`${title}: needs a recorded apply to match (${reason})`, () => {
        assert.ok(differenceOf(liveObject));
        const matcher = new ApplyMatcher(FIELD_MANAGER);
        const target = { definition, cache: new ResourceView(definition) };
        const application = applyOf(target, desired);
        const answer = decode(liveObject);
        assert.not(matcher.matches(application, answer));
        matcher.learn(application, answer);
        assert.ok(matcher.matches(application, answer));
      });
    else
      test(`${title}: detects that an apply changes ${matches ? "nothing" : "something"}`, () => {
        const difference = differenceOf(liveObject);
        assert.is(difference === undefined, matches, JSON.stringify(difference));
        if (difference !== undefined) assert.ok(difference.path !== "" || difference.reason !== "");
      });
  }
});
