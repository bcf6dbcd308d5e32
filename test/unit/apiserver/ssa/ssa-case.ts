// Runs the cases of fixtures/server-side-apply against the updater, below managedFields and HTTP.
import { readFileSync } from "node:fs";
import { type MergeType, checkValue, typedErrorText } from "#apiserver/ssa/typed-value.js";
import { parse } from "yaml";
import { FieldSet, encodeFieldsV1 } from "#apiserver/ssa/field-set.js";
import { mergeTypeOfBuiltin } from "#apiserver/ssa/merge-type.js";
import { applyOwned, updateOwned, type OwnedWrite, type Owners } from "#apiserver/ssa/updater.js";
import type { JsonObject } from "#apiserver/json.js";
import { assert } from "../../../support/suite.js";

/** A sequence of writes to one object. */
export interface SsaCase {
  name: string;
  /** Replaces the schema of the folder. */
  schema?: JsonObject;
  /** Fields that the endpoint does not write. */
  resetFields?: string[];
  steps: SsaStep[];
}

/** A write and what comes of it. */
export interface SsaStep {
  apply?: string;
  update?: string;
  config?: JsonObject;
  object?: JsonObject;
  force?: boolean;
  /** From this step on the object has this schema. */
  schema?: JsonObject;
  live?: JsonObject;
  unchanged?: boolean;
  owners?: Record<string, JsonObject>;
  conflict?: Record<string, string[]>;
  error?: string;
}

const folder = new URL("../../../../../fixtures/server-side-apply/", import.meta.url);

/** Reads a YAML file of the fixture. */
export function readFixture(name: string): unknown {
  return parse(readFileSync(new URL(name, folder), "utf8"));
}

/** The merge type of a schema without the metadata of a custom resource. */
export function typeOfSchema(schema: JsonObject): MergeType {
  return mergeTypeOfBuiltin({ subject: schema }, "subject");
}

const defaultSchema = readFixture("schema.yaml") as JsonObject;

/** Runs a case and checks every step of it. */
export function runCase({ schema = defaultSchema, resetFields = [], steps }: SsaCase): void {
  let live: JsonObject = {};
  let owners: Owners = new Map();
  let type = typeOfSchema(schema);
  steps.forEach((step, index) => {
    const at = `step ${index}`;
    if (step.schema !== undefined) type = typeOfSchema(step.schema);
    const manager = step.apply ?? step.update ?? "";
    const fields = FieldSet.of(...resetFields);
    const write: OwnedWrite = { live, owners, manager, apiVersion: "v1", typeOf: () => type, resetFields: fields };
    if (step.update !== undefined) {
      live = step.object ?? {};
      owners = updateOwned(write, live);
      assert.equal(ownersAsFields(owners), step.owners, at);
      return;
    }
    const config = step.config ?? {};
    const errors = checkValue(type, config, { allowsDuplicates: false });
    assert.is(errors.length === 0 ? undefined : typedErrorText(errors), step.error, at);
    if (errors.length > 0) return;
    const outcome = applyOwned(write, config, { force: step.force === true });
    if (outcome.kind === "conflict") {
      const conflicts = outcome.conflicts.map((conflict) => [conflict.manager, conflict.fields.paths()]);
      assert.equal(Object.fromEntries(conflicts), step.conflict, at);
      return;
    }
    assert.is(step.conflict, undefined, `${at} applies although a conflict is expected`);
    if (step.unchanged === true) assert.is(outcome.object, undefined, `${at} changes nothing`);
    else assert.equal(outcome.object, step.live, at);
    live = outcome.object ?? live;
    owners = outcome.owners;
    assert.equal(ownersAsFields(owners), step.owners, at);
  });
}

/** Writes owners as FieldsV1 by manager. */
export function ownersAsFields(owners: Owners): Record<string, JsonObject> {
  return Object.fromEntries([...owners].map(([manager, { set }]) => [manager, encodeFieldsV1(set)]));
}
