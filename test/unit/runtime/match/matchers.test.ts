// JOSDK's PatchMatchersTest, StatusMatchersTest and the rules of its generic matcher; the name of the original stands in brackets.
import type { Draft, JsonValue, KubernetesObject, ObjectBody, ObjectMeta } from "#runtime/base/kubernetes-object.js";
import {
  genericDifferences,
  genericMatcher,
  patchMatcher,
  statusMatcher,
  updateMatcher,
  type GenericMatcherOptions,
  type MatcherArguments,
} from "#runtime/apply/generic-matcher.js";
import type { ResourceDefinition } from "#runtime/base/resource-definition.js";
import { schemaOf } from "#runtime/apply/owned-fields.js";
import { ResourceView } from "#runtime/cache/resource-view.js";
import { desiredOf, jsonPatchOf, mergePatchOf } from "#runtime/apply/write.js";
import { builtinDefinition, customDefinition } from "../../../support/kinds/kind-definitions.js";
import { widgetCrd } from "../../../support/kinds/live-objects.js";
import { assert, suite } from "../../../support/suite.js";

const definition = builtinDefinition("apps/v1", "Deployment");
const widget = customDefinition(widgetCrd);
const target = { definition, cache: new ResourceView(definition) };

interface Deployment extends KubernetesObject {
  spec: { replicas?: number };
  status?: { replicas?: number; availableReplicas?: number };
}

const deployment = (change: (object: Draft<Deployment>) => void = () => {}): Deployment => {
  const object: Draft<Deployment> = {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "test", namespace: "default", labels: { app: "test" } },
    spec: { replicas: 1 },
  };
  change(object);
  return object;
};
const withStatus = (change: (object: Draft<Deployment>) => void = () => {}): Deployment =>
  deployment((object) => {
    object.status = { replicas: 1 };
    change(object);
  });

const label = ({ metadata }: Draft<KubernetesObject>) =>
  void (metadata.labels = { ...metadata.labels, extra: "value" });
const scale = ({ spec }: Deployment) => void (spec.replicas = 5);

/** Whether a JSON patch that makes `desired` of `live` would change nothing. */
function matchesJsonPatch(desired: Deployment, live: Deployment, isStatus = false): boolean {
  const write = jsonPatchOf(target, live, () => desired, isStatus ? "status" : "object");
  return patchMatcher({
    ...argumentsOf(desiredOf(write, live) as Deployment, live, isStatus),
    verb: "jsonPatch",
  } as MatcherArguments);
}

/** Whether an object, sent as a merge patch, would change nothing. */
function matchesMergePatch(desired: object, live: Deployment, isStatus = false): boolean {
  const write = mergePatchOf(target, desired as ObjectBody, isStatus ? "status" : "object");
  return patchMatcher({
    ...argumentsOf(desiredOf(write, live) as Deployment, live, isStatus),
    verb: "mergePatch",
  } as MatcherArguments);
}

function argumentsOf(desired: object, live: KubernetesObject, isStatus = false): MatcherArguments {
  return { definition, verb: "update", isStatus, desired, live };
}

