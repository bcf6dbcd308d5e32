import { objectAt, type JsonObject } from "#apiserver/json.js";
import { applyManaged, updateManaged, type ManagedWrite } from "#apiserver/ssa/field-manager.js";
import { FieldSet } from "#apiserver/ssa/field-set.js";
import { mergeTypeOfBuiltin, mergeTypeOfCustomResource } from "#apiserver/ssa/merge-type.js";
import { StatusError } from "#apiserver/errors/status-error.js";
import { readFileSync } from "node:fs";
import { assert, suite } from "../../../support/suite.js";

const data = new URL("../../../../../apiserver/data/kubernetes-1.36-schemas.json", import.meta.url);
const schemas = JSON.parse(readFileSync(data, "utf8")) as Record<string, unknown>;
const configMapType = mergeTypeOfBuiltin(schemas, "io.k8s.api.core.v1.ConfigMap");
const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";

function configMap(contents: JsonObject, metadata: JsonObject = {}): JsonObject {
  return { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "c", ...metadata }, data: contents };
}

function writeOf(live: JsonObject | undefined, manager: string, more: Partial<ManagedWrite> = {}): ManagedWrite {
  const now = "2024-01-01T00:00:00Z";
  const resetFields = FieldSet.empty;
  return { live, manager, apiVersion: "v1", subresource: "", mergeType: configMapType, resetFields, now, ...more };
}

function apply(live: JsonObject | undefined, manager: string, config: JsonObject, force = false): JsonObject {
  return applyManaged({ ...writeOf(live, manager), config, force, finish: (merged) => merged });
}

function update(live: JsonObject | undefined, manager: string, object: JsonObject, now?: string): JsonObject {
  return updateManaged({ ...writeOf(live, manager, now === undefined ? {} : { now }), object });
}

function entriesOf(object: JsonObject): JsonObject[] {
  return (objectAt(object, "metadata")?.["managedFields"] ?? []) as JsonObject[];
}

function summaryOf(object: JsonObject): unknown {
  return entriesOf(object).map(({ manager, operation, fieldsV1 }) => [manager, operation, fieldsV1]);
}

function failureOf(action: () => unknown): JsonObject {
  try {
    action();
  } catch (error) {
    if (error instanceof StatusError) return JSON.parse(JSON.stringify(error.status)) as JsonObject;
    throw error;
  }
  throw new Error("nothing was thrown");
}

