// Sequences of creates, updates and applies, through the main endpoint and /status, as kube-apiserver 1.36 answered them.
import { readFileSync } from "node:fs";
import { applyDefaults, dropNulls, pruneUnknownFields } from "#schema/definitions/structural-schema.js";
import { validateCustomResource } from "#apiserver/registry/custom-rules.js";
import { clone, objectAt, type JsonObject } from "#apiserver/json.js";
import { applyManaged, restoreUnchangedTimes, updateManaged } from "#apiserver/ssa/field-manager.js";
import { FieldSet } from "#apiserver/ssa/field-set.js";
import { mergeTypeOfCustomResource } from "#apiserver/ssa/merge-type.js";
import { fieldErrorText } from "#apiserver/errors/field-error.js";
import { StatusError } from "#apiserver/errors/status-error.js";
import { assert, suite } from "../../../support/suite.js";

interface RecordedStep {
  kind: "create" | "apply" | "update" | "status-apply" | "status-update";
  manager: string;
  force?: boolean;
  object: JsonObject;
  result?: { metadata: JsonObject; spec?: JsonObject; status?: JsonObject; managedFields: JsonObject[] };
  invalid?: string[];
  failure?: { code: number; message: string; causes?: { field: string }[] };
}

const file = new URL("../../../../../fixtures/server-side-apply/kube-apiserver.jsonl", import.meta.url);
const [head, ...sequences] = readFileSync(file, "utf8")
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line) as { schema: JsonObject; steps: RecordedStep[] });
const schema = (head as { schema: JsonObject }).schema;
const mergeType = mergeTypeOfCustomResource(schema);

suite("server-side apply, recorded from kube-apiserver", (test) => {
  sequences.forEach(({ steps }, index) => {
    test(`reproduces sequence ${index}`, () => {
      let live: JsonObject | undefined;
      steps.forEach((step, at) => {
        const outcome = runStep(step, live, at);
        if (step.result !== undefined) step.result.managedFields.sort(byIdentity);
        const expected = step.result ?? step.failure ?? { invalid: step.invalid };
        assert.equal(outcome.shown, JSON.parse(JSON.stringify(expected)), `step ${at}, ${step.kind}`);
        live = outcome.live ?? live;
      });
    });
  });
});

function runStep(step: RecordedStep, live: JsonObject | undefined, at: number): { shown: unknown; live?: JsonObject } {
  const { kind, manager, force = false } = step;
  const isStatus = kind.startsWith("status");
  const config = clone(step.object);
  const write = {
    live,
    manager,
    apiVersion: "h.example.com/v1",
    subresource: isStatus ? "status" : "",
    mergeType,
    resetFields: isStatus ? FieldSet.of(".metadata", ".spec") : FieldSet.of(".status"),
    now: `2024-01-01T00:00:0${at}Z`,
  };
  try {
    const written = kind.endsWith("apply")
      ? applyManaged({ ...write, config, force, finish: (merged) => complete(merged) })
      : updateManaged({ ...write, object: reset(decode(updateBody(step, live)), live, isStatus) });
    const object = restoreUnchangedTimes(live ?? {}, reset(written, live, isStatus));
    const errors = validateCustomResource(schema, object, live).map(fieldErrorText).sort();
    return errors.length > 0 ? { shown: { invalid: errors } } : { shown: resultOf(object), live: object };
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    const { code, message, details } = error.status;
    return { shown: { code, message, ...(details?.causes ? { causes: details.causes } : {}) } };
  }
}

// Recorded updates leave managedFields out where they sent back what they had read.
function updateBody({ object }: RecordedStep, live: JsonObject | undefined): JsonObject {
  const given = objectAt(object, "metadata") ?? {};
  const managedFields = objectAt(live, "metadata")?.["managedFields"];
  if (Object.hasOwn(given, "managedFields") || managedFields === undefined) return object;
  return { ...object, metadata: { ...given, managedFields } };
}

function decode(object: JsonObject): JsonObject {
  const decoded = clone(object);
  pruneUnknownFields(schema, decoded);
  dropNulls(schema, decoded);
  applyDefaults(schema, decoded);
  return decoded;
}

function complete(merged: JsonObject): JsonObject {
  pruneUnknownFields(schema, merged);
  applyDefaults(schema, merged);
  return merged;
}

/** Keeps what the endpoint does not write. */
function reset(object: JsonObject, live: JsonObject | undefined, isStatus: boolean): JsonObject {
  const { status: _, spec: __, ...rest } = object;
  const kept = isStatus ? live?.["spec"] : object["spec"];
  const status = isStatus ? object["status"] : live?.["status"];
  const managedFields = objectAt(object, "metadata")?.["managedFields"];
  const metadata = isStatus ? { ...objectAt(live, "metadata") } : { ...objectAt(object, "metadata") };
  delete metadata["managedFields"];
  if (managedFields !== undefined) metadata["managedFields"] = managedFields;
  return {
    ...rest,
    metadata,
    ...(kept === undefined ? {} : { spec: kept }),
    ...(status === undefined ? {} : { status }),
  };
}

// Entries are sorted by the second, and the seconds of the recording are not those of this run.
function byIdentity(a: JsonObject, b: JsonObject): number {
  const [one, other] = [a, b].map((entry) =>
    JSON.stringify([entry["operation"], entry["manager"], entry["subresource"]]),
  );
  return (one as string) < (other as string) ? -1 : 1;
}

function resultOf(object: JsonObject): unknown {
  const { labels, annotations, finalizers, ownerReferences, managedFields } = objectAt(object, "metadata") ?? {};
  const entries = [...((managedFields ?? []) as JsonObject[])].sort(byIdentity);
  return JSON.parse(
    JSON.stringify({
      metadata: { labels, annotations, finalizers, ownerReferences },
      spec: object["spec"],
      status: object["status"],
      managedFields: entries.map(({ manager, operation, subresource, time, fieldsV1 }) => ({
        manager,
        operation,
        subresource,
        ...(time === undefined ? { timeless: true } : {}),
        fieldsV1,
      })),
    }),
  );
}