suite("matcher of json patches", (test) => {
  test("a status may lack what the API server fills in by the schema, and nothing else", () => {
    const phase = { type: "string", default: "New" } as const;
    const items = { type: "array", items: { type: "object", properties: { phase } } } as const;
    const status = { type: "object", properties: { phase, text: { type: "string" }, items } } as const;
    const filled: ResourceDefinition = { ...widget, schema: { type: "object", properties: { status } } };
    const of = (stated: object) => ({ metadata: { name: "a" }, status: stated }) as unknown as KubernetesObject;
    const compare = (desired: object, live: object) =>
      patchMatcher({ ...argumentsOf(of(desired), of(live), true), definition: filled, verb: "jsonPatch" });
    assert.ok(compare({ text: "a" }, { text: "a", phase: "New" }));
    assert.ok(compare({ items: [{}] }, { items: [{ phase: "New" }], phase: "New" }));
    assert.not(compare({ text: "a" }, { text: "a", phase: "Old" }));
    assert.not(compare({}, { text: "a" }));
    assert.not(compare({ phase: "New" }, {}));
  });

  const cases: [string, Deployment, Deployment, boolean][] = [
    ["the same matches (jsonPatchMatchesIdenticalResources)", deployment(), deployment(), true],
    [
      "what only live has does not match (jsonPatchDoesNotMatchWhenActualHasAdditionalField)",
      deployment(),
      deployment(label),
      false,
    ],
    [
      "what only desired has does not match (jsonPatchDoesNotMatchWhenDesiredHasAdditionalField)",
      deployment(label),
      deployment(),
      false,
    ],
    ["another value does not match (jsonPatchDoesNotMatchOnDifferentValue)", deployment(scale), deployment(), false],
  ];
  for (const [title, desired, live, matches] of cases)
    test(`json patch: ${title}`, () => assert.is(matchesJsonPatch(desired, live), matches));

  test("a patch that does not fit does not match: the server says what is wrong", () => {
    const live = deployment();
    const write = jsonPatchOf(target, live, [{ op: "remove", path: "/spec/nothing" }]);
    assert.is(desiredOf(write, live), undefined);
  });
});

suite("matcher of merge patches", (test) => {
  const cases: [string, object, Deployment, boolean][] = [
    ["the same matches (mergePatchMatchesIdenticalResources)", deployment(), deployment(), true],
    [
      "what only live has stays, and matches (mergePatchMatchesWhenActualHasAdditionalField)",
      deployment(),
      deployment(label),
      true,
    ],
    [
      "what only desired has does not match (mergePatchDoesNotMatchWhenDesiredHasAdditionalField)",
      deployment(label),
      deployment(),
      false,
    ],
    ["another value does not match (mergePatchDoesNotMatchOnDifferentValue)", deployment(scale), deployment(), false],
    ["null of what is not there matches", { metadata: { name: "test" }, spec: { paused: null } }, deployment(), true],
    [
      "null of what is there does not match",
      { metadata: { name: "test" }, spec: { replicas: null } },
      deployment(),
      false,
    ],
    [
      "what names the object, or locks it, changes nothing",
      { metadata: { name: "test", namespace: "default", resourceVersion: "7" } },
      deployment(),
      true,
    ],
  ];
  for (const [title, desired, live, matches] of cases)
    test(`merge patch: ${title}`, () => assert.is(matchesMergePatch(desired, live), matches));
});

suite("matchers of patches of the status", (test) => {
  test("what is outside of the status does not count (statusMatchersIgnoreChangesOutsideStatus)", () => {
    assert.ok(matchesJsonPatch(withStatus(scale), withStatus(), true));
    assert.ok(matchesMergePatch(withStatus(scale), withStatus(), true));
  });

  test("another status does not match (statusMatchersDoNotMatchOnDifferentStatus)", () => {
    const desired = withStatus(({ status }) => void (status!.replicas = 9));
    assert.not(matchesJsonPatch(desired, withStatus(), true));
    assert.not(matchesMergePatch(desired, withStatus(), true));
  });

  test("what only live has is removed by a json patch, and kept by a merge patch (statusMatchersDifferOnAdditionalActualStatusField)", () => {
    const live = withStatus(({ status }) => void (status!.availableReplicas = 1));
    assert.not(matchesJsonPatch(withStatus(), live, true));
    assert.ok(matchesMergePatch(withStatus(), live, true));
  });

  test("no status matches none (statusMatchersMatchWhenBothStatusesAbsent)", () => {
    assert.ok(matchesJsonPatch(deployment(), deployment(), true));
    assert.ok(matchesMergePatch(deployment(), deployment(), true));
  });

  test("where there is a status subresource, a patch of the object leaves the status alone", () => {
    const desired = withStatus(({ status }) => void (status!.replicas = 9));
    const live = withStatus();
    assert.ok(patchMatcher({ ...argumentsOf(desired, live), verb: "mergePatch" }));
  });
});

