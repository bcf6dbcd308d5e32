import type { ServedType } from "../builtin/served-type.js";
import { arrayAt, isObject, objectAt, stringAt, type JsonObject } from "../json.js";

const POLICY = "the embedded API server stores it and does not evaluate it";

// What a real server would act on, and this one does not: by `plural.group`.
const KINDS: Readonly<Record<string, string>> = {
  "resourcequotas.": "the embedded API server stores it and limits nothing by it",
  "limitranges.": "the embedded API server stores it; it neither limits nor completes anything by it",
  "validatingadmissionpolicies.admissionregistration.k8s.io": POLICY,
  "validatingadmissionpolicybindings.admissionregistration.k8s.io": POLICY,
  "mutatingadmissionpolicies.admissionregistration.k8s.io": POLICY,
  "mutatingadmissionpolicybindings.admissionregistration.k8s.io": POLICY,
  "apiservices.apiregistration.k8s.io": "the embedded API server stores it and passes no request on",
};

/** Names what an object asks of the server and the server does not do, for `Warning` headers. */
export function unevaluatedWarnings(type: ServedType, object: JsonObject): string[] {
  const ofKind = KINDS[`${type.plural}.${type.group}`];
  if (ofKind !== undefined) return [`${type.kind}: ${ofKind}`];
  if (type.plural === "customresourcedefinitions") return definitionWarnings(object);
  return type.plural.endsWith("webhookconfigurations") ? webhookWarnings(object) : [];
}

function webhookWarnings(object: JsonObject): string[] {
  const webhooks = (arrayAt(object, "webhooks") ?? []).filter(isObject);
  return webhooks.flatMap((webhook, index) =>
    (arrayAt(webhook, "matchConditions") ?? []).length === 0
      ? []
      : [
          `webhooks[${index}].matchConditions: the embedded API server does not evaluate them; the webhook is called without`,
        ],
  );
}

function definitionWarnings(object: JsonObject): string[] {
  const strategy = stringAt(objectAt(objectAt(object, "spec"), "conversion"), "strategy");
  return strategy === "Webhook"
    ? ["spec.conversion: the embedded API server calls no webhook; it converts as with the strategy None"]
    : [];
}
