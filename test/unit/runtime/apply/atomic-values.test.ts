// Inside of values that are owned as a whole no managed field tells what the server filled in or left out; what is known of it is asked here.
import type { JsonObject, JsonValue } from "#apiserver/json.js";
import type { ResourceDefinition } from "#runtime/base/kubernetes-object.js";
import { findDifferences, matches } from "#runtime/apply/match.js";
import { parseOwnedFields, schemaOf } from "#runtime/apply/owned-fields.js";
import { builtinDefinition, customDefinition } from "../../../support/kinds/kind-definitions.js";
import { widgetCrd } from "../../../support/kinds/live-objects.js";
import { assert, suite } from "../../../support/suite.js";

interface Case {
  readonly title: string;
  readonly kind: readonly [apiVersion: string, kind: string];
  /** Where the value stands. */
  readonly path: readonly string[];
  readonly desired: JsonValue;
  readonly live: JsonValue;
  readonly matches: boolean;
  readonly owned?: JsonObject;
}

function at(path: readonly string[], value: JsonValue, prefix = ""): JsonObject {
  return path.reduceRight<JsonValue>((inner, name) => ({ [`${prefix}${name}`]: inner }), value) as JsonObject;
}

function differenceOf(
  definition: ResourceDefinition,
  { path, desired, live, owned = {} }: Omit<Case, "title" | "kind">,
) {
  const options = { owned: parseOwnedFields(JSON.stringify(at(path, owned, "f:"))), schema: schemaOf(definition) };
  return findDifferences(at(path, desired), at(path, live), options)[0];
}

const role = ["rbac.authorization.k8s.io/v1", "Role"] as const;
const binding = ["rbac.authorization.k8s.io/v1", "RoleBinding"] as const;
const deployment = ["apps/v1", "Deployment"] as const;
const slice = ["discovery.k8s.io/v1", "EndpointSlice"] as const;
const user = { kind: "User", name: "a" };
const group = "rbac.authorization.k8s.io";
const backend = { kind: "Bucket", name: "a" };
const selector = ["spec", "selector"];

const cases: readonly Case[] = [
  {
    title: "matches if the server omits an empty list",
    kind: role,
    path: ["rules"],
    desired: [{ verbs: ["get"], resourceNames: [] }],
    live: [{ verbs: ["get"] }],
    matches: true,
  },
  {
    title: "differs if a non-empty list is missing",
    kind: role,
    path: ["rules"],
    desired: [{ verbs: ["get"], resourceNames: ["a"] }],
    live: [{ verbs: ["get"] }],
    matches: false,
  },
  {
    title: "differs if a map value that is the empty string is missing",
    kind: deployment,
    path: selector,
    desired: { matchLabels: { app: "a", tier: "" } },
    live: { matchLabels: { app: "a" } },
    matches: false,
  },
  {
    title: "differs if a zero that the server keeps is missing",
    kind: slice,
    path: ["ports"],
    desired: [{ name: "a", protocol: "TCP", port: 0 }],
    live: [{ name: "a", protocol: "TCP" }],
    matches: false,
  },
  {
    title: "differs if an empty string that the server keeps is missing",
    kind: ["admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy"],
    path: ["spec", "validations"],
    desired: [{ expression: "true", reason: "" }],
    live: [{ expression: "true" }],
    matches: false,
  },
  {
    title: "differs if false that the server keeps is missing",
    kind: ["resource.k8s.io/v1", "ResourceSlice"],
    path: ["spec", "devices"],
    desired: [{ name: "a", attributes: { big: { bool: false } } }],
    live: [{ name: "a", attributes: { big: {} } }],
    matches: false,
  },
  {
    title: "differs if an empty struct is missing",
    kind: ["apiextensions.k8s.io/v1", "CustomResourceDefinition"],
    path: ["spec", "versions"],
    desired: [{ name: "v1", subresources: { status: {} } }],
    live: [{ name: "v1", subresources: {} }],
    matches: false,
  },
  {
    title: "differs if additionalProperties: false is missing in a schema",
    kind: ["apiextensions.k8s.io/v1", "CustomResourceDefinition"],
    path: ["spec", "versions"],
    desired: [{ name: "v1", schema: { openAPIV3Schema: { type: "object", additionalProperties: false } } }],
    live: [{ name: "v1", schema: { openAPIV3Schema: { type: "object" } } }],
    matches: false,
  },
  {
    title: "matches an omitted name that the server defaults to the empty string",
    kind: slice,
    path: ["ports"],
    desired: [{ port: 80 }],
    live: [{ name: "", protocol: "TCP", port: 80 }],
    matches: true,
  },
  {
    title: "matches an omitted API group that the server defaults",
    kind: binding,
    path: ["subjects"],
    desired: [user],
    live: [{ ...user, apiGroup: group }],
    matches: true,
  },
  {
    title: "matches an empty API group that the server defaults",
    kind: binding,
    path: ["subjects"],
    desired: [{ ...user, apiGroup: "" }],
    live: [{ ...user, apiGroup: group }],
    matches: true,
  },
  {
    title: "differs if the API group is not the default",
    kind: binding,
    path: ["subjects"],
    desired: [user],
    live: [{ ...user, apiGroup: "other" }],
    matches: false,
  },
  {
    title: "matches an omitted API group that the server shows as null",
    kind: ["networking.k8s.io/v1", "Ingress"],
    path: ["spec", "defaultBackend", "resource"],
    desired: backend,
    live: { ...backend, apiGroup: null },
    matches: true,
  },
  {
    title: "matches an equal RawExtension as a whole",
    kind: ["apps/v1", "ControllerRevision"],
    path: ["data"],
    desired: { a: { b: 1 } },
    live: { a: { b: 1 } },
    matches: true,
  },
  {
    title: "differs if a RawExtension has a foreign field",
    kind: ["apps/v1", "ControllerRevision"],
    path: ["data"],
    desired: { a: { b: 1 } },
    live: { a: { b: 1, c: 2 } },
    matches: false,
  },
  {
    title: "differs if a RawExtension has a foreign field named constructor",
    kind: ["apps/v1", "ControllerRevision"],
    path: ["data"],
    desired: { a: 1 },
    live: { a: 1, constructor: 2 },
    matches: false,
  },
  {
    title: "matches claimRef by its owned fields, as it is a granular map",
    kind: ["v1", "PersistentVolume"],
    path: ["spec", "claimRef"],
    desired: { name: "a" },
    live: { name: "a", uid: "1-2" },
    owned: { "f:name": {} },
    matches: true,
  },
  {
    title: "matches a time as it is stored",
    kind: ["v1", "PodTemplate"],
    path: ["template", "metadata", "creationTimestamp"],
    desired: "2026-01-01T01:00:00+01:00",
    live: "2026-01-01T00:00:00Z",
    matches: true,
  },
  {
    title: "differs if a set is desired with a duplicate value",
    kind: ["admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding"],
    path: ["spec", "validationActions"],
    desired: ["Warn", "Warn"],
    live: ["Warn"],
    owned: { 'v:"Warn"': {} },
    matches: false,
  },
];