suite("status matcher", (test) => {
  const more = withStatus(({ status }) => void (status!.availableReplicas = 1));
  const cases: [string, Deployment, Deployment, boolean][] = [
    ["the same matches (matchesEqualStatus)", withStatus(), withStatus(), true],
    [
      "another value does not match (doesNotMatchDifferentStatus)",
      withStatus(({ status }) => void (status!.replicas = 2)),
      withStatus(),
      false,
    ],
    [
      "what is outside of the status does not count (ignoresChangesOutsideStatus)",
      withStatus(scale),
      withStatus(),
      true,
    ],
    ["what only live has matches", withStatus(), more, true],
    ["what only desired has does not match", more, withStatus(), false],
    ["a status matches no status not", withStatus(), deployment(), false],
  ];
  for (const [title, desired, live, matches] of cases)
    test(`status: ${title}`, () => assert.is(statusMatcher()(argumentsOf(desired, live)), matches));

  test("strictly, what only live has does not match", () => {
    assert.not(statusMatcher({ strict: true })(argumentsOf(withStatus(), more)));
    assert.ok(statusMatcher({ strict: true })(argumentsOf(more, more)));
  });
});

/** Compares two specs of an untyped kind. */
function compares(desired: JsonValue, live: JsonValue, options: GenericMatcherOptions = {}): boolean {
  const object = (spec: JsonValue) =>
    ({ apiVersion: "v1", kind: "X", metadata: { name: "x" }, spec }) as KubernetesObject;
  return genericMatcher(options)({ ...argumentsOf(object(desired), object(live)), definition: widget });
}

