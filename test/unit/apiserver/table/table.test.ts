import { readFileSync } from "node:fs";
import { join } from "node:path";
import { servedTypesOf, type ServedType } from "#apiserver/builtin/served-type.js";
import { builtinTypes } from "#apiserver/strategies/table.js";
import type { JsonObject, JsonValue } from "#apiserver/json.js";
import { tableOf } from "#apiserver/table/table.js";
import { repositoryRoot } from "../../../support/repository.js";
import { assert, suite } from "../../../support/suite.js";

/** Objects and the table that a kube-apiserver 1.36.3 made of them, with ages as of `now`. */
interface Recording {
  type: string;
  columns: JsonValue;
  items: JsonObject[];
  cells: JsonValue[][];
}

const file = join(repositoryRoot, "test/unit/apiserver/table/data/recorded-tables.json");
const recordings = JSON.parse(readFileSync(file, "utf8")) as Recording[];
const now = new Date("2026-11-21T04:47:45Z");

/** The recordings have no texts; tables.yaml of the conformance scenarios has some. */
const withoutText = (column: JsonObject) => ({ ...column, description: "" });

suite("Table", (test) => {
  test("prints built-in objects as a kube-apiserver does", () => {
    assert.ok(recordings.length > 30);
    for (const { type, columns, items, cells } of recordings) {
      const table = tableOf(typeOf(type), items, { includeObject: "None", withColumns: true, now });
      assert.equal((table["columnDefinitions"] as JsonObject[]).map(withoutText), columns, type);
      assert.equal(
        table["rows"],
        cells.map((row) => ({ cells: row, object: null })),
        type,
      );
    }
  });

  test("includes the object, its metadata, or nothing in a row, by includeObject", () => {
    const object = { kind: "ConfigMap", apiVersion: "v1", metadata: { name: "a" }, data: {} };
    const rowsOf = (includeObject: "None" | "Metadata" | "Object") =>
      (
        tableOf(typeOf("/v1/ConfigMap"), [object], { includeObject, withColumns: false, now })["rows"] as JsonObject[]
      )[0];
    assert.equal(rowsOf("None")?.["object"], null);
    assert.equal(rowsOf("Metadata")?.["object"], {
      kind: "PartialObjectMetadata",
      apiVersion: "meta.k8s.io/v1",
      metadata: { name: "a" },
    });
    assert.equal(rowsOf("Object")?.["object"], object);
  });

  test("omits the column definitions on request", () => {
    const table = tableOf(typeOf("/v1/ConfigMap"), [], { includeObject: "None", withColumns: false, now });
    assert.is(table["columnDefinitions"], null);
    assert.equal(table["metadata"], {});
  });

  test("shows the reason of the container that keeps a Pod from running in STATUS", () => {
    const waiting = { state: { waiting: { reason: "ImagePullBackOff" } }, restartCount: 0 };
    const running = { state: { running: {} }, ready: true, restartCount: 0 };
    const crashed = {
      state: { waiting: { reason: "CrashLoopBackOff" } },
      restartCount: 3,
      lastState: { terminated: { finishedAt: "2026-11-21T04:46:45Z" } },
    };
    const spec = { containers: [{ name: "c" }] };
    const inits = { ...spec, initContainers: [{ name: "i" }, { name: "j" }] };
    const table: [pod: JsonObject, want: [ready: string, status: string, restarts: string]][] = [
      [{ spec, status: { phase: "Pending" } }, ["0/1", "Pending", "0"]],
      [{ spec, status: { phase: "Running", containerStatuses: [running] } }, ["1/1", "Running", "0"]],
      [{ spec, status: { phase: "Pending", containerStatuses: [waiting] } }, ["0/1", "ImagePullBackOff", "0"]],
      [
        { spec, status: { phase: "Running", containerStatuses: [crashed] } },
        ["0/1", "CrashLoopBackOff", "3 (60s ago)"],
      ],
      [{ spec, status: { phase: "Failed", reason: "Evicted" } }, ["0/1", "Evicted", "0"]],
      [
        { spec, status: { phase: "Failed", containerStatuses: [{ state: { terminated: { exitCode: 2 } } }] } },
        ["0/1", "ExitCode:2", "0"],
      ],
      [
        { spec: inits, status: { phase: "Pending", initContainerStatuses: [{ name: "i", state: { running: {} } }] } },
        ["0/1", "Init:0/2", "0"],
      ],
      [
        {
          spec: inits,
          status: {
            phase: "Pending",
            initContainerStatuses: [{ name: "i", state: { terminated: { exitCode: 1, reason: "Error" } } }],
          },
        },
        ["0/1", "Init:Error", "0"],
      ],
      [{ metadata: { deletionTimestamp: "x" }, spec, status: { phase: "Running" } }, ["0/1", "Terminating", "0"]],
      [
        { spec, status: { phase: "Pending", conditions: [{ type: "PodScheduled", reason: "SchedulingGated" }] } },
        ["0/1", "SchedulingGated", "0"],
      ],
    ];
    for (const [pod, want] of table) {
      const printed = tableOf(typeOf("/v1/Pod"), [pod], { includeObject: "None", withColumns: false, now });
      assert.equal((printed["rows"] as { cells: JsonValue[] }[])[0]?.cells.slice(1, 4), want, JSON.stringify(pod));
    }
  });

  test("shows the additionalPrinterColumns of a custom resource", () => {
    const column = (type: string, jsonPath: string) => ({ name: type, type, jsonPath });
    const conditions = [
      { type: "Ready", status: "True" },
      { type: "Synced", status: "False" },
    ];
    const object = {
      metadata: { name: "w", creationTimestamp: "2026-11-21T04:46:45Z", annotations: { "a.b/c": "x" } },
      spec: { text: "t", count: 2.0, ratio: 1.5, on: true, list: [1, 2], odd: "text" },
      status: { conditions },
    };
    const table: [column: { name: string; type: string; jsonPath: string }, want: JsonValue][] = [
      [column("string", ".spec.text"), "t"],
      [column("string", ".spec.count"), "2"],
      [column("string", ".spec.list"), "[1,2]"],
      [column("string", ".spec.list[*]"), "1"],
      [column("string", ".spec.missing"), null],
      [column("string", '.status.conditions[?(@.type=="Ready")].status'), "True"],
      [column("string", ".status.conditions[?(@.type == 'Synced')].status"), "False"],
      [column("string", ".metadata.annotations.a\\.b/c"), "x"],
      [column("string", ".metadata.annotations['a\\.b/c']"), "x"],
      [column("integer", ".spec.count"), 2],
      [column("integer", ".spec.odd"), null],
      [column("integer", ".spec.list[1]"), 2],
      [column("number", ".spec.ratio"), 1.5],
      [column("boolean", ".spec.on"), true],
      [column("date", ".metadata.creationTimestamp"), "60s"],
      [column("date", ".spec.odd"), "<invalid>"],
    ];
    for (const [declared, want] of table) {
      const printed = tableOf(widget([declared]), [object], { includeObject: "None", withColumns: true, now });
      assert.equal((printed["rows"] as { cells: JsonValue[] }[])[0]?.cells, ["w", want], declared.jsonPath);
    }
  });

  test("shows name and age of a custom resource without columns", () => {
    const printed = tableOf(widget([]), [], { includeObject: "None", withColumns: true, now });
    const names = (printed["columnDefinitions"] as JsonObject[]).map((column) => column["name"]);
    assert.equal(names, ["Name", "Age"]);
  });
});

function typeOf(name: string): ServedType {
  const [group, version, kind] = name.split("/");
  const found = builtinTypes().find((one) => one.group === group && one.version === version && one.kind === kind);
  return found as ServedType;
}

function widget(additionalPrinterColumns: JsonValue[]): ServedType {
  const names = { kind: "Widget", plural: "widgets" };
  const versions = [{ name: "v1", served: true, storage: true, additionalPrinterColumns }];
  const [type] = servedTypesOf({ spec: { group: "example.com", scope: "Namespaced", names, versions } });
  return type as ServedType;
}