suite("match of atomic values", (test) => {
  for (const { title, kind, ...rest } of cases)
    test(`${kind[1]}: ${title}`, () => {
      const difference = differenceOf(builtinDefinition(...kind), rest);
      assert.is(difference === undefined, rest.matches, JSON.stringify(difference));
    });

  test("treats an unowned empty list with item keys as absent in built-in kinds, but not in custom resources", () => {
    const path = ["metadata", "labels", "app"];
    const owned = parseOwnedFields(JSON.stringify(at(path, {}, "f:")));
    const live = at(path, "a");
    const account = { ...live, secrets: [] };
    assert.ok(matches(account, live, { owned, schema: schemaOf(builtinDefinition("v1", "ServiceAccount")) }));
    const widget = { ...live, spec: { mapList: [] } };
    assert.not(matches(widget, live, { owned, schema: schemaOf(customDefinition(widgetCrd)) }));
  });

  test("expects no omitted or defaulted values in a custom resource", () => {
    const custom = customDefinition(widgetCrd);
    const path = ["spec", "atomicObject"];
    assert.ok(differenceOf(custom, { path, desired: { a: 1, b: 0 }, live: { a: 1 }, matches: false }));
    assert.ok(differenceOf(custom, { path, desired: { a: 1 }, live: { a: 1, b: null }, matches: false }));
  });
});

suite("findDifferences", (test) => {
  const definition = builtinDefinition("v1", "ConfigMap");
  const find = (desired: JsonObject, live: JsonObject, owned: JsonObject, limit = 10) =>
    findDifferences(desired, live, {
      owned: parseOwnedFields(JSON.stringify(owned)),
      schema: schemaOf(definition),
      limit,
    });

  test("names every path down to the field with a reason, and no values", () => {
    const desired = { metadata: { labels: { a: "x" } }, data: { a: "secret", b: "2", c: "3" } };
    const live = { metadata: { labels: { a: "y" } }, data: { a: "1", b: "2", c: "4" } };
    const found = find(desired, live, { "f:data": { "f:b": {}, "f:c": {}, "f:old": {}, "f:constructor": {} } });
    assert.equal(found, [
      { path: "metadata.labels.a", reason: "is not owned yet" },
      { path: "data.a", reason: "is not owned yet" },
      { path: "data.c", reason: "differs" },
      { path: "data.old", reason: "is owned but not desired any more" },
      { path: "data.constructor", reason: "is owned but not desired any more" },
    ]);
  });

  test("returns at most the requested number of differences", () => {
    const data = Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`key-${index}`, "x"]));
    assert.is(find({ data }, { data: {} }, {}, 3).length, 3);
  });
});
