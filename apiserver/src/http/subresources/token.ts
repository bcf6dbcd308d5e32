// The token subresource of ServiceAccounts. https://kubernetes.io/docs/reference/kubernetes-api/authentication-resources/token-request-v1/
import { parseWriteOptions } from "../../decode/options.js";
import { type FieldError, invalidError } from "../../errors/field-error.js";
import { quote } from "../../errors/go-format.js";
import { badRequest, conflict, invalid, notFound } from "../../errors/status-error.js";
import { BINDABLE, ISSUER } from "../../identity/service-account-tokens.js";
import { type JsonObject, arrayAt, objectAt, stringAt } from "../../json.js";
import { keyOf, now, resourceRefOf } from "../../object/object-meta.js";
import { admitPart, partResource } from "../../write/created-part.js";
import { type ResourceRequest, decodeBody, renderContextOf, writeContextOf } from "../handlers.js";
import { renderValue } from "../representation.js";
import type { Answer } from "../request-info.js";

const LEAST_SECONDS = 600;
const MOST_SECONDS = 2 ** 32;
const KIND = { kind: "TokenRequest", group: "authentication.k8s.io" };
const TOKEN_REQUEST = { ...KIND, version: "v1", schemaName: "io.k8s.api.authentication.v1.TokenRequest" };

/** Handles a TokenRequest of a ServiceAccount. */
export async function createToken(on: ResourceRequest): Promise<Answer> {
  const render = renderContextOf(on);
  const context = writeContextOf(on, parseWriteOptions(on.request.query, "CreateOptions"));
  const part = partResource(TOKEN_REQUEST, on.resource);
  const object = decodeBody(on, { ...context, resource: part });
  const check = (asked: JsonObject): JsonObject => completedTokenRequest(on, asked);
  const created = { name: on.name, subresource: on.subresource, part, object };
  const request = await admitPart(context, created, { isTracked: true, check });
  return renderValue(render, 201, answerTokenRequest(on, request));
}

/** Returns a TokenRequest with defaults. Throws if it is invalid or the ServiceAccount does not exist. */
function completedTokenRequest({ resource, namespace = "", name }: ResourceRequest, request: JsonObject): JsonObject {
  const metadata = objectAt(request, "metadata");
  const given = stringAt(metadata, "name") ?? "";
  if (given !== "" && given !== name) {
    const error = invalidError("metadata.name", given, "must match the service account name if specified");
    throw invalid({ ...KIND, name }, [error]);
  }
  const account = resource.store.get(keyOf({ namespace, name }))?.object;
  if (account === undefined) throw notFound(resourceRefOf(resource.type, name));
  const spec = objectAt(request, "spec");
  const errors = checkSeconds(Number(spec?.["expirationSeconds"]));
  if (errors.length > 0) throw invalid({ ...KIND, name: "" }, errors);
  const audiences = arrayAt(spec, "audiences") ?? [];
  const uid = stringAt(objectAt(account, "metadata"), "uid") ?? "";
  return {
    ...request,
    metadata: { ...metadata, name, namespace, uid, creationTimestamp: now() },
    spec: { ...spec, audiences: audiences.length === 0 ? [ISSUER] : audiences },
    status: { token: "", expirationTimestamp: null },
  };
}

/** Issues the token of a validated TokenRequest. */
function answerTokenRequest(on: ResourceRequest, request: JsonObject): JsonObject {
  const { namespace = "", name } = on;
  const spec = objectAt(request, "spec");
  const reference = objectAt(spec, "boundObjectRef");
  const bound = reference === undefined ? {} : boundTo(reference, on);
  const audiences = (arrayAt(spec, "audiences") ?? []).map(String);
  const uid = stringAt(objectAt(request, "metadata"), "uid") ?? "";
  const seconds = Number(spec?.["expirationSeconds"]);
  const { token, expires } = on.identity.tokens.issue({ namespace, name, uid, audiences, seconds, bound });
  return {
    ...request,
    status: { token, expirationTimestamp: `${expires.toISOString().slice(0, 19)}Z` },
  };
}

function checkSeconds(seconds: number): FieldError[] {
  const field = "spec.expirationSeconds";
  if (seconds < LEAST_SECONDS) return [invalidError(field, seconds, "may not specify a duration less than 10 minutes")];
  if (seconds <= MOST_SECONDS) return [];
  return [invalidError(field, seconds, "may not specify a duration larger than 2^32 seconds")];
}

/** Returns the claims for the object that a token is bound to. */
function boundTo(reference: JsonObject, { registry, namespace, name: account }: ResourceRequest): JsonObject {
  const [kind = "", name = "", apiVersion = ""] = ["kind", "name", "apiVersion"].map((key) => stringAt(reference, key));
  const bindable = apiVersion.includes("/") ? undefined : BINDABLE.find((one) => one.kind === kind);
  const resource = bindable && registry.find({ group: "", version: "v1", plural: bindable.plural });
  if (bindable === undefined || resource === undefined) {
    const version = apiVersion.includes("/") ? apiVersion : `/${apiVersion}`;
    throw badRequest(`cannot bind token to object of type ${version}, Kind=${kind}`);
  }
  if (name === "") throw badRequest("Name parameter required.");
  const key = bindable.isNamespaced ? keyOf({ namespace, name }) : name;
  const object = resource.store.get(key)?.object;
  if (object === undefined) throw notFound(resourceRefOf(resource.type, name));
  const uid = stringAt(objectAt(object, "metadata"), "uid") ?? "";
  const wanted = stringAt(reference, "uid") ?? "";
  if (wanted !== "" && wanted !== uid) {
    const problem = `the UID in the bound object reference (${wanted}) does not match the UID in record. The object might have been deleted and then recreated`;
    throw conflict({ resource: kind, group: "", name }, problem);
  }
  if (kind === "Pod" && (stringAt(objectAt(object, "spec"), "serviceAccountName") ?? "") !== account)
    throw badRequest(
      `cannot bind token for serviceaccount ${quote(account)} to pod running with different serviceaccount name.`,
    );
  return { [bindable.claim]: { name, uid } };
}