suite("managedFields", (test) => {
  test("has entries with the fields in the order of Kubernetes", () => {
    const [entry] = entriesOf(apply(undefined, "a", configMap({ k: "v" })));
    const order = ["manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1"];
    assert.equal(Object.keys(entry as JsonObject), order);
    assert.equal(entry?.["fieldsV1"], { "f:data": { "f:k": {} } });
  });

  test("excludes server-set metadata and includes labels", () => {
    const object = configMap({}, { uid: "u", generation: 1, resourceVersion: "1", labels: { a: "b" } });
    assert.equal(summaryOf(update(undefined, "u", object)), [
      ["u", "Update", { "f:data": {}, "f:metadata": { "f:labels": { ".": {}, "f:a": {} } } }],
    ]);
  });

  test("records no time for a second manager that applies the same value", () => {
    const live = apply(undefined, "a", configMap({ k: "v" }));
    const times = entriesOf(apply(live, "b", configMap({ k: "v" }))).map(({ manager, time }) => [manager, time]);
    assert.equal(times, [
      ["b", undefined],
      ["a", "2024-01-01T00:00:00Z"],
    ]);
  });

  test("keeps one Apply entry for all versions, but one Update entry per version", () => {
    const live = apply(undefined, "a", configMap({ k: "v" }));
    const config = { ...configMap({ k: "v" }), apiVersion: "v2" };
    const write = { ...writeOf(live, "a"), apiVersion: "v2" };
    const again = applyManaged({ ...write, config, force: false, finish: (merged) => merged });
    assert.equal(
      entriesOf(again).map((entry) => entry["apiVersion"]),
      ["v2"],
    );
    const updated = updateManaged({
      ...write,
      live: update(undefined, "u", configMap({ k: "v" })),
      manager: "u",
      object: configMap({ k: "w", l: "v" }),
    });
    assert.equal(
      entriesOf(updated).map((entry) => entry["apiVersion"]),
      ["v1", "v2"],
    );
  });

  test("drops entries of a version that is no longer served", () => {
    const live = apply(undefined, "a", configMap({ k: "v" }));
    const write = writeOf(live, "b", { apiVersion: "v2", mergeTypeOf: () => undefined });
    const config = { ...configMap({ k: "w" }), apiVersion: "v2" };
    const applied = applyManaged({ ...write, config, force: false, finish: (merged) => merged });
    assert.equal(summaryOf(applied), [["b", "Apply", { "f:data": { "f:k": {} } }]]);
  });

  test("records existing fields as before-first-apply on the first apply", () => {
    const live = configMap({ k: "v" }, { uid: "u" });
    assert.equal(summaryOf(apply(live, "a", configMap({ l: "v" }))), [
      ["a", "Apply", { "f:data": { "f:l": {} } }],
      ["before-first-apply", "Update", { "f:data": { ".": {}, "f:k": {} } }],
    ]);
    assert.equal(summaryOf(update(live, "u", configMap({ k: "w" }))), []);
  });

  test("is cleared by an empty list in an update, and kept with null or invalid entries", () => {
    const live = apply(undefined, "a", configMap({ k: "v" }));
    const sent = (managedFields: JsonObject[string]): unknown =>
      summaryOf(update(live, "u", configMap({ k: "v" }, { managedFields })));
    assert.equal(sent([]), []);
    assert.equal(sent([{}]), []);
    for (const kept of [
      null,
      [{ manager: "x" }],
      [{ manager: "x", operation: "Odd", apiVersion: "v1", fieldsType: "FieldsV1" }],
    ]) {
      assert.equal(sent(kept), [["a", "Apply", { "f:data": { "f:k": {} } }]]);
    }
  });

  test("accepts an edited list, but not through a subresource", () => {
    const live = apply(undefined, "a", configMap({ k: "v" }));
    const [entry] = entriesOf(live);
    const object = configMap({ k: "v" }, { managedFields: [{ ...entry, manager: "renamed" }] });
    assert.equal(
      entriesOf(update(live, "u", object)).map((other) => other["manager"]),
      ["renamed"],
    );
    const status = updateManaged({ ...writeOf(live, "u", { subresource: "status" }), object });
    assert.equal(
      entriesOf(status).map((other) => other["manager"]),
      ["a"],
    );
  });

  test("merges the oldest Update entries beyond 10 into ancient-changes", () => {
    let live = update(undefined, "u0", configMap({ k0: "v" }), "2024-01-01T00:00:00Z");
    for (let index = 1; index < 12; index++) {
      const contents = { ...(live["data"] as JsonObject), [`k${index}`]: "v" };
      live = update(live, `u${index}`, configMap(contents), `2024-01-01T00:00:${String(index).padStart(2, "0")}Z`);
    }
    const managers = entriesOf(live).map((entry) => entry["manager"]);
    assert.is(managers.length, 10);
    assert.is(managers[0], "ancient-changes");
    assert.equal(entriesOf(live)[0]?.["fieldsV1"], { "f:data": { ".": {}, "f:k0": {}, "f:k1": {}, "f:k2": {} } });
    assert.is(entriesOf(live)[0]?.["time"], "2024-01-01T00:00:02Z");
  });

  test("records no time for the scale subresource", () => {
    const live = apply(undefined, "a", configMap({ k: "v" }));
    const scaled = updateManaged({ ...writeOf(live, "s", { subresource: "scale" }), object: configMap({ k: "w" }) });
    assert.equal(Object.keys(entriesOf(scaled)[0] as JsonObject).includes("time"), false);
  });
});

