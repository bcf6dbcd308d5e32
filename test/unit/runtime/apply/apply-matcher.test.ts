import { ResourceCache } from "#runtime/cache/resource-cache.js";
import { ResourceView } from "#runtime/cache/resource-view.js";
import type { DecodedResource, ResourceDefinition } from "#runtime/base/kubernetes-object.js";
import { type Write, type WriteCause, type WritePart, applyOf } from "#runtime/apply/write.js";
import { ApplyMatcher } from "#runtime/apply/apply-matcher.js";
import { customDefinition } from "../../../support/kinds/kind-definitions.js";
import { widgetCrd } from "../../../support/kinds/live-objects.js";
import { assert, suite } from "../../../support/suite.js";

const definition = customDefinition(widgetCrd);
const ref = { name: "a", namespace: "x" };
const fieldsV1 = '{"f:spec":{"f:text":{}}}';

/** A matcher for which the server stores texts in capitals. */
function createMatcher(part: WritePart) {
  const watched = new ResourceCache();
  const cache = new ResourceView(definition);
  cache.attach(watched);
  const matcher = new ApplyMatcher("us");
  const target = { definition, cache };
  const applicationOf = (spec: unknown): Write => {
    const desired = { metadata: ref, spec };
    return { ...applyOf(target, desired), part };
  };
  const application = applicationOf({ text: "text" });
  const stored = (version: string, text = "TEXT"): DecodedResource => {
    const metadata = { ...ref, uid: "u", resourceVersion: version };
    const subresource = part === "status" ? "status" : "";
    const owned = [{ fieldManager: "us", subresource, apiVersion: definition.apiVersion, fieldsV1 }];
    const object = { apiVersion: definition.apiVersion, kind: "Widget", metadata, spec: { text } };
    return { object, owned };
  };
  const matches = (entry: DecodedResource | undefined) => matcher.matches(application, entry);
  return { cache, watched, matcher, application, applicationOf, stored, matches };
}

suite("ApplyMatcher", (test) => {
  for (const part of ["object", "status"] as const) {
    test(`${part}: matches the learned server-side mutation, also after foreign changes`, () => {
      const { matcher, application, stored, matches } = createMatcher(part);
      const answer = stored("1");
      assert.not(matches(answer));
      matcher.learn(application, answer);
      assert.ok(matches(answer));
      assert.ok(matches(stored("2")));
      assert.not(matches(stored("3", "other")));
    });

    test(`${part}: learns a mutation for the applied content only, and forgets it if the content is stored as applied`, () => {
      const { matcher, application, applicationOf, stored, matches } = createMatcher(part);
      matcher.learn(application, stored("1"));
      assert.not(matcher.matches(applicationOf({ text: "other" }), stored("1")));
      matcher.learn(application, stored("2", "text"));
      assert.not(matches(stored("3")));
    });

    test(`${part}: forgets the learned mutation when the object is deleted`, () => {
      const { watched, matcher, application, stored, matches } = createMatcher(part);
      const answer = stored("1");
      watched.observe(answer);
      matcher.learn(application, answer);
      assert.ok(matches(answer));
      watched.observeDeletion(stored("2").object);
      assert.not(matches(stored("3")));
    });
  }

  test("compares the desired object by its JSON at every depth", () => {
    const { matcher, applicationOf, stored } = createMatcher("object");
    const kept = new (class {
      readonly text = "TEXT";
    })();
    const asText = { toJSON: () => "TEXT" };
    const other = new (class {
      readonly text = "TEXT";
      toJSON() {
        return { text: "other" };
      }
    })();
    const compare = (spec: unknown) => matcher.matches(applicationOf(spec), stored("1"));
    assert.equal(
      [{ text: "TEXT", more: undefined }, { text: asText }, kept, other, { text: () => "TEXT" }].map(compare),
      [true, true, true, false, false],
    );
  });

  test("does not match a Date with an empty object or a missing field", () => {
    const { cache, matcher, applicationOf, stored } = createMatcher("object");
    const loose: ResourceDefinition = { ...definition, schema: { type: "object", properties: { spec: {} } } };
    const target = { definition: loose, cache };
    const entry = stored("1");
    const live = { ...entry, object: { ...entry.object, spec: { text: {} } } };
    const compare = (text: unknown) => matcher.matches({ ...applicationOf({ text }), target }, live);
    assert.equal([{}, new Date(0)].map(compare), [true, false]);
    const dropped = { ...entry, object: { ...entry.object, spec: {} } };
    assert.not(matcher.matches(applicationOf({ text: new Date(0) }), dropped), "nor nothing");
  });

  test("logs changed values of a kind without a schema, but no added fields", () => {
    const { cache, matcher, applicationOf, stored } = createMatcher("object");
    const target = { definition: { ...definition, schema: {} }, cache };
    const told: object[] = [];
    const nothing = () => {};
    const warn = (fields: object) => void told.push(fields);
    const cause: WriteCause = { logger: { debug: nothing, info: nothing, warn, error: nothing } };
    // An atomic field, which the server completes.
    const learn = (version: string, text: object) => {
      const entry = stored(version);
      const answer = { ...entry, object: { ...entry.object, spec: { text } } };
      const application = { ...applicationOf({ text: { name: "a" } }), target, cause };
      assert.not(matcher.matches(application, answer));
      matcher.learn(application, answer);
      assert.ok(matcher.matches(application, answer));
    };
    learn("1", { name: "a", kind: "Default" });
    assert.equal(told, []);
    learn("2", { name: "A", kind: "Default" });
    assert.equal(told, [{ dependent: undefined, paths: ["spec.text.name"] }]);
  });

  test("learns mutations of the object and its status separately", () => {
    const { cache, matcher, application, stored, matches } = createMatcher("object");
    const answer = stored("1");
    matcher.learn(application, answer);
    assert.ok(matches(answer));
    const status = { ...application, part: "status" as const, target: { definition, cache } };
    assert.not(
      matcher.matches(status, {
        object: answer.object,
        owned: answer.owned!.map((fields) => ({ ...fields, subresource: "status" })),
      }),
    );
  });
});
