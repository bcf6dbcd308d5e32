// Fields that an apply no longer states although the API server does not know any more, or does not know yet, whose they were.
import type { ResourceDefinition, Schema } from "#runtime/base/kubernetes-object.js";
import { waitFor } from "#apiserver/wait-for.js";
import { defineResource } from "#runtime/api/define-resource.js";
import { apiRequestOrThrow } from "../../../support/api/api-request.js";
import { installCrd, startTestApiServer } from "../../../support/api/api-server.js";
import { builtinDefinition } from "../../../support/kinds/kind-definitions.js";
import { assert, shared, suite } from "../../../support/suite.js";
import { startWriting } from "./one-object.js";

const Deployment = builtinDefinition("apps/v1", "Deployment");
const ConfigMap = builtinDefinition("v1", "ConfigMap");
const PersistentVolumeClaim = builtinDefinition("v1", "PersistentVolumeClaim");
const Service = builtinDefinition("v1", "Service");

type ListType = "atomic" | "map";
type MapType = "atomic" | "granular";

const mapOf = (mapType: MapType): Schema => ({
  type: "object",
  "x-kubernetes-map-type": mapType,
  additionalProperties: { type: "string" },
});

const schemaOf = (type: ListType, mapType: MapType): Schema => ({
  type: "object",
  properties: {
    spec: {
      type: "object",
      properties: {
        text: { type: "string" },
        items: {
          type: "array",
          "x-kubernetes-list-type": type,
          ...(type === "map" && { "x-kubernetes-list-map-keys": ["name"] }),
          items: {
            type: "object",
            required: ["name"],
            properties: { name: { type: "string" }, at: { type: "string" }, more: mapOf(mapType) },
          },
        },
        more: mapOf(mapType),
      },
    },
  },
});

let kinds = 0;