suite("generic matcher", (test) => {
  const cases: { title: string; desired: JsonValue; live: JsonValue; matches: boolean }[] = [
    { title: "a field that only live has matches", desired: { a: 1 }, live: { a: 1, b: 2 }, matches: true },
    { title: "a field that only desired has does not match", desired: { a: 1, b: 2 }, live: { a: 1 }, matches: false },
    { title: "null and nothing are the same", desired: { a: 1, b: null }, live: { a: 1 }, matches: true },
    { title: "another type does not match", desired: { a: ["x"] }, live: { a: { 0: "x" } }, matches: false },
    { title: "an item that only live has matches at the end", desired: ["a"], live: ["a", "b"], matches: true },
    { title: "at the beginning", desired: ["b"], live: ["a", "b"], matches: true },
    { title: "and between others", desired: ["a", "c"], live: ["a", "b", "c"], matches: true },
    { title: "an item that only desired has does not match", desired: ["a", "b"], live: ["a"], matches: false },
    { title: "another order does not match", desired: ["a", "b"], live: ["b", "a"], matches: false },
    { title: "an item may have more fields", desired: [{ n: "a" }], live: [{ n: "a", more: 1 }], matches: true },
    {
      title: "also beside items that are added",
      desired: [{ n: "a" }, { n: "b" }],
      live: [{ n: "a", more: 1 }, { n: "b" }, { n: "c" }],
      matches: true,
    },
    { title: "a changed item does not match", desired: [{ n: "a" }], live: [{ n: "b" }], matches: false },
    { title: "what is empty has to be there in a custom resource", desired: { a: [] }, live: {}, matches: false },
  ];
  for (const { title, desired, live, matches } of cases) test(title, () => assert.is(compares(desired, live), matches));

  test("strictly, what only live has does not match", () => {
    assert.not(compares({ a: 1 }, { a: 1, b: 2 }, { strict: true }));
    assert.not(compares(["a"], ["a", "b"], { strict: true }));
    assert.ok(compares({ a: [1, { b: 2 }] }, { a: [1, { b: 2 }] }, { strict: true }));
  });

  test("with ignored paths everything else is strict", () => {
    const options = { ignoredPaths: ["/spec/a", "/spec/list/0"] };
    assert.ok(compares({ a: 1, list: [1, 2] }, { a: 2, list: [3, 2] }, options));
    assert.ok(compares({ list: [1] }, { a: 2, list: [3] }, options), "also what only one of them has");
    assert.not(compares({ ab: 1 }, { ab: 2 }, options), "a path ends at a name");
    assert.not(compares({}, { b: 1 }, options));
    assert.ok(compares({ "a/b": 1 }, { "a/b": 2 }, { ignoredPaths: ["/spec/a~1b"] }), "a slash in a name is escaped");
    assert.throws(() => genericMatcher({ strict: true, ignoredPaths: ["/spec"] }), /leave strict out/);
  });

  const liveOf = (metadata: Partial<ObjectMeta>, content: object = {}): KubernetesObject => ({
    ...{ apiVersion: "apps/v1", kind: "Deployment", spec: {}, ...content },
    metadata: { name: "test", ...metadata },
  });
  const owner = (uid: string) => ({ apiVersion: "v1", kind: "X", name: "x", uid });
  const metadata = (desired: Partial<ObjectMeta>, live: Partial<ObjectMeta>, options: GenericMatcherOptions = {}) =>
    genericMatcher(options)(argumentsOf({ metadata: desired, spec: {} }, liveOf(live)));

  test("labels and annotations of others match, unless strictly", () => {
    assert.ok(metadata({ labels: { a: "x" } }, { labels: { a: "x", b: "y" }, annotations: { c: "z" } }));
    assert.not(metadata({ labels: { a: "x" } }, { labels: { a: "y" } }));
    assert.not(metadata({ labels: { a: "x" } }, { labels: { a: "x", b: "y" } }, { metadataStrict: true }));
    assert.ok(metadata({ labels: {} }, {}));
  });

  test("finalizers and owner references count if they are stated", () => {
    assert.ok(metadata({}, { finalizers: ["a/b"], ownerReferences: [owner("1")] }));
    assert.not(metadata({ finalizers: ["a/b", "c/d"] }, { finalizers: ["a/b"] }));
    assert.not(metadata({ finalizers: [] }, { finalizers: ["a/b"] }));
    assert.not(metadata({ ownerReferences: [owner("2")] }, { ownerReferences: [owner("1")] }));
    assert.ok(metadata({ finalizers: ["a/b"] }, { finalizers: ["a/b"] }));
  });

  test("nothing else of the metadata counts, nor does the status", () => {
    assert.ok(metadata({ uid: "1", generation: 1, resourceVersion: "1" }, { uid: "2", generation: 2 }));
    assert.ok(genericMatcher()(argumentsOf(withStatus(), deployment())));
  });

  test("of built-in kinds the server leaves out what is empty, and writes amounts in its own way", () => {
    const template = (container: object) => ({ spec: { template: { spec: { containers: [container] } } } });
    const desired = template({ name: "a", env: [], resources: { limits: { cpu: "1000m" } } });
    const live = template({ name: "a", resources: { limits: { cpu: "1" } }, imagePullPolicy: "Always" });
    assert.ok(genericMatcher()(argumentsOf({ metadata: {}, ...desired }, liveOf({}, live))));
  });

  test("of built-in kinds the server keeps a struct that is empty: it may say which form of a union is there", () => {
    const match = (desired: object, live: object) =>
      genericMatcher()(
        argumentsOf(
          { metadata: {}, spec: { template: { spec: desired } } },
          liveOf({}, { spec: { template: { spec: live } } }),
        ),
      );
    const volumes = (source: object) => ({ volumes: [{ name: "v", ...source }] });
    assert.not(match(volumes({ emptyDir: {} }), volumes({ configMap: { name: "c" } })));
    assert.ok(match(volumes({ emptyDir: {} }), volumes({ emptyDir: { medium: "Memory" } })));
    assert.not(match({ securityContext: {} }, {}));
    assert.not(match({ containers: [{ name: "a", securityContext: {} }] }, { containers: [{ name: "a" }] }));
    assert.ok(match({ nodeSelector: {}, tolerations: [] }, {}));
  });
});

