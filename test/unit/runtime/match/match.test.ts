import { ResourceView } from "#runtime/cache/resource-view.js";
import { decodeResource } from "#runtime/decode/decode-resource.js";
import { ApplyMatcher, type Application } from "#runtime/write/send/apply-matcher.js";
import { match, type Verdict } from "#runtime/match/match.js";
import { parseOwnedFields } from "#runtime/match/owned-fields.js";
import { schemaOf } from "#runtime/match/schema-node.js";
import { withEncodedData } from "#runtime/write/send/plan.js";
import type { JsonResource } from "../../../support/kinds/kind-definitions.js";
import { FIELD_MANAGER, readLiveObjects, type LiveObject } from "../../../support/kinds/live-objects.js";
import { assert, suite } from "../../../support/suite.js";

function decode({ live }: LiveObject) {
  return decodeResource<JsonResource>(Buffer.from(live), { fieldManagers: [FIELD_MANAGER] });
}

function verdictOf(liveObject: LiveObject): Verdict {
  const { definition, desired } = liveObject;
  const { object, owned: [owned] = [] } = decode(liveObject);
  if (owned === undefined) return { matches: false, path: "", reason: "is owned by nobody" };
  const options = { owned: parseOwnedFields(owned.fieldsV1), schema: schemaOf(definition) };
  return match(structuredClone(withEncodedData(definition, desired)), object, options);
}

// Where the matcher cannot know what the server knows, the object is applied once, and then recognised by what was recorded.
const RECOGNISED_BY_RECORD: { readonly [title: string]: string } = {
  "secret-string-data: unchanged": "what was applied as stringData is applied as data from now on",
};

suite("match, of objects recorded from a kube-apiserver", (test) => {
  for (const liveObject of readLiveObjects()) {
    const { title, matches, definition, desired } = liveObject;
    const reason = RECOGNISED_BY_RECORD[title];
    if (reason !== undefined)
      test(`${title}: an apply changes nothing, which only the record knows: ${reason}`, () => {
        assert.not(verdictOf(liveObject).matches);
        const matcher = new ApplyMatcher(FIELD_MANAGER);
        const target = { definition, cache: new ResourceView(definition) };
        const application: Application = { target, part: "object", desired };
        const answer = decode(liveObject);
        assert.not(matcher.compare(application, answer).matches);
        matcher.learn(application, answer);
        assert.ok(matcher.compare(application, answer).matches);
      });
    else
      test(`${title}: an apply changes ${matches ? "nothing" : "something"}`, () => {
        const verdict = verdictOf(liveObject);
        assert.is(verdict.matches, matches, JSON.stringify(verdict));
        if (!verdict.matches) assert.ok(verdict.path !== "" || verdict.reason !== "");
      });
  }
});
