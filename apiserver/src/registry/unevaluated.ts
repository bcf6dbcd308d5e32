import type { ServedType } from "../builtin/served-type.js";
import { objectAt, stringAt, type JsonObject } from "../json.js";

const POLICY = "the embedded API server stores it and does not evaluate it";

// What a real server would act on, and this one does not: by `plural.group`.
const KINDS: Readonly<Record<string, string>> = {
  "resourcequotas.": "the embedded API server stores it and limits nothing by it",
  "mutatingadmissionpolicies.admissionregistration.k8s.io": POLICY,
  "mutatingadmissionpolicybindings.admissionregistration.k8s.io": POLICY,
  "apiservices.apiregistration.k8s.io": "the embedded API server stores it and passes no request on",
};

/** Names what an object asks of the server and the server does not do, for `Warning` headers. */
export function unevaluatedWarnings(type: ServedType, object: JsonObject): string[] {
  const ofKind = KINDS[`${type.plural}.${type.group}`];
  if (ofKind !== undefined) return [`${type.kind}: ${ofKind}`];
  return type.plural === "customresourcedefinitions" ? definitionWarnings(object) : [];
}

function definitionWarnings(object: JsonObject): string[] {
  const strategy = stringAt(objectAt(objectAt(object, "spec"), "conversion"), "strategy");
  return strategy === "Webhook"
    ? ["spec.conversion: the embedded API server calls no webhook; it converts as with the strategy None"]
    : [];
}
