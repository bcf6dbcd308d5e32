import type { ServedType } from "../builtin/served-type.js";
import { objectAt, type JsonObject } from "../json.js";

// What a real server would act on, and this one does not: by `plural.group`.
const KINDS: Readonly<Record<string, string>> = {
  "apiservices.apiregistration.k8s.io": "the embedded API server stores it and passes no request on",
};

/** Names what an object asks of the server and the server does not do, for `Warning` headers. */
export function unevaluatedWarnings(type: ServedType, object: JsonObject): string[] {
  const ofKind = KINDS[`${type.plural}.${type.group}`];
  if (ofKind !== undefined) return [`${type.kind}: ${ofKind}`];
  if (type.plural === "resourcequotas" && type.group === "") return quotaWarnings(object);
  return [];
}

function quotaWarnings(object: JsonObject): string[] {
  const isCounted = objectAt(objectAt(object, "status"), "hard") !== undefined;
  return isCounted
    ? []
    : [
        "ResourceQuota: it binds nobody until its status has hard and used, which the simulated controller `quotas` writes",
      ];
}
