// JOSDK's SSABasedGenericKubernetesResourceMatcherTest and PodTemplateSpecSanitizerTest, by their numbers in JOSDK.md. Where it prunes and
// sanitises copies, ours looks at the schema: what the originals do to the copies is asked here as what it is for, the verdict.
import type { JsonObject } from "#apiserver/json.js";
import { ResourceCache } from "#runtime/cache/resource-cache.js";
import { ResourceView } from "#runtime/cache/resource-view.js";
import { keyOf, ownedBy, type DecodedResource } from "#runtime/base/kubernetes-object.js";
import { ApplyMatcher } from "#runtime/apply/apply-matcher.js";
import { type Write, applyOf } from "#runtime/apply/write.js";
import { parseOwnedFields } from "#runtime/apply/owned-fields.js";
import { builtinDefinition, type JsonResource } from "../../../support/kinds/kind-definitions.js";
import { assert, suite } from "../../../support/suite.js";

const FIELD_MANAGER = "controller";
const WORKLOADS = ["StatefulSet", "Deployment", "ReplicaSet", "DaemonSet"] as const;
type Workload = (typeof WORKLOADS)[number];

/** Returns what the server stores of an applied object, and what of it is owned: all, as it is told apart. */
function stored(object: JsonResource, fields: object): DecodedResource<JsonResource> {
  const fieldsV1 = JSON.stringify(fields);
  const owned = [{ fieldManager: FIELD_MANAGER, subresource: "", apiVersion: object.apiVersion, fieldsV1 }];
  return { object: structuredClone(object), owned };
}

function applicationOf(desired: JsonResource): Write {
  const definition = builtinDefinition(desired.apiVersion, desired.kind);
  const cache = new ResourceView(definition);
  cache.attach(new ResourceCache());
  const { apiVersion: _apiVersion, kind: _kind, ...rest } = structuredClone(desired);
  return applyOf({ definition, cache }, rest);
}

function matches(desired: JsonResource, live: DecodedResource | undefined): boolean {
  return new ApplyMatcher(FIELD_MANAGER).matches(applicationOf(desired), live);
}

function differencesOf(desired: JsonResource, live: DecodedResource) {
  return new ApplyMatcher(FIELD_MANAGER).differences(applicationOf(desired), live, 1);
}

const ALL = {};

/** The fields of a pod template with these containers, as FieldsV1. */
function templateFields(containers: readonly JsonObject[], list = "f:containers"): object {
  const items = containers.map((container) => {
    const names = Object.keys(container).map((name) => [`f:${name}`, fieldsOf(name, container[name] as JsonObject)]);
    return [`k:${JSON.stringify({ name: container["name"] })}`, { ".": {}, ...Object.fromEntries(names) }];
  });
  return { "f:metadata": { "f:labels": { "f:app": {} } }, "f:spec": { [list]: Object.fromEntries(items) } };
}

function fieldsOf(name: string, value: unknown): object {
  if (name === "resources" && value !== null) {
    const kinds = Object.entries(value as { [kind: string]: object });
    const amounts = (amount: object) => Object.fromEntries(Object.keys(amount).map((key) => [`f:${key}`, {}]));
    return Object.fromEntries(kinds.map(([kind, amount]) => [`f:${kind}`, amounts(amount)]));
  }
  if (name !== "env") return {};
  const items = (value as { name: string }[]).map((item) => {
    const members = Object.keys(item).map((key) => [`f:${key}`, {}]);
    return [`k:${JSON.stringify({ name: item.name })}`, { ".": {}, ...Object.fromEntries(members) }];
  });
  return Object.fromEntries(items);
}

/** A workload with these containers. */
function workload(kind: Workload, containers: readonly JsonObject[], more: JsonObject = {}): JsonResource {
  const template = { metadata: { labels: { app: "a" } }, spec: { containers: [...containers] } };
  const spec = { selector: { matchLabels: { app: "a" } }, template, ...more };
  return { apiVersion: "apps/v1", kind, metadata: { name: "a", namespace: "x", labels: { app: "a" } }, spec };
}

