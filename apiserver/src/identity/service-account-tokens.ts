import {
  type KeyObject,
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  randomUUID,
  sign,
  verify,
} from "node:crypto";
import { serverTime } from "../clock.js";
import { type FieldError, invalidError } from "../errors/field-error.js";
import { quote } from "../errors/go-format.js";
import { badRequest, conflict, invalid, notFound } from "../errors/status-error.js";
import { type JsonObject, arrayAt, isObject, objectAt, stringAt } from "../json.js";
import { keyOf, resourceRefOf } from "../object/names.js";
import { now } from "../object/object-meta.js";
import type { Registry } from "../registry/registry.js";
import type { ServedResource } from "../registry/served-resource.js";
import type { Secrets } from "./secrets.js";
import { type UserInfo, authenticatedUser, serviceAccountUsername } from "./user.js";

const KEY = "service-account-key";
const ACCOUNTS = { group: "", version: "v1", plural: "serviceaccounts" };

/** Who issues the tokens, and the audience of those that name none. */
export const ISSUER = "https://kubernetes.default.svc.cluster.local";

/** What a token may be bound to: it ends with that. */
const BINDABLE = [
  { kind: "Pod", claim: "pod", plural: "pods", isNamespaced: true },
  { kind: "Secret", claim: "secret", plural: "secrets", isNamespaced: true },
  { kind: "Node", claim: "node", plural: "nodes", isNamespaced: false },
] as const;

/** What a token is for. */
interface TokenRequest {
  namespace: string;
  name: string;
  uid: string;
  audiences: readonly string[];
  seconds: number;
  /** The Pod or other object that the token ends with, in its claims. */
  bound: JsonObject;
}

/** Issues the tokens of service accounts, JSON web tokens as kube-apiserver's, and knows its own again. */
export class ServiceAccountTokens {
  readonly #registry: Registry;
  readonly #secrets: Secrets;
  #keys: KeyPair | undefined;

  constructor(registry: Registry, secrets: Secrets) {
    this.#registry = registry;
    this.#secrets = secrets;
    const key = secrets.get(KEY);
    if (key !== undefined) this.#keys = keyPairOf(createPrivateKey(key));
  }

  /** Signs a token, and says when it ends. */
  issue({ namespace, name, uid, audiences, seconds, bound }: TokenRequest): { token: string; expires: Date } {
    const now = Math.floor(serverTime().getTime() / 1000);
    const claims: JsonObject = {
      aud: [...audiences],
      exp: now + seconds,
      iat: now,
      iss: ISSUER,
      jti: randomUUID(),
      "kubernetes.io": { namespace, ...bound, serviceaccount: { name, uid } },
      nbf: now,
      sub: serviceAccountUsername({ namespace, name }),
    };
    const { privateKey, id } = this.#keyPair();
    const content = `${encoded({ alg: "ES256", kid: id })}.${encoded(claims)}`;
    const signature = sign("sha256", Buffer.from(content), { key: privateKey, dsaEncoding: "ieee-p1363" });
    return { token: `${content}.${signature.toString("base64url")}`, expires: new Date((now + seconds) * 1000) };
  }

