import { textAt } from "../../builtin/read-path.js";
import { type FieldError, requiredError } from "../../errors/field-error.js";
import { type JsonObject, objectAt } from "../../json.js";
import { checkGivenDomain, checkRequiredSegment } from "../../validation/fields.js";
import { type GoStruct, checkKept, goForm } from "../../validation/immutable-fields.js";
import type { Strategy } from "../strategy.js";

export const ipAddressStrategy: Strategy = {
  checksMetadata: ["object", "change"],
  nameRule: "address",
  validate: checkAddress,
};

const SPEC: GoStruct = {
  ParentRef: { kind: "pointer", struct: { Group: "", Resource: "", Namespace: "", Name: "" } },
};

/** Validates an IPAddress; its parentRef is immutable. */
function checkAddress(address: JsonObject, old: JsonObject | undefined): FieldError[] {
  const path = "spec.parentRef";
  const shown = (one: JsonObject) => goForm(SPEC, objectAt(one, "spec"))["ParentRef"] ?? null;
  return [
    ...checkParent(path, objectAt(objectAt(address, "spec"), "parentRef")),
    ...(old === undefined ? [] : checkKept(path, shown(address), shown(old))),
  ];
}

function checkParent(path: string, reference: JsonObject | undefined): FieldError[] {
  if (reference === undefined) return [requiredError(path)];
  return [
    ...checkGivenDomain(`${path}.group`, textAt(reference, "group")),
    ...["resource", "name", "namespace"].flatMap((key) => {
      const [value, field] = [textAt(reference, key), `${path}.${key}`];
      return value === "" && key === "namespace" ? [] : checkRequiredSegment(field, value);
    }),
  ];
}
