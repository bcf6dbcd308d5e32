import { ResourceCache } from "#runtime/cluster/resource-cache.js";
import { ResourceView } from "#runtime/cluster/resource-view.js";
import type { DecodedResource } from "#runtime/cluster/decode-resource.js";
import { ApplyMatcher, type Application, type AppliedPart } from "#runtime/write/apply-matcher.js";
import { customDefinition } from "../../../support/kind-definitions.js";
import { widgetCrd } from "../../../support/live-objects.js";
import { assert, suite } from "../../../support/suite.js";

const definition = customDefinition(widgetCrd);
const ref = { name: "a", namespace: "x" };
const fieldsV1 = '{"f:spec":{"f:text":{}}}';

/** A matcher for which the server stores texts in capitals. */
function createMatcher(part: AppliedPart) {
  const watched = new ResourceCache();
  const cache = new ResourceView(definition);
  cache.attach(watched);
  const matcher = new ApplyMatcher("us");
  const application: Application = {
    target: { definition, cache },
    part,
    desired: { metadata: ref, spec: { text: "text" } } as Application["desired"],
  };
  const stored = (version: string, text = "TEXT"): DecodedResource => {
    const metadata = { ...ref, uid: "u", resourceVersion: version };
    const subresource = part === "status" ? "status" : "";
    const owned = [{ fieldManager: "us", subresource, apiVersion: definition.apiVersion, fieldsV1 }];
    const object = { apiVersion: definition.apiVersion, kind: "Widget", metadata, spec: { text } };
    return { object, owned };
  };
  const matches = (entry: DecodedResource | undefined) => matcher.compare(application, entry).matches;
  return { cache, watched, matcher, application, stored, matches };
}

suite("apply matcher", (test) => {
  for (const part of ["object", "status"] as const) {
    test(`${part}: what the server made of what was sent last is known again, also after changes of others`, () => {
      const { matcher, application, stored, matches } = createMatcher(part);
      const answer = stored("1");
      assert.not(matches(answer));
      matcher.remember(application, answer);
      assert.ok(matches(answer));
      assert.ok(matches(stored("2")));
      assert.not(matches(stored("3", "other")));
    });

    test(`${part}: it is not learnt from an object that is no answer`, () => {
      const { matcher, application, stored, matches } = createMatcher(part);
      matcher.remember(application, stored("1"));
      assert.not(matches(stored("1")));
    });

    test(`${part}: what was learnt of an object goes with it`, () => {
      const { watched, matcher, application, stored, matches } = createMatcher(part);
      const answer = stored("1");
      watched.observe(answer);
      matcher.remember(application, answer);
      assert.ok(matches(answer));
      watched.observeDeletion(stored("2").object);
      assert.not(matches(stored("3")));
    });
  }

  test("what is learnt of the object and of its status is kept apart", () => {
    const { cache, matcher, application, stored, matches } = createMatcher("object");
    const answer = stored("1");
    matcher.remember(application, answer);
    assert.ok(matches(answer));
    const status = { ...application, part: "status" as const, target: { definition, cache } };
    assert.not(
      matcher.compare(status, {
        object: answer.object,
        owned: answer.owned!.map((fields) => ({ ...fields, subresource: "status" })),
      }).matches,
    );
  });
});
