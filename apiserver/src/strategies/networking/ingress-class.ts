import { textAt } from "../../builtin/read-path.js";
import { type FieldError, forbiddenError, requiredError } from "../../errors/field-error.js";
import { type JsonObject, memberOf, objectAt } from "../../json.js";
import {
  checkDomain,
  checkLabel,
  checkOneOf,
  checkPrefixedPath,
  checkRequiredSegment,
} from "../../validation/fields.js";
import { checkTextKept } from "../../validation/immutable-fields.js";
import type { Strategy } from "../strategy.js";

export const ingressClassStrategy: Strategy = {
  generation: "spec",
  checksMetadata: ["object", "change"],
  validate: checkIngressClass,
};

/** Validates an IngressClass; its controller is immutable. */
function checkIngressClass(object: JsonObject, old: JsonObject | undefined): FieldError[] {
  const parameters = objectAt(objectAt(object, "spec"), "parameters");
  return [
    ...(old === undefined ? [] : checkTextKept("spec.controller", object, old)),
    ...checkPrefixedPath("spec.controller", textAt(object, "spec.controller"), 250),
    ...(parameters === undefined ? [] : checkParameters("spec.parameters", parameters)),
  ];
}

function checkParameters(path: string, parameters: JsonObject): FieldError[] {
  const [group, scope, namespace] = ["apiGroup", "scope", "namespace"].map((key) => memberOf(parameters, key));
  const field = `${path}.namespace`;
  const ofScope = `\`parameters.scope\` is set to '${String(scope)}'`;
  return [
    ...(typeof group === "string" ? checkDomain(`${path}.apiGroup`, group) : []),
    ...checkRequiredSegment(`${path}.kind`, textAt(parameters, "kind")),
    ...checkRequiredSegment(`${path}.name`, textAt(parameters, "name")),
    ...(scope === undefined
      ? [requiredError(`${path}.scope`)]
      : checkOneOf(`${path}.scope`, scope, ["Cluster", "Namespace"])),
    ...(scope === "Namespace" && namespace === undefined ? [requiredError(field, ofScope)] : []),
    ...(scope === "Namespace" && typeof namespace === "string" ? checkLabel(field, namespace) : []),
    ...(scope === "Cluster" && namespace !== undefined ? [forbiddenError(field, ofScope)] : []),
  ];
}