suite("apply failure", (test) => {
  test("is a conflict that lists every manager and field", () => {
    const live = apply(update(undefined, "u", configMap({ k: "v" })), "a", configMap({ l: "v", m: "v" }));
    const failure = failureOf(() => apply(live, "b", configMap({ k: "x", l: "x", m: "x" })));
    assert.is(
      failure["message"],
      'Apply failed with 3 conflicts: conflicts with "a":\n- .data.l\n- .data.m\nconflicts with "u" using v1:\n- .data.k',
    );
    assert.equal((failure["details"] as JsonObject)["causes"], [
      { reason: "FieldManagerConflict", message: 'conflict with "a"', field: ".data.l" },
      { reason: "FieldManagerConflict", message: 'conflict with "a"', field: ".data.m" },
      { reason: "FieldManagerConflict", message: 'conflict with "u" using v1', field: ".data.k" },
    ]);
    assert.is(
      failureOf(() => apply(live, "b", configMap({ k: "x" })))["message"],
      'Apply failed with 1 conflict: conflict with "u" using v1: .data.k',
    );
  });

  test("is a 500 without reason if the configuration does not match the schema", () => {
    const failure = failureOf(() => apply(undefined, "a", { ...configMap({ k: 1 }), odd: true }));
    assert.is(failure["code"], 500);
    assert.is(failure["reason"], undefined);
    assert.is(
      failure["message"],
      "failed to create typed patch object (/c; /v1, Kind=ConfigMap): errors:\n  .data.k: expected string, got &value.valueUnstructured{Value:1}\n  .odd: field not declared in schema",
    );
  });

  test("is caused by managedFields in the configuration, even if empty", () => {
    const failure = failureOf(() => apply(undefined, "a", configMap({}, { managedFields: [] })));
    assert.is(failure["message"], "metadata.managedFields must be nil");
  });
});

suite("last-applied-configuration", (test) => {
  const lastApplied = (contents: JsonObject): string => JSON.stringify(configMap(contents));
  const live = update(
    undefined,
    "kubectl-client-side-apply",
    configMap({ k: "v", l: "v" }, { annotations: { [LAST_APPLIED]: lastApplied({ k: "v" }) } }),
  );

  test("lets kubectl change the fields it covers, and is updated", () => {
    const applied = apply(live, "kubectl", configMap({ k: "w" }));
    assert.equal(applied["data"], { k: "w", l: "v" });
    assert.is(
      objectAt(objectAt(applied, "metadata"), "annotations")?.[LAST_APPLIED],
      '{"apiVersion":"v1","data":{"k":"w"},"kind":"ConfigMap","metadata":{"name":"c"}}\n',
    );
  });

  test("causes conflicts for other fields and other managers", () => {
    assert.match(
      String(failureOf(() => apply(live, "kubectl", configMap({ k: "w", l: "w" })))["message"]),
      ": .data.l",
    );
    assert.match(String(failureOf(() => apply(live, "other", configMap({ k: "w" })))["message"]), ": .data.k");
  });
});

suite("merge type", (test) => {
  const deployment = mergeTypeOfBuiltin(schemas, "io.k8s.api.apps.v1.Deployment");

  test("defaults the protocol of a container port to TCP in its list key", () => {
    const ports = [{ containerPort: 80 }];
    const containers = [{ name: "c", ports }];
    const config = {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name: "d" },
      spec: { template: { spec: { containers } } },
    };
    const write = { ...writeOf(undefined, "a"), apiVersion: "apps/v1", mergeType: deployment };
    const applied = applyManaged({ ...write, config, force: false, finish: (merged) => merged });
    assert.match(JSON.stringify(summaryOf(applied)), JSON.stringify('k:{"containerPort":80,"protocol":"TCP"}'));
  });

  test("accepts any field but unknown metadata for a custom resource without a schema", () => {
    const mergeType = mergeTypeOfCustomResource(undefined);
    const config = { apiVersion: "v1", kind: "X", metadata: { name: "x", labels: { a: "b" } }, any: { l: [1] } };
    const applied = applyManaged({ ...writeOf(undefined, "a", { mergeType }), config, force: false, finish: (m) => m });
    assert.equal(summaryOf(applied), [
      ["a", "Apply", { "f:any": { ".": {}, "f:l": {} }, "f:metadata": { "f:labels": { "f:a": {} } } }],
    ]);
    const odd = { ...config, metadata: { name: "x", odd: 1 } };
    const failure = failureOf(() =>
      applyManaged({ ...writeOf(undefined, "a", { mergeType }), config: odd, force: false, finish: (m) => m }),
    );
    assert.match(String(failure["message"]), ".metadata.odd: field not declared in schema");
  });
});