/** A kind of its own, whose schema changes while it is written. */
async function defineKind(first: ListType = "atomic", firstMap: MapType = "granular") {
  const index = ++kinds;
  const names = {
    plural: `lists${index}`,
    singular: `list${index}`,
    kind: `List${index}x`,
    listKind: `List${index}xList`,
  };
  const versionsOf = (type: ListType, mapType: MapType) => [
    { name: "v1", served: true, storage: true, schema: { openAPIV3Schema: schemaOf(type, mapType) } },
  ];
  const crd = (type: ListType, mapType: MapType) => ({
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${names.plural}.example.com` },
    spec: { group: "example.com", scope: "Namespaced", names, versions: versionsOf(type, mapType) },
  });
  const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  const to = await server();
  await installCrd(to, crd(first, firstMap));
  const kind = (type: ListType, mapType: MapType = "granular") =>
    defineResource({
      ...{ group: "example.com", version: "v1", kind: names.kind, plural: names.plural, scope: "Namespaced" },
      ...{ isCustom: true, hasStatusSubresource: false, schema: schemaOf(type, mapType) },
    });
  return {
    kind,
    async change(type: ListType, mapType: MapType = "granular") {
      const changed = crd(type, mapType);
      const before = await apiRequestOrThrow<{ metadata: object }>(to, `GET ${path}/${changed.metadata.name}`);
      const body = { ...changed, metadata: before.metadata };
      await apiRequestOrThrow(to, `PUT ${path}/${changed.metadata.name}`, { body });
    },
  };
}

const server = shared(() => startTestApiServer());
const start = async (definition: ResourceDefinition) => startWriting(await server(), definition);
const link = { labels: { "gen-operator.dev/controller": "us" } };
const stripped = { jsonPatch: [{ op: "replace" as const, path: "/metadata/managedFields", value: [{}] }] };

const labels = { app: "x" };
const deploymentOf = (pod: object, spec: object = {}) => ({
  metadata: link,
  spec: {
    selector: { matchLabels: labels },
    template: { metadata: { labels }, spec: { containers: [{ name: "main", image: "image" }], ...pod } },
    ...spec,
  },
});

suite("apply after managedFields were cleared", (test) => {
  test("removes a field that is no longer desired in one update", async () => {
    await using writing = await start(ConfigMap);
    await writing.apply({ metadata: link, data: { a: "1", gone: "2" } });
    await writing.others(stripped);
    assert.is((await writing.apply({ metadata: link, data: { a: "1" } })).kind, "updated");
    assert.equal((await writing.live())["data"], { a: "1" });
    assert.ok(writing.logs.some((line) => line.includes("updated ConfigMap") && line.includes("data.gone")));
    assert.is((await writing.apply({ metadata: link, data: { a: "1" } })).kind, "unchanged");
    await writing.apply({ metadata: link, data: { b: "1" } });
    assert.equal((await writing.live())["data"], { b: "1" }, "nobody else owns what is desired");
  });

  test("removes a field that is no longer desired if desired() reads the live object", async () => {
    await using writing = await start(ConfigMap);
    await writing.apply({ metadata: link, data: { a: "1", gone: "2" } });
    await writing.others(stripped);
    assert.is((await writing.apply({ metadata: link, data: { a: "1" } }, { readsLive: true })).kind, "updated");
    assert.equal((await writing.live())["data"], { a: "1" });
  });

  test("removes a field that is no longer desired after another manager applied first", async () => {
    await using writing = await start(ConfigMap);
    await writing.apply({ metadata: link, data: { a: "1", gone: "2", theirs: "3" } });
    await writing.others(stripped);
    await writing.others({ apply: { data: { theirs: "3" } } });
    await writing.apply({ metadata: link, data: { a: "1" } });
    assert.equal((await writing.live())["data"], { a: "1", theirs: "3" });
    await writing.apply({ metadata: link, data: { b: "1" } });
    assert.equal((await writing.live())["data"], { b: "1", theirs: "3" });
  });

  test("removes fields that an earlier version applied beside before-first-apply", async () => {
    await using writing = await start(ConfigMap);
    await writing.apply({ metadata: link, data: { a: "1", gone: "2" } });
    await writing.others(stripped);
    await writing.others({ apply: { metadata: link, data: { a: "1", gone: "2" } } }, "us");
    await writing.apply({ metadata: link, data: { a: "1" } });
    assert.equal((await writing.live())["data"], { a: "1" });
    assert.is(writing.logs.filter((line) => line.includes("data.gone")).length, 1, writing.logs.join("\n"));
  });

  test("keeps replicas, foreign metadata, finalizers and owner references", async () => {
    await using writing = await start(Deployment);
    await writing.apply(deploymentOf({ hostNetwork: true }));
    const template = { metadata: { annotations: { "kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z" } } };
    const finalizers = ["example.com/theirs"];
    await writing.others({
      mergePatch: { metadata: { finalizers, annotations: { theirs: "x" } }, spec: { replicas: 5, template } },
    });
    await writing.others(stripped);
    await writing.apply(deploymentOf({}));
    const { metadata, spec } = (await writing.live()) as unknown as {
      metadata: { finalizers: string[]; annotations: { theirs: string } };
      spec: { replicas: number; template: { metadata: object; spec: { hostNetwork?: boolean } } };
    };
    assert.is(spec.template.spec.hostNetwork, undefined);
    assert.is(spec.replicas, 5);
    assert.equal(spec.template.metadata, { ...template.metadata, labels });
    assert.equal([metadata.finalizers, metadata.annotations.theirs], [finalizers, "x"]);
    await writing.others({ mergePatch: { metadata: { finalizers: null } } });
  });

  test("keeps an object that the controller did not write", async () => {
    await using writing = await start(ConfigMap);
    await writing.others({ apply: { data: { a: "1", theirs: "2" } } });
    await writing.others(stripped);
    await writing.apply({ metadata: link, data: { a: "1" } });
    assert.equal((await writing.live())["data"], { a: "1", theirs: "2" });
  });

  test("keeps an immutable field, with a warning", async () => {
    await using writing = await start(PersistentVolumeClaim);
    const resources = { requests: { storage: "1Gi" } };
    const claim = { metadata: link, spec: { accessModes: ["ReadWriteOnce"], resources } };
    await writing.apply({ ...claim, spec: { ...claim.spec, volumeName: "x" } });
    await writing.others(stripped);
    assert.is((await writing.apply(claim)).kind, "updated");
    assert.is(((await writing.specOf()) as { volumeName: string }).volumeName, "x");
    const warnings = writing.logs.filter((line) => line.startsWith("warn"));
    assert.is(warnings.length, 1);
    assert.match(warnings[0]!, "spec.volumeName");
    assert.is((await writing.apply(claim)).kind, "unchanged");
  });

  test("keeps fields that the API server assigned", async () => {
    await using writing = await start(Service);
    const service = { metadata: link, spec: { type: "NodePort", ports: [{ name: "http", port: 80 }] } };
    await writing.apply(service);
    const before = await writing.specOf();
    await writing.others(stripped);
    await writing.apply(service);
    assert.equal(await writing.specOf(), before);
    assert.is((await writing.apply(service)).kind, "unchanged");
  });
});

suite("field that is no longer applied", (test) => {
  test("is kept without a log line if another manager owns it", async () => {
    await using writing = await start(ConfigMap);
    await writing.apply({ data: { a: "1", shared: "2" } });
    await writing.others({ apply: { data: { shared: "2" } } });
    await writing.apply({ data: { a: "1" } });
    assert.equal((await writing.live())["data"], { a: "1", shared: "2" });
    assert.equal(
      writing.logs.filter((line) => line.includes("data.shared")),
      [],
    );
  });

  test("is removed in one request", async () => {
    await using writing = await start(ConfigMap);
    await writing.apply({ data: { a: "1", b: "2" } });
    await writing.apply({ data: { a: "1" } });
    assert.equal(writing.requests, ["PATCH 200"]);
  });
});

suite("list type change", (test) => {
  const items = (...names: string[]) => ({ spec: { items: names.map((name) => ({ name })) } });

  for (const [title, compiled] of [
    ["while the operator runs", "atomic"],
    ["before the operator is rebuilt and restarted", "map"],
  ] as const)
    test(`removes an item that is no longer desired: from atomic to map, ${title}`, async () => {
      const { kind, change } = await defineKind();
      const old = kind("atomic");
      await using writing = await start(old);
      await writing.apply(items("a", "b", "c"));
      await change("map");
      await waitFor("the new schema is in force", async () => {
        await using probe = await start(kind("map"));
        await probe.apply(items("a"));
        return JSON.stringify(await probe.managers()).includes("k:");
      });
      await writing.apply(items("a", "c"), { as: kind(compiled) });
      assert.equal(await writing.specOf(), items("a", "c").spec);
      await writing.apply(items("a"), { as: kind(compiled) });
      await writing.apply(items("a"), { as: kind(compiled) });
      assert.equal(await writing.specOf(), items("a").spec);
      // What another manager adds is not hidden by what was learnt of how the list is stored.
      assert.is((await writing.apply(items("a"), { as: kind(compiled) })).kind, "unchanged");
      await writing.others({ apply: { spec: { items: [{ name: "theirs" }] } } });
      await writing.apply(items("a"), { as: kind(compiled) });
      assert.equal(((await writing.specOf()) as { items: object[] }).items.length, 2, "another manager owns it");
    });
});

suite("map type change", (test) => {
  const more = (...names: string[]) => Object.fromEntries(names.map((name) => [name, "1"]));
  for (const [title, compiled] of [
    ["while the operator runs", "atomic"],
    ["before the operator is rebuilt and restarted", "granular"],
  ] as const)
    for (const [place, specOf] of [
      ["in the spec", (...names: string[]) => ({ spec: { more: more(...names) } })],
      ["in a list item", (...names: string[]) => ({ spec: { items: [{ name: "a", more: more(...names) }] } })],
    ] as const)
      test(`${place} removes a key that is no longer desired: from atomic to granular, ${title}`, async () => {
        const { kind, change } = await defineKind("map", "atomic");
        await using writing = await start(kind("map", "atomic"));
        await writing.apply(specOf("a", "b", "c"));
        await change("map", "granular");
        await waitFor("the new schema is in force", async () => {
          await using probe = await start(kind("map", "granular"));
          await probe.apply(specOf("probe"));
          return JSON.stringify(await probe.managers()).includes("f:probe");
        });
        const as = kind("map", compiled);
        await writing.apply(specOf("a", "c"), { as });
        assert.equal(await writing.specOf(), specOf("a", "c").spec);
        await writing.apply(specOf("a"), { as });
        assert.equal(await writing.specOf(), specOf("a").spec);
        assert.is((await writing.apply(specOf("a"), { as })).kind, "unchanged");
      });

  test("keeps keys of other managers in a map that was applied empty", async () => {
    const { kind } = await defineKind("map", "granular");
    await using writing = await start(kind("map", "granular"));
    await writing.apply({ spec: { more: {} } });
    await writing.others({ apply: { spec: { more: more("theirs") } } });
    await writing.apply({ spec: { more: more("a") } });
    assert.equal(await writing.specOf(), { more: more("a", "theirs") });
  });
});