  /** Returns the service account that a token belongs to; undefined if it is not valid, or not any more. */
  userOf(token: string): UserInfo | undefined {
    const claims = this.#claimsOf(token);
    if (claims === undefined) return undefined;
    const now = serverTime().getTime() / 1000;
    const [expires, audiences] = [claims["exp"], claims["aud"]];
    if (typeof expires !== "number" || expires <= now) return undefined;
    if (!Array.isArray(audiences) || !audiences.includes(ISSUER)) return undefined;
    const bound = objectAt(claims, "kubernetes.io");
    const account = objectAt(bound, "serviceaccount");
    const [namespace = "", name = ""] = [stringAt(bound, "namespace"), stringAt(account, "name")];
    const stored = this.#registry.find(ACCOUNTS)?.store.get(keyOf({ namespace, name }));
    const uid = stringAt(objectAt(stored?.object, "metadata"), "uid");
    // The token of an account that was deleted is not one of the account that was created in its place.
    if (uid === undefined || uid !== stringAt(account, "uid")) return undefined;
    if (bound !== undefined && !this.#isBoundThere(bound, namespace)) return undefined;
    const extra = { "authentication.kubernetes.io/credential-id": [`JTI=${stringAt(claims, "jti") ?? ""}`] };
    return { ...authenticatedUser(serviceAccountUsername({ namespace, name })), uid, extra };
  }

  /** Returns the account of a valid token that is not there any more. */
  missingAccountOf(token: string): string | undefined {
    const bound = objectAt(this.#claimsOf(token), "kubernetes.io");
    const [namespace = "", name] = [stringAt(bound, "namespace"), stringAt(objectAt(bound, "serviceaccount"), "name")];
    if (name === undefined) return undefined;
    return this.#registry.find(ACCOUNTS)?.store.get(keyOf({ namespace, name })) === undefined ? name : undefined;
  }

  /** Returns the key that the tokens can be verified with, as a JSON web key. */
  publicKey(): JsonObject {
    const { publicKey, id } = this.#keyPair();
    const { kty = "", crv = "", x = "", y = "" } = publicKey.export({ format: "jwk" });
    return { use: "sig", kty, kid: id, crv, alg: "ES256", x, y };
  }

  #isBoundThere(claims: JsonObject, namespace: string): boolean {
    return BINDABLE.every(({ claim, plural, isNamespaced }) => {
      const reference = objectAt(claims, claim);
      const resource = this.#registry.find({ group: "", version: "v1", plural });
      if (reference === undefined || resource === undefined) return true;
      const name = stringAt(reference, "name") ?? "";
      const stored = resource.store.get(isNamespaced ? keyOf({ namespace, name }) : name);
      const uid = stringAt(objectAt(stored?.object, "metadata"), "uid");
      return uid !== undefined && (reference["uid"] === undefined || reference["uid"] === uid);
    });
  }

  #claimsOf(token: string): JsonObject | undefined {
    const [head, body, signature, ...more] = token.split(".");
    if (this.#keys === undefined || head === undefined || body === undefined || signature === undefined)
      return undefined;
    const given = { key: this.#keys.publicKey, dsaEncoding: "ieee-p1363" as const };
    const isSigned =
      more.length === 0 && verify("sha256", Buffer.from(`${head}.${body}`), given, Buffer.from(signature, "base64url"));
    if (!isSigned) return undefined;
    const claims: unknown = JSON.parse(Buffer.from(body, "base64url").toString());
    return isObject(claims) ? claims : undefined;
  }

  // Made when the first token is asked for: most servers issue none.
  #keyPair(): KeyPair {
    if (this.#keys !== undefined) return this.#keys;
    const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    this.#secrets.set(KEY, privateKey.export({ type: "pkcs8", format: "pem" }).toString());
    return (this.#keys = keyPairOf(privateKey));
  }
}

interface KeyPair {
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
  readonly id: string;
}

function keyPairOf(privateKey: KeyObject): KeyPair {
  const publicKey = createPublicKey(privateKey);
  const id = createHash("sha256")
    .update(publicKey.export({ type: "spki", format: "der" }))
    .digest("base64url");
  return { privateKey, publicKey, id };
}

function encoded(value: JsonObject): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}

const LEAST_SECONDS = 600;
const MOST_SECONDS = 2 ** 32;
const KIND = { kind: "TokenRequest", group: "authentication.k8s.io" };
/** The kind that asks for a token of a ServiceAccount. */
export const TOKEN_REQUEST = { ...KIND, version: "v1", schemaName: "io.k8s.api.authentication.v1.TokenRequest" };

/** The account that a token is asked for. */
interface TokenTarget {
  registry: Registry;
  resource: ServedResource;
  namespace: string | undefined;
  name: string;
}

/** Returns a TokenRequest, the subresource `token` of a ServiceAccount, with what it leaves out; throws what it must not ask for. */
export function completedTokenRequest(
  { resource, namespace = "", name }: TokenTarget,
  request: JsonObject,
): JsonObject {
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

/** Answers a TokenRequest that is complete. */
export function answerTokenRequest(tokens: ServiceAccountTokens, on: TokenTarget, request: JsonObject): JsonObject {
  const { namespace = "", name } = on;
  const spec = objectAt(request, "spec");
  const reference = objectAt(spec, "boundObjectRef");
  const bound = reference === undefined ? {} : boundTo(reference, on);
  const audiences = (arrayAt(spec, "audiences") ?? []).map(String);
  const uid = stringAt(objectAt(request, "metadata"), "uid") ?? "";
  const seconds = Number(spec?.["expirationSeconds"]);
  const { token, expires } = tokens.issue({ namespace, name, uid, audiences, seconds, bound });
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

/** Returns the claims of what a token is bound to. */
function boundTo(reference: JsonObject, { registry, namespace, name: account }: TokenTarget): JsonObject {
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
