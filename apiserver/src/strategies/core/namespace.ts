import { type FieldError, invalidError } from "../../errors/field-error.js";
import { type JsonObject, arrayAt, objectAt, stringAt } from "../../json.js";
import { isStandardFinalizer, isTerminating } from "../../object/object-meta.js";
import { qualifiedNameProblems } from "../../validation/names.js";
import type { Strategy } from "../strategy.js";

export const namespaceStrategy: Strategy = {
  checksMetadata: ["object", "change"],
  returnsDeletedObject: true,
  nameRule: "namespace",
  defaults: (namespace, { uid }) => defaultNamespace(namespace, uid !== undefined),
  validate: (namespace) => checkFinalizers(namespace, () => FINALIZERS),
  validateSubresource: (namespace, _old, subresource) =>
    subresource === "finalize" ? checkFinalizers(namespace, (index) => `${FINALIZERS}[${index}]`) : undefined,
  validateStatus: checkPhase,
};

const FINALIZERS = "spec.finalizers";

function checkFinalizers(object: JsonObject, pathOf: (index: number) => string): FieldError[] {
  const finalizers = (arrayAt(objectAt(object, "spec"), "finalizers") ?? []).map(String);
  return finalizers.flatMap((name, index) => {
    const path = pathOf(index);
    const errors = qualifiedNameProblems(name).map((detail) => invalidError(path, name, detail));
    if (name.includes("/") || isStandardFinalizer(name)) return errors;
    const detail = "name is neither a standard finalizer name nor is it fully qualified";
    return [...errors, invalidError(path, name, detail)];
  });
}

function checkPhase(object: JsonObject): FieldError[] {
  const phase = stringAt(objectAt(object, "status"), "phase") ?? "";
  const wanted = isTerminating(object) ? "Terminating" : "Active";
  if (phase === "" || phase === wanted) return [];
  const state = isTerminating(object) ? "not empty" : "empty";
  return [invalidError("status.Phase", phase, `may only be '${wanted}' if \`deletionTimestamp\` is ${state}`)];
}

/** Sets the label with the name of a Namespace and, on create, its finalizer. */
function defaultNamespace(namespace: JsonObject, isCreate: boolean): void {
  const metadata = objectAt(namespace, "metadata") ?? {};
  const name = stringAt(metadata, "name");
  if (name !== undefined) {
    metadata["labels"] = { ...objectAt(metadata, "labels"), "kubernetes.io/metadata.name": name };
  }
  if (!isCreate) return;
  const spec = objectAt(namespace, "spec") ?? {};
  const finalizers = arrayAt(spec, "finalizers") ?? [];
  if (!finalizers.includes("kubernetes")) spec["finalizers"] = [...finalizers, "kubernetes"];
  namespace["spec"] = spec;
}
