import { readFileSync } from "node:fs";
import { join } from "node:path";
import { defaultBuiltin } from "#apiserver/strategies/defaults.js";
import type { ServedType } from "#apiserver/builtin/served-type.js";
import { builtinTypes, strategyOf } from "#apiserver/strategies/table.js";
import { clone, objectAt, stringAt, type JsonObject } from "#apiserver/json.js";
import { invalid } from "#apiserver/errors/status-error.js";
import { applyMergePatch } from "#apiserver/write/patch.js";
import { repositoryRoot } from "../../../support/repository.js";
import { assert, suite } from "../../../support/suite.js";

/** What a kube-apiserver 1.36.3 said to the creation of an object, or to a merge patch of `old`; "ok" if it took it. */
interface Recording {
  resource: string;
  object?: JsonObject;
  old?: JsonObject;
  patch?: JsonObject;
  want: string;
}

const file = join(repositoryRoot, "test/unit/apiserver/builtin/data/recorded-validation.json");
const recordings = JSON.parse(readFileSync(file, "utf8")) as Recording[];
const allocators = { allocateClusterIP: () => "10.0.0.9", allocateNodePort: () => 30009 };

suite("validateBuiltin", (test) => {
  test("returns the errors of a kube-apiserver for invalid new objects", () => {
    const created = recordings.filter(({ object }) => object !== undefined);
    assert.ok(created.length > 30);
    for (const { resource, object, want } of created) {
      const type = typeOf(resource);
      const defaulted = withUid(object as JsonObject, "u");
      defaultBuiltin(type, defaulted, { ...allocators, uid: "u" });
      assert.is(verdictOf(type, defaulted), want, `${resource} ${JSON.stringify(object)}`);
    }
  });

  test("returns the errors of a kube-apiserver for updates of immutable fields", () => {
    const updated = recordings.filter(({ patch }) => patch !== undefined);
    assert.ok(updated.length > 15);
    for (const { resource, old: recorded, patch, want } of updated) {
      const type = typeOf(resource);
      const old = withUid(recorded as JsonObject, uidOfJob(recorded as JsonObject));
      const object = applyMergePatch(old, patch);
      defaultBuiltin(type, object, { ...allocators, old });
      assert.is(verdictOf(type, object, old), want, `${resource} ${JSON.stringify(patch)}`);
    }
  });
});

function withUid(object: JsonObject, uid: string): JsonObject {
  return { ...clone(object), metadata: { ...objectAt(object, "metadata"), uid } };
}

/** What was recorded has no uid but in the labels of the pods of a Job. */
function uidOfJob(object: JsonObject): string {
  const template = objectAt(objectAt(object, "spec"), "template");
  return stringAt(objectAt(objectAt(template, "metadata"), "labels"), "controller-uid") ?? "";
}

function verdictOf(type: ServedType, object: JsonObject, old?: JsonObject): string {
  const errors = strategyOf(type).validate?.(object, old) ?? [];
  if (errors.length === 0) return "ok";
  const message = invalid({ kind: type.kind, group: type.group, name: "" }, errors).status.message ?? "";
  return message.slice(message.indexOf(" is invalid: ") + " is invalid: ".length);
}

function typeOf(plural: string): ServedType {
  return builtinTypes().find((type) => type.plural === plural) as ServedType;
}