suite("the differences that the generic matcher sees", (test) => {
  const find = (desired: object, live: object, limit = 10) =>
    genericDifferences(argumentsOf(desired as Deployment, live as Deployment))
      .slice(0, limit)
      .map(({ path, reason }) => `${path} ${reason}`);
  const withContainers = (...containers: object[]) => ({
    metadata: {},
    spec: { template: { spec: { containers } } },
  });

  test("there are none where it matches, and some where it does not", () => {
    assert.equal(find(deployment(), deployment(label)), []);
    assert.equal(find(deployment(scale), deployment()), ["spec.replicas differs"]);
    assert.equal(find(deployment(label), deployment()), ["metadata.labels.extra is missing"]);
  });

  test("each is named where it is, and no more than asked for", () => {
    const desired = withContainers({ name: "a", image: "a:1" }, { name: "b", image: "b:1" });
    const live = withContainers({ name: "a", image: "a:1", tty: true }, { name: "b", image: "b:2" });
    assert.equal(find(desired, live), ["spec.template.spec.containers[1].image differs"]);
    assert.equal(find({ ...desired, metadata: { finalizers: ["a/b"] } }, live, 1).length, 1);
  });

  test("lists that cannot be told apart by their places are one", () => {
    const [one, two] = [{ name: "a" }, { name: "b" }];
    assert.equal(find(withContainers(one, two), withContainers(one)), ["spec.template.spec.containers differs"]);
    assert.equal(find({ metadata: { finalizers: ["a/b"] } }, { metadata: { finalizers: ["a/b", "c/d"] } }), [
      "metadata.finalizers differs",
    ]);
  });
});

suite("matcher of updates", (test) => {
  const versioned = (resourceVersion: string, change?: (object: Draft<Deployment>) => void) =>
    withStatus((object) => {
      object.metadata.resourceVersion = resourceVersion;
      change?.(object);
    });

  test("an object that was not made from the live one matches if live has all of it", () => {
    assert.ok(updateMatcher(argumentsOf(versioned("1"), versioned("2", label))));
    assert.not(updateMatcher(argumentsOf(versioned("1", label), versioned("2"))));
  });

  test("what is missing in an object that was made from the live one was taken away", () => {
    assert.not(updateMatcher(argumentsOf(versioned("2"), versioned("2", label))));
    assert.ok(updateMatcher(argumentsOf(versioned("2", label), versioned("2", label))));
  });

  test("an update of the status looks at nothing else", () => {
    const more = ({ status }: Deployment) => void (status!.availableReplicas = 1);
    assert.ok(updateMatcher(argumentsOf(versioned("1", scale), versioned("2", more), true)));
    assert.not(updateMatcher(argumentsOf(versioned("2"), versioned("2", more), true)), "it was taken away");
  });

  test("an update of the object does not look at a status that it does not write", () => {
    const other = ({ status }: Deployment) => void (status!.replicas = 7);
    assert.ok(updateMatcher(argumentsOf(versioned("2", other), versioned("2"))));
    const withoutSubresource = {
      ...argumentsOf(versioned("2", other), versioned("2")),
      definition: { ...definition, hasStatusSubresource: false },
    };
    assert.not(updateMatcher(withoutSubresource));
  });
});

suite("the schema of a kind", (test) => {
  test("keeps one node for all keys of a map, which are data", () => {
    const data = schemaOf(builtinDefinition("v1", "ConfigMap")).property("data");
    assert.ok(data.property("a") === data.property("b"));
    const spec = schemaOf(builtinDefinition("apps/v1", "Deployment")).property("spec");
    assert.ok(spec.property("replicas") === spec.property("replicas"));
    assert.not(spec.property("replicas") === spec.property("paused"));
  });
});
