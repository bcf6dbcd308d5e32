import { withoutEmptyLists } from "#apiserver/builtin/normal-form.js";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { defaultBuiltin } from "#apiserver/strategies/defaults.js";
import type { DefaultingContext } from "#apiserver/strategies/strategy.js";
import { builtinTypes } from "#apiserver/strategies/table.js";
import { relabelJob } from "#apiserver/strategies/batch/job.js";
import type { ServedType } from "#apiserver/builtin/served-type.js";
import { arrayAt, clone, isObject, objectAt, stringAt, type JsonObject } from "#apiserver/json.js";
import { repositoryRoot } from "../../../support/repository.js";
import { assert, suite } from "../../../support/suite.js";

/** What a kube-apiserver 1.36.3 made of an object on create, without what it adds to every object's metadata, and what admission adds to Pods. */
interface Recording {
  type: string;
  given: JsonObject;
  want: JsonObject;
  uid: string;
}

const file = join(repositoryRoot, "test/unit/apiserver/builtin/data/recorded-defaults.json");
const recordings = JSON.parse(readFileSync(file, "utf8")) as Recording[];

suite("defaultBuiltin", (test) => {
  test("sets the defaults that a kube-apiserver sets on create", () => {
    assert.ok(recordings.length > 60);
    for (const recording of recordings) {
      const object = clone(recording.given);
      const type = typeOf(recording);
      defaultBuiltin(type, object, contextOf(recording));
      // The answer was read from the store.
      if (type.kind === "Job") relabelJob(object);
      // An empty list may still have an owner, but it is stored as an absent one.
      const stored = withoutEmptyLists(type.schemaName, object);
      assert.equal(stored, recording.want, `${recording.type} ${JSON.stringify(recording.given)}`);
    }
  });

  test("leaves an object unchanged that has all its defaults, on create and on update", () => {
    for (const recording of recordings) {
      const object = clone(recording.want);
      const context = contextOf(recording);
      defaultBuiltin(typeOf(recording), object, context);
      assert.equal(object, recording.want, recording.type);
      const { uid: _, ...onUpdate } = context;
      defaultBuiltin(typeOf(recording), object, { ...onUpdate, old: recording.want });
      assert.equal(object, recording.want, `${recording.type} on update`);
    }
  });

  test("keeps the clusterIP and nodePort of a Service that an update omits", () => {
    const old: JsonObject = {
      metadata: {},
      spec: {
        type: "NodePort",
        clusterIP: "10.0.0.7",
        clusterIPs: ["10.0.0.7"],
        ports: [{ port: 80, nodePort: 30001 }],
      },
    };
    const service: JsonObject = {
      metadata: {},
      spec: { type: "NodePort", ports: [{ port: 80 }, { port: 81, name: "b" }] },
    };
    const context = { allocateClusterIP: () => "10.0.0.9", allocateNodePort: () => 30009, old };
    defaultBuiltin(typeOf({ type: "/v1/Service" }), service, context);
    const spec = objectAt(service, "spec");
    assert.is(stringAt(spec, "clusterIP"), "10.0.0.7");
    const nodePorts = (arrayAt(spec, "ports") ?? []).filter(isObject).map((port) => port["nodePort"]);
    assert.equal(nodePorts, [30001, 30009]);
  });

  test("drops unknown fields and nulls, and converts times to UTC", () => {
    const object: JsonObject = {
      metadata: { name: "a", odd: 1, creationTimestamp: "2024-01-01T01:00:00.5+01:00", labels: { a: null } },
      data: null,
      odd: {},
    };
    defaultBuiltin(typeOf({ type: "/v1/ConfigMap" }), object, contextOf({ want: {} }));
    assert.equal(object, { metadata: { name: "a", creationTimestamp: "2024-01-01T00:00:00Z", labels: { a: "" } } });
  });
});

function typeOf({ type }: { type: string }): ServedType {
  const [group, version, kind] = type.split("/");
  const found = builtinTypes().find((one) => one.group === group && one.version === version && one.kind === kind);
  return found as ServedType;
}

function contextOf({ want, uid }: { want: JsonObject; uid?: string }): DefaultingContext {
  const spec = objectAt(want, "spec");
  const ports = (arrayAt(spec, "ports") ?? []).filter(isObject);
  // The recorded server allocated its ports in this order.
  const allocated = [...ports.map((port) => port["nodePort"]), spec?.["healthCheckNodePort"]].filter(
    (port) => typeof port === "number",
  );
  return {
    allocateClusterIP: () => stringAt(spec, "clusterIP") ?? "",
    allocateNodePort: () => allocated.shift() ?? 0,
    ...(uid === undefined ? {} : { uid }),
  };
}
