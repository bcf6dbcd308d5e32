// JOSDK's PatchMatchersTest, StatusMatchersTest and the rules of its generic matcher; the name of the original stands in brackets.
import type {
  Draft,
  JsonValue,
  KubernetesObject,
  ObjectBody,
  ObjectMeta,
  ResourceDefinition,
} from "#runtime/base/kubernetes-object.js";
import {
  genericDifferences,
  genericMatcher,
  patchMatcher,
  statusMatcher,
  updateMatcher,
  type GenericMatcherOptions,
  type MatcherArguments,
} from "#runtime/apply/generic-matcher.js";
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

suite("patchMatcher for JSON patches", (test) => {
  test("ignores status defaults of the schema that are missing in the desired status, and nothing else", () => {
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
    ["matches equal objects (jsonPatchMatchesIdenticalResources)", deployment(), deployment(), true],
    [
      "does not match an additional live field (jsonPatchDoesNotMatchWhenActualHasAdditionalField)",
      deployment(),
      deployment(label),
      false,
    ],
    [
      "does not match an additional desired field (jsonPatchDoesNotMatchWhenDesiredHasAdditionalField)",
      deployment(label),
      deployment(),
      false,
    ],
    [
      "does not match a different value (jsonPatchDoesNotMatchOnDifferentValue)",
      deployment(scale),
      deployment(),
      false,
    ],
  ];
  for (const [title, desired, live, matches] of cases)
    test(`${title}`, () => assert.is(matchesJsonPatch(desired, live), matches));

  test("has no desired object for a patch that cannot be applied to the live object", () => {
    const live = deployment();
    const write = jsonPatchOf(target, live, [{ op: "remove", path: "/spec/nothing" }]);
    assert.is(desiredOf(write, live), undefined);
  });
});

suite("patchMatcher for merge patches", (test) => {
  const cases: [string, object, Deployment, boolean][] = [
    ["matches equal objects (mergePatchMatchesIdenticalResources)", deployment(), deployment(), true],
    [
      "matches an additional live field (mergePatchMatchesWhenActualHasAdditionalField)",
      deployment(),
      deployment(label),
      true,
    ],
    [
      "does not match an additional desired field (mergePatchDoesNotMatchWhenDesiredHasAdditionalField)",
      deployment(label),
      deployment(),
      false,
    ],
    [
      "does not match a different value (mergePatchDoesNotMatchOnDifferentValue)",
      deployment(scale),
      deployment(),
      false,
    ],
    ["matches null for a missing field", { metadata: { name: "test" }, spec: { paused: null } }, deployment(), true],
    [
      "does not match null for an existing field",
      { metadata: { name: "test" }, spec: { replicas: null } },
      deployment(),
      false,
    ],
    [
      "ignores name, namespace and resourceVersion",
      { metadata: { name: "test", namespace: "default", resourceVersion: "7" } },
      deployment(),
      true,
    ],
  ];
  for (const [title, desired, live, matches] of cases)
    test(`${title}`, () => assert.is(matchesMergePatch(desired, live), matches));
});

suite("patchMatcher for the status", (test) => {
  test("ignores changes outside of the status (statusMatchersIgnoreChangesOutsideStatus)", () => {
    assert.ok(matchesJsonPatch(withStatus(scale), withStatus(), true));
    assert.ok(matchesMergePatch(withStatus(scale), withStatus(), true));
  });

  test("does not match a different status (statusMatchersDoNotMatchOnDifferentStatus)", () => {
    const desired = withStatus(({ status }) => void (status!.replicas = 9));
    assert.not(matchesJsonPatch(desired, withStatus(), true));
    assert.not(matchesMergePatch(desired, withStatus(), true));
  });

  test("matches additional live fields for merge but not JSON patches (statusMatchersDifferOnAdditionalActualStatusField)", () => {
    const live = withStatus(({ status }) => void (status!.availableReplicas = 1));
    assert.not(matchesJsonPatch(withStatus(), live, true));
    assert.ok(matchesMergePatch(withStatus(), live, true));
  });

  test("matches if both objects have no status (statusMatchersMatchWhenBothStatusesAbsent)", () => {
    assert.ok(matchesJsonPatch(deployment(), deployment(), true));
    assert.ok(matchesMergePatch(deployment(), deployment(), true));
  });

  test("ignores the status in a patch of an object with a status subresource", () => {
    const desired = withStatus(({ status }) => void (status!.replicas = 9));
    const live = withStatus();
    assert.ok(patchMatcher({ ...argumentsOf(desired, live), verb: "mergePatch" }));
  });
});

suite("statusMatcher", (test) => {
  const more = withStatus(({ status }) => void (status!.availableReplicas = 1));
  const cases: [string, Deployment, Deployment, boolean][] = [
    ["matches an equal status (matchesEqualStatus)", withStatus(), withStatus(), true],
    [
      "does not match a different value (doesNotMatchDifferentStatus)",
      withStatus(({ status }) => void (status!.replicas = 2)),
      withStatus(),
      false,
    ],
    ["ignores changes outside of the status (ignoresChangesOutsideStatus)", withStatus(scale), withStatus(), true],
    ["matches an additional live field", withStatus(), more, true],
    ["does not match an additional desired field", more, withStatus(), false],
    ["does not match an object without a status", withStatus(), deployment(), false],
  ];
  for (const [title, desired, live, matches] of cases)
    test(`${title}`, () => assert.is(statusMatcher()(argumentsOf(desired, live)), matches));

  test("does not match an additional live field in strict mode", () => {
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

suite("genericMatcher", (test) => {
  const cases: { title: string; desired: JsonValue; live: JsonValue; matches: boolean }[] = [
    { title: "matches an additional live field", desired: { a: 1 }, live: { a: 1, b: 2 }, matches: true },
    { title: "does not match an additional desired field", desired: { a: 1, b: 2 }, live: { a: 1 }, matches: false },
    { title: "treats null as absent", desired: { a: 1, b: null }, live: { a: 1 }, matches: true },
    { title: "does not match a value of another type", desired: { a: ["x"] }, live: { a: { 0: "x" } }, matches: false },
    { title: "matches an additional live item at the end", desired: ["a"], live: ["a", "b"], matches: true },
    { title: "matches an additional live item at the beginning", desired: ["b"], live: ["a", "b"], matches: true },
    {
      title: "matches an additional live item between others",
      desired: ["a", "c"],
      live: ["a", "b", "c"],
      matches: true,
    },
    { title: "does not match an additional desired item", desired: ["a", "b"], live: ["a"], matches: false },
    { title: "does not match items in another order", desired: ["a", "b"], live: ["b", "a"], matches: false },
    {
      title: "matches an item with additional fields",
      desired: [{ n: "a" }],
      live: [{ n: "a", more: 1 }],
      matches: true,
    },
    {
      title: "matches an item with additional fields beside additional items",
      desired: [{ n: "a" }, { n: "b" }],
      live: [{ n: "a", more: 1 }, { n: "b" }, { n: "c" }],
      matches: true,
    },
    { title: "does not match a changed item", desired: [{ n: "a" }], live: [{ n: "b" }], matches: false },
    { title: "does not match a missing empty list in a custom resource", desired: { a: [] }, live: {}, matches: false },
  ];
  for (const { title, desired, live, matches } of cases) test(title, () => assert.is(compares(desired, live), matches));

  test("does not match additional live fields or items in strict mode", () => {
    assert.not(compares({ a: 1 }, { a: 1, b: 2 }, { strict: true }));
    assert.not(compares(["a"], ["a", "b"], { strict: true }));
    assert.ok(compares({ a: [1, { b: 2 }] }, { a: [1, { b: 2 }] }, { strict: true }));
  });

  test("compares everything except ignored paths strictly", () => {
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

  test("matches additional live labels and annotations, except in strict mode", () => {
    assert.ok(metadata({ labels: { a: "x" } }, { labels: { a: "x", b: "y" }, annotations: { c: "z" } }));
    assert.not(metadata({ labels: { a: "x" } }, { labels: { a: "y" } }));
    assert.not(metadata({ labels: { a: "x" } }, { labels: { a: "x", b: "y" } }, { metadataStrict: true }));
    assert.ok(metadata({ labels: {} }, {}));
  });

  test("compares finalizers and owner references only if they are desired", () => {
    assert.ok(metadata({}, { finalizers: ["a/b"], ownerReferences: [owner("1")] }));
    assert.not(metadata({ finalizers: ["a/b", "c/d"] }, { finalizers: ["a/b"] }));
    assert.not(metadata({ finalizers: [] }, { finalizers: ["a/b"] }));
    assert.not(metadata({ ownerReferences: [owner("2")] }, { ownerReferences: [owner("1")] }));
    assert.ok(metadata({ finalizers: ["a/b"] }, { finalizers: ["a/b"] }));
  });

  test("ignores all other metadata and the status", () => {
    assert.ok(metadata({ uid: "1", generation: 1, resourceVersion: "1" }, { uid: "2", generation: 2 }));
    assert.ok(genericMatcher()(argumentsOf(withStatus(), deployment())));
  });

  test("normalizes quantities and treats empty lists as absent in built-in kinds", () => {
    const template = (container: object) => ({ spec: { template: { spec: { containers: [container] } } } });
    const desired = template({ name: "a", env: [], resources: { limits: { cpu: "1000m" } } });
    const live = template({ name: "a", resources: { limits: { cpu: "1" } }, imagePullPolicy: "Always" });
    assert.ok(genericMatcher()(argumentsOf({ metadata: {}, ...desired }, liveOf({}, live))));
  });

  test("compares empty structs in built-in kinds, which may select a member of a union", () => {
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

suite("genericDifferences", (test) => {
  const find = (desired: object, live: object, limit = 10) =>
    genericDifferences(argumentsOf(desired as Deployment, live as Deployment))
      .slice(0, limit)
      .map(({ path, reason }) => `${path} ${reason}`);
  const withContainers = (...containers: object[]) => ({
    metadata: {},
    spec: { template: { spec: { containers } } },
  });

  test("returns no differences if the objects match, and the changed paths otherwise", () => {
    assert.equal(find(deployment(), deployment(label)), []);
    assert.equal(find(deployment(scale), deployment()), ["spec.replicas differs"]);
    assert.equal(find(deployment(label), deployment()), ["metadata.labels.extra is missing"]);
  });

  test("names the path of each difference, up to the requested number", () => {
    const desired = withContainers({ name: "a", image: "a:1" }, { name: "b", image: "b:1" });
    const live = withContainers({ name: "a", image: "a:1", tty: true }, { name: "b", image: "b:2" });
    assert.equal(find(desired, live), ["spec.template.spec.containers[1].image differs"]);
    assert.equal(find({ ...desired, metadata: { finalizers: ["a/b"] } }, live, 1).length, 1);
  });

  test("reports one difference for lists with different numbers of items", () => {
    const [one, two] = [{ name: "a" }, { name: "b" }];
    assert.equal(find(withContainers(one, two), withContainers(one)), ["spec.template.spec.containers differs"]);
    assert.equal(find({ metadata: { finalizers: ["a/b"] } }, { metadata: { finalizers: ["a/b", "c/d"] } }), [
      "metadata.finalizers differs",
    ]);
  });
});

suite("updateMatcher", (test) => {
  const versioned = (resourceVersion: string, change?: (object: Draft<Deployment>) => void) =>
    withStatus((object) => {
      object.metadata.resourceVersion = resourceVersion;
      change?.(object);
    });

  test("ignores additional live fields if the object is not based on the live version", () => {
    assert.ok(updateMatcher(argumentsOf(versioned("1"), versioned("2", label))));
    assert.not(updateMatcher(argumentsOf(versioned("1", label), versioned("2"))));
  });

  test("treats fields missing in an object based on the live version as removed", () => {
    assert.not(updateMatcher(argumentsOf(versioned("2"), versioned("2", label))));
    assert.ok(updateMatcher(argumentsOf(versioned("2", label), versioned("2", label))));
  });

  test("compares only the status in an update of the status", () => {
    const more = ({ status }: Deployment) => void (status!.availableReplicas = 1);
    assert.ok(updateMatcher(argumentsOf(versioned("1", scale), versioned("2", more), true)));
    assert.not(updateMatcher(argumentsOf(versioned("2"), versioned("2", more), true)), "it was taken away");
  });

  test("ignores the status in an update of an object with a status subresource", () => {
    const other = ({ status }: Deployment) => void (status!.replicas = 7);
    assert.ok(updateMatcher(argumentsOf(versioned("2", other), versioned("2"))));
    const withoutSubresource = {
      ...argumentsOf(versioned("2", other), versioned("2")),
      definition: { ...definition, hasStatusSubresource: false },
    };
    assert.not(updateMatcher(withoutSubresource));
  });
});

suite("schemaOf", (test) => {
  test("returns the same node for all keys of a map and for repeated lookups of a field", () => {
    const data = schemaOf(builtinDefinition("v1", "ConfigMap")).property("data");
    assert.ok(data.property("a") === data.property("b"));
    const spec = schemaOf(builtinDefinition("apps/v1", "Deployment")).property("spec");
    assert.ok(spec.property("replicas") === spec.property("replicas"));
    assert.not(spec.property("replicas") === spec.property("paused"));
  });
});