function workloadFields(containers: readonly JsonObject[], more: object = {}): object {
  return {
    "f:metadata": { "f:labels": { "f:app": {} } },
    "f:spec": { "f:selector": {}, "f:template": templateFields(containers), ...more },
  };
}

const nginx = (more: JsonObject = {}): JsonObject => ({ name: "nginx", image: "nginx:1", ...more });
const withAmounts = (cpu: string, memory = "128Mi", more: JsonObject = {}): JsonObject =>
  nginx({ resources: { requests: { cpu, memory, ...more } } });

function pair(containers: readonly JsonObject[], live = containers, kind: Workload = "Deployment") {
  return {
    desired: workload(kind, containers),
    live: stored(workload(kind, live), workloadFields(containers)),
  };
}

const configMap = (data: JsonObject, metadata: JsonObject = {}): JsonResource => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "a", namespace: "x", ...metadata },
  data,
});
const secret = (data: JsonObject): JsonResource => ({ ...configMap(data), kind: "Secret" });

suite("ApplyMatcher (SSABasedGenericKubernetesResourceMatcherTest)", (test) => {
  test("does not match a field that is not owned, regardless of its live value [1]", () => {
    const desired = workload("StatefulSet", [nginx({ image: "nginx:2" })]);
    const fields = workloadFields([{ name: "nginx" }]);
    assert.not(matches(desired, stored(workload("StatefulSet", [nginx()]), fields)));
    assert.not(matches(desired, stored(desired, fields)), "even if the value is the same: an apply takes it over");
  });

  test("does not match an object that another field manager applied [2]", () => {
    const live = stored(configMap({ a: "1" }), { "f:data": { "f:a": {} } });
    assert.ok(matches(configMap({ a: "1" }), live));
    assert.not(matches(configMap({ a: "1" }), { object: live.object }));
    const others = live.owned!.map((owned) => ({ ...owned, fieldManager: "other" }));
    assert.not(matches(configMap({ a: "1" }), { object: live.object, owned: others }));
  });

  test("does not match an object applied in another apiVersion (detectApiVersionChange) [JOSDK 5.6]", () => {
    const live = stored(configMap({ a: "1" }), { "f:data": { "f:a": {} } });
    const before = live.owned!.map((owned) => ({ ...owned, apiVersion: "v1beta1" }));
    assert.not(matches(configMap({ a: "1" }), { object: live.object, owned: before }));
    assert.ok(matches(configMap({ a: "1" }), live));
  });

  test("uses the managed fields of the object, not those of the status [3]", () => {
    const [owned] = stored(configMap({ a: "1" }), { "f:data": { "f:a": {} } }).owned!;
    const entry = { object: configMap({ a: "1" }), owned: [{ ...owned!, subresource: "status" }, owned!] };
    assert.equal(ownedBy(entry, FIELD_MANAGER), owned);
    assert.ok(matches(configMap({ a: "1" }), entry));
  });

  test("compares a Secret by its data without leaking values [4, 5]", () => {
    const live = stored(secret({ password: "czNjcmV0" }), { "f:data": { "f:password": {} } });
    assert.ok(matches(secret({ password: "czNjcmV0" }), live));
    const found = differencesOf(secret({ password: "b3RoZXI=" }), live);
    assert.equal(found, [{ path: "data.password", reason: "differs" }]);
  });

  test("ignores fields that other managers added [6]", () => {
    const live = stored(configMap({ a: "1", theirs: "x" }, { labels: { theirs: "x" } }), { "f:data": { "f:a": {} } });
    assert.ok(matches(configMap({ a: "1" }), live));
  });

  test("does not match if an owned list item is missing [7]", () => {
    const { desired, live } = pair([nginx(), nginx({ name: "side" })], [nginx()]);
    assert.equal(differencesOf(desired, live), [{ path: "spec.template.spec.containers[1]", reason: "is missing" }]);
  });

  test("compares a duplicate list item without an error [8]", () => {
    const { desired, live } = pair([nginx()], [nginx(), nginx({ image: "other" })]);
    assert.not(matches(desired, live));
  });

  test("compares a list item that is owned as a whole completely [9]", () => {
    const reference = { apiVersion: "v1", kind: "ConfigMap", name: "o", uid: "1-2", controller: true };
    const fields = { "f:metadata": { "f:ownerReferences": { 'k:{"uid":"1-2"}': {} } }, "f:data": { "f:a": {} } };
    const live = stored(configMap({ a: "1" }, { ownerReferences: [reference] }), fields);
    assert.ok(matches(configMap({ a: "1" }, { ownerReferences: [reference] }), live));
    assert.not(matches(configMap({ a: "1" }, { ownerReferences: [{ ...reference, controller: false }] }), live));
    assert.not(matches(configMap({ a: "1" }, { ownerReferences: [{ ...reference, uid: "3-4" }] }), live));
  });

  test("compares an atomic list as a whole [10]", () => {
    const role = (verbs: string[]): JsonResource => ({
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "Role",
      metadata: { name: "a", namespace: "x" },
      rules: [{ apiGroups: [""], resources: ["pods"], verbs }],
    });
    const live = stored(role(["get", "list"]), { "f:rules": ALL });
    assert.ok(matches(role(["get", "list"]), live));
    assert.not(matches(role(["get"]), live));
    assert.not(matches(role(["list", "get"]), live));
  });

  test("matches containers in their order, also with a foreign one in between [11]", () => {
    const containers = [nginx(), nginx({ name: "side" })];
    const { desired, live } = pair(containers, [nginx(), { name: "theirs" }, nginx({ name: "side" })]);
    assert.ok(matches(desired, live));
    assert.not(matches(workload("Deployment", [...containers].reverse()), live));
  });

  test("does not match a different value, regardless of who changed it [12, 13]", () => {
    const { desired, live } = pair([nginx()]);
    assert.not(matches(workload("Deployment", [nginx({ image: "nginx:2" })]), live));
    assert.not(matches(desired, pair([nginx()], [nginx({ image: "nginx:2" })]).live));
  });

  test("does not match a missing desired label [14]", () => {
    const live = stored(configMap({ a: "1" }, { labels: { a: "x" } }), {
      "f:data": { "f:a": {} },
      "f:metadata": { "f:labels": { "f:a": {} } },
    });
    assert.ok(matches(configMap({ a: "1" }, { labels: { a: "x" } }), live));
    assert.not(matches(configMap({ a: "1" }, { labels: { a: "x", b: "y" } }), live));
  });

  test("compares finalizers by value and ignores foreign ones [15]", () => {
    const fields = { "f:metadata": { "f:finalizers": { 'v:"a/b"': {} } }, "f:data": { "f:a": {} } };
    const live = stored(configMap({ a: "1" }, { finalizers: ["x/y", "a/b"] }), fields);
    assert.ok(matches(configMap({ a: "1" }, { finalizers: ["a/b"] }), live));
    assert.not(matches(configMap({ a: "1" }), live));
    assert.not(matches(configMap({ a: "1" }, { finalizers: ["a/b", "c/d"] }), live));
  });

  const claim = (more: JsonObject = {}, spec: JsonObject = {}): JsonObject => ({
    metadata: { name: "data" },
    spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } }, ...spec },
    ...more,
  });
  const filled = claim(
    { apiVersion: "v1", kind: "PersistentVolumeClaim", status: { phase: "Pending" } },
    { volumeMode: "Filesystem" },
  );
  const withClaims = (...volumeClaimTemplates: JsonObject[]) =>
    workload("StatefulSet", [nginx()], { volumeClaimTemplates });
  const liveClaims = stored(withClaims(filled), workloadFields([nginx()], { "f:volumeClaimTemplates": ALL }));

  test("matches a volumeClaimTemplate with and without server defaults [16, 17, 18]", () => {
    assert.ok(matches(withClaims(claim()), liveClaims));
    assert.ok(matches(withClaims(claim({ status: { phase: "Pending" } })), liveClaims));
    assert.ok(matches(withClaims(claim({}, { volumeMode: "Filesystem" })), liveClaims));
  });

  test("does not match an additional volumeClaimTemplate, or another size, status or volumeMode [19, 20, 21, 22]", () => {
    assert.not(matches(withClaims(claim(), claim({ metadata: { name: "more" } })), liveClaims));
    assert.not(matches(withClaims(claim({}, { resources: { requests: { storage: "2Gi" } } })), liveClaims));
    assert.not(matches(withClaims(claim({ status: { phase: "Bound" } })), liveClaims));
    assert.not(matches(withClaims(claim({}, { volumeMode: "Block" })), liveClaims));
  });

  for (const [number, kind] of [
    ["23, 24", "StatefulSet"],
    ["27, 28", "ReplicaSet"],
    ["30, 31", "DaemonSet"],
  ] as const)
    test(`matches equal quantities in another notation in a ${kind}, but no other quantities [${number}]`, () => {
      const live = pair([withAmounts("2", "1Gi")], [withAmounts("2", "1Gi")], kind).live;
      assert.ok(matches(workload(kind, [withAmounts("2000m", "1024Mi")]), live));
      assert.not(matches(workload(kind, [withAmounts("2001m", "1024Mi")]), live));
    });

  for (const [number, one, other] of [
    ["25", "ReplicaSet", "StatefulSet"],
    ["26", "ReplicaSet", "Deployment"],
    ["29", "DaemonSet", "ReplicaSet"],
    ["32", "ReplicaSet", "DaemonSet"],
  ] as const)
    test(`reports that a ${one} does not exist beside a ${other} of its name [${number}]`, () => {
      const viewOf = (kind: Workload) => {
        const [view, watched] = [new ResourceView(builtinDefinition("apps/v1", kind)), new ResourceCache()];
        view.attach(watched);
        const { live } = pair([nginx()], [nginx()], kind);
        return { view, live, key: keyOf(live.object.metadata), add: () => void watched.observe(live) };
      };
      const [wanted, beside] = [viewOf(one), viewOf(other)];
      const target = { definition: builtinDefinition("apps/v1", one), cache: wanted.view };
      const { desired } = pair([nginx()], [nginx()], one);
      const found = () =>
        new ApplyMatcher(FIELD_MANAGER).differences(applyOf(target, desired), wanted.view.get(wanted.key), 1);
      beside.add();
      assert.is(beside.view.get(wanted.key)?.object, beside.live.object);
      assert.equal(found(), [{ path: "", reason: "does not exist" }]);
      wanted.add();
      assert.equal(found(), []);
    });

  test("throws an error for an unknown path element in managed fields [34]", () => {
    assert.throws(
      () => parseOwnedFields('{"f:spec":{"x:replicas":{}}}'),
      /unknown path element "x:replicas" in managed fields/,
    );
  });

  test("ignores the order of fields, but not of list items [35, 36]", () => {
    const live = stored(configMap({ a: "1", b: "2" }), { "f:data": { "f:b": {}, "f:a": {} } });
    assert.ok(matches(configMap({ b: "2", a: "1" }), live));
    const args = pair([nginx({ args: ["a", "b"] })]).live;
    assert.ok(matches(workload("Deployment", [nginx({ args: ["a", "b"] })]), args));
    assert.not(matches(workload("Deployment", [nginx({ args: ["b", "a"] })]), args));
  });
});

