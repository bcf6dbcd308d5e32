import { invalidError } from "../../errors/field-error.js";
import { invalid, notFound } from "../../errors/status-error.js";
import { arrayAt, objectAt, stringAt, type JsonObject } from "../../json.js";
import { keyOf, resourceRefOf } from "../../object/object-key.js";
import { now } from "../../object/object-meta.js";
import type { ServedResource } from "../../registry/served-resource.js";
import { ISSUER, type ServiceAccountTokens } from "./service-account-tokens.js";

const DEFAULT_SECONDS = 3_600;
const LEAST_SECONDS = 600;

/** Answers a TokenRequest, the subresource `token` of a ServiceAccount. */
export function answerTokenRequest(
  tokens: ServiceAccountTokens,
  on: { resource: ServedResource; namespace: string | undefined; name: string },
  request: JsonObject,
): JsonObject {
  const { resource, namespace = "", name } = on;
  const account = resource.store.get(keyOf({ namespace, name }))?.object;
  if (account === undefined) throw notFound(resourceRefOf(resource.type, name));
  const spec = objectAt(request, "spec");
  const given = spec?.["expirationSeconds"];
  const seconds = typeof given === "number" ? given : DEFAULT_SECONDS;
  if (seconds < LEAST_SECONDS) {
    const detail = "may not specify a duration less than 10 minutes";
    const kind = { kind: "TokenRequest", group: "authentication.k8s.io", name: "" };
    throw invalid(kind, [invalidError("spec.expirationSeconds", seconds, detail)]);
  }
  const asked = (arrayAt(spec, "audiences") ?? []).map(String);
  const audiences = asked.length === 0 ? [ISSUER] : asked;
  const uid = stringAt(objectAt(account, "metadata"), "uid") ?? "";
  const { token, expires } = tokens.issue({ namespace, name, uid, audiences, seconds });
  return {
    kind: "TokenRequest",
    apiVersion: "authentication.k8s.io/v1",
    metadata: { name, namespace, uid, creationTimestamp: now() },
    spec: { audiences, expirationSeconds: seconds, boundObjectRef: null },
    status: { token, expirationTimestamp: `${expires.toISOString().slice(0, 19)}Z` },
  };
}
