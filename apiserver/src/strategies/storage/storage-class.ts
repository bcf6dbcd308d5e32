import { objectsAt, textAt } from "../../builtin/read-path.js";
import {
  type FieldError,
  duplicateError,
  invalidError,
  requiredError,
  tooLongError,
} from "../../errors/field-error.js";
import { type JsonObject, arrayAt, compareText, memberOf, objectAt } from "../../json.js";
import { checkOnce, checkOneOf, checkQualifiedName, goMap } from "../../validation/fields.js";
import { checkKept, checkTextKept } from "../../validation/immutable-fields.js";
import { labelWarnings } from "../shared/node-selectors.js";
import type { Strategy } from "../strategy.js";

export const storageClassStrategy: Strategy = {
  returnsDeletedObject: true,
  checksMetadata: ["object", "change"],
  validate: checkStorageClass,
  warnings: storageClassWarnings,
};

function checkStorageClass(object: JsonObject, old: JsonObject | undefined): FieldError[] {
  const policy = memberOf(object, "reclaimPolicy");
  return [
    ...checkProvisioner("provisioner", textAt(object, "provisioner")),
    ...checkParameters("parameters", object, { needsOne: false }),
    ...(policy === "" ? [] : checkOneOf("reclaimPolicy", policy, ["Delete", "Retain"])),
    ...checkOneOf("volumeBindingMode", memberOf(object, "volumeBindingMode"), ["Immediate", "WaitForFirstConsumer"]),
    ...checkTopologies("allowedTopologies", objectsAt(object, "allowedTopologies")),
    ...(old === undefined ? [] : checkClassKept(object, old)),
  ];
}

function checkClassKept(object: JsonObject, old: JsonObject): FieldError[] {
  const shown = (one: JsonObject, key: string) => memberOf(one, key) ?? null;
  const parameters = (one: JsonObject) => {
    const map = objectAt(one, "parameters");
    return map === undefined ? null : goMap(map);
  };
  return [
    ...checkKept("parameters", parameters(object), parameters(old)),
    ...checkTextKept("provisioner", object, old),
    ...["reclaimPolicy", "volumeBindingMode"].flatMap((key) => checkKept(key, shown(object, key), shown(old, key))),
  ];
}

function checkTopologies(path: string, terms: JsonObject[]): FieldError[] {
  // kube-apiserver compares with one empty term per term of the list, so a term without labels is a duplicate of all of them.
  const seen = terms.map(() => "[]");
  return terms.flatMap((term, index) => {
    const at = `${path}[${index}].matchLabelExpressions`;
    const labels = objectsAt(term, "matchLabelExpressions");
    const keys = labels.map((label) => textAt(label, "key"));
    const byKey = new Map(labels.map((label) => [textAt(label, "key"), [...new Set(valuesOf(label))].sort()]));
    const kind = JSON.stringify([...byKey].sort(([a], [b]) => compareText(a, b)));
    const same = seen.filter((other) => other === kind);
    seen.push(kind);
    return [
      ...labels.flatMap((label, place) => [
        ...checkTopology(`${at}[${place}]`, label),
        ...(keys.indexOf(keys[place] ?? "") < place ? [duplicateError(`${at}[${place}].key`, keys[place] ?? "")] : []),
      ]),
      ...same.map(() => duplicateError(at, "")),
    ];
  });
}

function valuesOf(label: JsonObject): string[] {
  return (arrayAt(label, "values") ?? []).map(String);
}

function checkTopology(path: string, label: JsonObject): FieldError[] {
  const values = valuesOf(label);
  return [
    ...(values.length === 0 ? [requiredError(`${path}.values`)] : []),
    ...checkOnce(`${path}.values`, values),
    ...checkQualifiedName(`${path}.key`, textAt(label, "key")),
  ];
}

const MAX_PARAMETERS = 512;
const MAX_PARAMETER_BYTES = 256 * 1024;

/** Validates a provisioner name, which may contain uppercase letters. */
export function checkProvisioner(field: string, name: string): FieldError[] {
  if (name === "") return [requiredError(field)];
  const own = name.toLowerCase();
  return checkQualifiedName(field, own);
}

/** Validates the parameters of a provisioner. */
export function checkParameters(field: string, object: JsonObject, { needsOne }: { needsOne: boolean }): FieldError[] {
  const parameters = Object.entries(objectAt(object, field) ?? {});
  if (parameters.length > MAX_PARAMETERS) return [tooLongError(field, MAX_PARAMETERS)];
  const bytes = Buffer.byteLength(parameters.flat().join(""));
  return [
    ...parameters.filter(([key]) => key === "").map(([key]) => invalidError(field, key, "field can not be empty.")),
    ...(bytes > MAX_PARAMETER_BYTES ? [tooLongError(field, MAX_PARAMETER_BYTES)] : []),
    ...(needsOne && parameters.length === 0 ? [requiredError(field, "must contain at least one key/value pair")] : []),
  ];
}

/** Warns about deprecated labels in allowedTopologies. */
function storageClassWarnings(storageClass: JsonObject): string[] {
  return objectsAt(storageClass, "allowedTopologies").flatMap((topology, index) =>
    objectsAt(topology, "matchLabelExpressions").flatMap((expression, place) => {
      const path = `allowedTopologies[${index}].matchLabelExpressions[${place}].key`;
      const label = textAt(expression, "key");
      // kube-apiserver omits the label here.
      return labelWarnings(path, label).map((warning) => warning.replace(`: ${label} is `, ": "));
    }),
  );
}