suite("ApplyMatcher on pod templates (PodTemplateSpecSanitizerTest)", (test) => {
  const same = (desired: JsonObject[], live: JsonObject[]) => {
    const given = pair(desired, live);
    return matches(given.desired, given.live);
  };

  test("does not match a missing template or template spec [1, 2]", () => {
    const { desired, live } = pair([nginx()]);
    for (const template of [undefined, null, {}, { metadata: { labels: { app: "a" } } }]) {
      const object = structuredClone(live.object);
      const spec = object["spec"] as JsonObject;
      if (template === undefined) delete spec["template"];
      else spec["template"] = template;
      assert.not(matches(desired, { ...live, object }));
    }
  });

  test("does not match another number of containers or another name, but ignores injected ones [3, 4]", () => {
    assert.not(same([nginx(), nginx({ name: "b" })], [nginx()]));
    assert.not(same([nginx()], [nginx({ name: "b" })]));
    assert.ok(same([nginx()], [nginx(), nginx({ name: "injected" })]), "one that others added does not count");
  });

  test("does not match missing resources or resource names, but ignores added ones [5, 6]", () => {
    assert.not(same([withAmounts("1")], [nginx()]));
    assert.ok(same([nginx()], [withAmounts("1")]), "those that others added do not count");
    assert.not(same([withAmounts("1")], [nginx({ resources: { requests: { cpu: "1" } } })]));
  });

  test("matches equal quantities [7]", () => {
    assert.ok(same([withAmounts("2", "4Gi")], [withAmounts("2", "4Gi")]));
  });

  test("does not match other quantities [8]", () => {
    assert.not(same([withAmounts("2", "4Gi")], [withAmounts("4", "4Gi")]));
    const storage = { "ephemeral-storage": "4Gi" };
    assert.not(same([withAmounts("2", "4Gi", storage)], [withAmounts("2", "4Gi", { "ephemeral-storage": "2Gi" })]));
  });

  test("matches equal quantities in another notation [14]", () => {
    assert.ok(same([withAmounts("2000m", "4096Mi")], [withAmounts("2", "4Gi")]));
    const [mega, giga] = [{ "ephemeral-storage": "4096Mi" }, { "ephemeral-storage": "4Gi" }];
    assert.ok(same([withAmounts("2000m", "4096Mi", mega)], [withAmounts("2", "4Gi", giga)]));
  });

  const env = (...values: JsonObject[]) => nginx({ env: values });

  test("matches an empty environment variable with a missing and an empty value [12, 15]", () => {
    assert.ok(same([env({ name: "A", value: "" })], [env({ name: "A" })]));
    assert.ok(same([env({ name: "A", value: "" })], [env({ name: "A", value: "" })]));
  });

  test("does not match another value or name of an environment variable [10, 11, 13]", () => {
    assert.not(same([env({ name: "A", value: "x" })], [env({ name: "A" })]));
    assert.not(same([env({ name: "A", value: "" })], [env({ name: "A", value: "x" })]));
    assert.not(same([env({ name: "A", value: "x" })], [env({ name: "B", value: "x" })]));
  });

  test("matches an empty env with a missing one [9]", () => {
    assert.ok(same([nginx({ env: [] })], [nginx()]));
  });

  test("compares init containers as containers", () => {
    const desired = workload("Deployment", [nginx()]);
    const withInit = (cpu: string): JsonResource => {
      const object = structuredClone(desired);
      const { spec } = (object["spec"] as JsonObject)["template"] as { spec: JsonObject };
      spec["initContainers"] = [withAmounts(cpu)];
      return object;
    };
    const init = templateFields([withAmounts("2")], "f:initContainers") as { "f:spec": object };
    const plain = workloadFields([nginx()]) as { "f:spec": { "f:template": { "f:spec": object } } };
    Object.assign(plain["f:spec"]["f:template"]["f:spec"], init["f:spec"]);
    assert.ok(matches(withInit("2000m"), stored(withInit("2"), plain)));
    assert.not(matches(withInit("2001m"), stored(withInit("2"), plain)));
  });
});
