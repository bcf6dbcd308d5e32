// What kinds that few write by hand cannot be without.
import { type FieldError, invalidError, requiredError } from "../../errors/field-error.js";
import { type JsonObject, isObject, memberOf, objectAt } from "../../json.js";
import { checkNotNegative, selectorMatches } from "../../validation/fields.js";
import { checkPodTemplate } from "../pod-template/pod-spec.js";
import { checkLasting, mismatchError } from "../apps/workload.js";

/** Checks a PodTemplate. */
export function checkTemplate(object: JsonObject): FieldError[] {
  return checkPodTemplate("template", objectAt(object, "template") ?? {});
}

/** Checks a ReplicationController. */
export function checkReplicationController(object: JsonObject): FieldError[] {
  const spec = objectAt(object, "spec") ?? {};
  const template = objectAt(spec, "template");
  const selector = objectAt(spec, "selector") ?? {};
  const metadata = objectAt(template, "metadata");
  const isMatched = selectorMatches({ matchLabels: selector }, objectAt(metadata, "labels") ?? {});
  return [
    ...checkNotNegative("spec.minReadySeconds", memberOf(spec, "minReadySeconds")),
    ...(Object.keys(selector).length === 0 ? [requiredError("spec.selector")] : []),
    ...checkNotNegative("spec.replicas", memberOf(spec, "replicas")),
    ...(template === undefined
      ? [requiredError("spec.template")]
      : [
          ...(isMatched ? [] : [mismatchError(metadata)]),
          ...checkPodTemplate("spec.template", template),
          ...checkLasting("ReplicationController", template),
        ]),
  ];
}

/** Checks a ControllerRevision: its data are an object when it is created, and stay. */
export function checkRevision(object: JsonObject, old: JsonObject | undefined): FieldError[] {
  const data = memberOf(object, "data") ?? null;
  const ofNumber = checkNotNegative("revision", memberOf(object, "revision"));
  // Data that are written in another order are others.
  const isSame = old !== undefined && JSON.stringify(data) === JSON.stringify(memberOf(old, "data") ?? null);
  if (old !== undefined) return [...ofNumber, ...(isSame ? [] : [invalidError("data", data, "field is immutable")])];
  return [
    ...(data === null ? [requiredError("data", "data is mandatory")] : []),
    ...(data === null || isObject(data) ? [] : [requiredError("data", "data must be a valid JSON object")]),
    ...ofNumber,
  ];
}
