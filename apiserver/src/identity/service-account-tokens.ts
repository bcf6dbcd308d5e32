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
import { type JsonObject, isObject, objectAt, stringAt } from "../json.js";
import { keyOf } from "../object/object-meta.js";
import type { Registry } from "../registry/registry.js";
import type { Secrets } from "./secrets.js";
import { type UserInfo, authenticatedUser, serviceAccountUsername } from "./user.js";

const KEY = "service-account-key";
const ACCOUNTS = { group: "", version: "v1", plural: "serviceaccounts" };

/** The issuer of the tokens, and their audience by default. */
export const ISSUER = "https://kubernetes.default.svc.cluster.local";

/** The objects that a token can be bound to. A token becomes invalid when its object is deleted. */
export const BINDABLE = [
  { kind: "Pod", claim: "pod", plural: "pods", isNamespaced: true },
  { kind: "Secret", claim: "secret", plural: "secrets", isNamespaced: true },
  { kind: "Node", claim: "node", plural: "nodes", isNamespaced: false },
] as const;

/** The content of a token to issue. */
interface TokenRequest {
  namespace: string;
  name: string;
  uid: string;
  audiences: readonly string[];
  seconds: number;
  /** The claims for the object that the token is bound to. */
  bound: JsonObject;
}

/** Issues and verifies ServiceAccount tokens: JSON web tokens with the claims of kube-apiserver's. */
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

  /** Signs a token and returns it with its expiration time. */
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

  /**
   * Returns the ServiceAccount of a token as a user; undefined if the token is invalid, has expired, or its ServiceAccount or bound object was
   * deleted.
   */
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
    // A ServiceAccount that was recreated has another uid, which invalidates its old tokens.
    if (uid === undefined || uid !== stringAt(account, "uid")) return undefined;
    if (bound !== undefined && !this.#isBoundThere(bound, namespace)) return undefined;
    const extra = { "authentication.kubernetes.io/credential-id": [`JTI=${stringAt(claims, "jti") ?? ""}`] };
    return { ...authenticatedUser(serviceAccountUsername({ namespace, name })), uid, extra };
  }

  /** Returns the ServiceAccount name of a correctly signed token if that ServiceAccount no longer exists. */
  missingAccountOf(token: string): string | undefined {
    const bound = objectAt(this.#claimsOf(token), "kubernetes.io");
    const [namespace = "", name] = [stringAt(bound, "namespace"), stringAt(objectAt(bound, "serviceaccount"), "name")];
    if (name === undefined) return undefined;
    return this.#registry.find(ACCOUNTS)?.store.get(keyOf({ namespace, name })) === undefined ? name : undefined;
  }

  /** Returns the public key for verifying tokens, as a JSON web key. */
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

  // Created with the first token, since most servers issue none.
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
