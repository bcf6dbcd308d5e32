import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { IncomingHttpHeaders } from "node:http";
import { serverTime } from "../clock.js";
import { badRequest, unauthorized } from "../errors/status-error.js";
import type { Registry } from "../registry/registry.js";
import { type AccessAttributes, Authorizer, accessDenied } from "./authorizer.js";
import type { Secrets } from "./secrets.js";
import { ServiceAccountTokens } from "./service-account-tokens.js";
import {
  ADMIN_USER,
  ANONYMOUS,
  AUTHENTICATED,
  MASTERS,
  type UserInfo,
  authenticatedUser,
  serviceAccountOf,
} from "./user.js";

const EXTRA_SPACE = "the provided Authorization header contains extra space before the bearer token, and is ignored";

const TOKEN_OF = "token-of/";
const USER_OF = "user-of/";

/** The credentials of a request. */
interface Shown {
  readonly headers: IncomingHttpHeaders;
  readonly certificate?: ClientCertificate | undefined;
}

/** Authenticates users by client certificate or bearer token: the tokens that it issued, those of the option `users`, and ServiceAccount tokens. */
export class Authenticator {
  readonly #secrets: Secrets;
  readonly #tokens: ServiceAccountTokens;
  readonly #adminToken: string;
  readonly #given: ReadonlyMap<string, UserInfo>;

  constructor(options: {
    adminToken: string;
    tokens: ServiceAccountTokens;
    secrets: Secrets;
    users: readonly StaticUser[];
  }) {
    this.#adminToken = options.adminToken;
    this.#given = new Map(options.users.map((user) => [user.token, infoOf(user)]));
    this.#tokens = options.tokens;
    this.#secrets = options.secrets;
  }

  /** Returns the token of a user. It is always the same. */
  tokenOf(user: UserInfo): string {
    const text = JSON.stringify(user);
    const known = this.#secrets.get(TOKEN_OF + text);
    if (known !== undefined) return known;
    const token = randomBytes(16).toString("hex");
    this.#secrets.set(TOKEN_OF + text, token);
    this.#secrets.set(USER_OF + token, text);
    return token;
  }

  /** Returns the user of a token; undefined if it is invalid. `replaced` is accepted in place of the administrator's token. */
  userOf(token: string, replaced?: string): UserInfo | undefined {
    if (replaced !== undefined && token === replaced) return ADMIN_USER;
    if (token === this.#adminToken) return replaced === undefined ? ADMIN_USER : undefined;
    const given = this.#given.get(token);
    if (given !== undefined) return given;
    const user = this.#secrets.get(USER_OF + token);
    return user === undefined ? this.#tokens.userOf(token) : (JSON.parse(user) as UserInfo);
  }

  /** Returns the sender of a request; undefined if its credentials are invalid. */
  userOfRequest(shown: Shown, replaced?: string): UserInfo | undefined {
    try {
      return this.authenticate(shown, { replaced, warnings: [] });
    } catch {
      return undefined;
    }
  }

  /**
   * Returns the sender of a request. A valid certificate takes precedence over a token. Without credentials the sender is anonymous.
   *
   * @throws 401 for an invalid token, or for an invalid certificate without a token.
   */
  authenticate(
    { headers, certificate }: Shown,
    options: { replaced?: string | undefined; warnings: string[] },
  ): UserInfo {
    const isProof = certificate !== undefined && isValid(certificate);
    const owner = isProof ? userOfCertificate(certificate) : undefined;
    if (owner !== undefined) return owner;
    const token = tokenOf(headers, options.warnings);
    const user = token === undefined ? undefined : this.userOf(token, options.replaced);
    if (user !== undefined) return user;
    if (token !== undefined || (certificate !== undefined && !isProof)) throw unauthorized();
    return ANONYMOUS;
  }
}

function tokenOf(headers: IncomingHttpHeaders, warnings: string[]): string | undefined {
  const [, space = "", token] = /^bearer( +)(\S+) *$/i.exec(headers.authorization ?? "") ?? [];
  if (space.length <= 1) return token;
  warnings.push(EXTRA_SPACE);
  return undefined;
}

function infoOf({ name, uid, groups = [] }: StaticUser): UserInfo {
  return { username: name, ...(uid === undefined ? {} : { uid }), groups: [...new Set([...groups, AUTHENTICATED])] };
}

/** Authentication and authorization of a server. */
export interface Identity {
  readonly tokens: ServiceAccountTokens;
  readonly authenticator: Authenticator;
  readonly authorizer: Authorizer;
}

/** Creates the authentication and authorization for the objects in a registry. */
export function createIdentity(
  registry: Registry,
  { adminToken, secrets, users }: { adminToken: string; secrets: Secrets; users: readonly StaticUser[] },
): Identity {
  const tokens = new ServiceAccountTokens(registry, secrets);
  return {
    tokens,
    authenticator: new Authenticator({ adminToken, tokens, secrets, users }),
    authorizer: new Authorizer(registry),
  };
}

/** A client certificate of a TLS connection. */
export interface ClientCertificate {
  /** Whether the certificate was signed by a client CA of the server. */
  readonly isTrusted: boolean;
  readonly commonName: string;
  readonly organizations: readonly string[];
  readonly validFrom: Date;
  readonly validTo: Date;
  /** The SHA-256 fingerprint in lower-case hexadecimal. */
  readonly fingerprint: string;
}

/** Reports whether a certificate is trusted and has not expired. */
function isValid({ isTrusted, validFrom, validTo }: ClientCertificate): boolean {
  const now = serverTime();
  return isTrusted && validFrom <= now && now <= validTo;
}

/** Returns the user of a valid certificate: the common name, with the organizations as groups. Undefined if the common name is empty. */
function userOfCertificate({ commonName, organizations, fingerprint }: ClientCertificate): UserInfo | undefined {
  if (commonName === "") return undefined;
  const extra = { "authentication.kubernetes.io/credential-id": [`X509SHA256=${fingerprint}`] };
  return { username: commonName, groups: [...new Set([...organizations, AUTHENTICATED])], extra };
}

/** A user with a static token. */
export interface StaticUser {
  readonly name: string;
  readonly token: string;
  readonly uid?: string;
  readonly groups?: readonly string[];
}

/**
 * Reads users in the format of kube-apiserver's `--token-auth-file`: lines of `token,user,uid,"group1,group2"`.
 *
 * @throws an Error with the number of the line if it has too few columns.
 */
export async function readTokenFile(file: string): Promise<StaticUser[]> {
  const text = await readFile(file, "utf8");
  return text.split(/\r?\n/).flatMap((line, index) => {
    if (line.trim() === "") return [];
    const [token = "", name = "", uid = "", groups = "", ...more] = columnsOf(line);
    if (token === "" || name === "")
      throw new Error(
        `${file}:${index + 1}: token and user name are required; use the format token,user,uid,"group1,group2"`,
      );
    const listed = [groups, ...more].flatMap((group) => group.split(",")).filter((group) => group !== "");
    return [{ token, name, ...(uid === "" ? {} : { uid }), groups: listed }];
  });
}

// RFC 4180, without line breaks in quotes.
function columnsOf(line: string): string[] {
  const columns = line.matchAll(/(?:^|,)\s*(?:"((?:[^"]|"")*)"|([^,]*))/g);
  return [...columns].map(([, quoted, plain]) => quoted?.replaceAll('""', '"') ?? plain?.trim() ?? "");
}

const EXTRA = "impersonate-extra-";
const AUTHENTICATION = "authentication.k8s.io";
// Impersonating system:masters requires the unconstrained permission.
const AS_MASTER: AccessAttributes = {
  verb: "impersonate:user-info",
  group: AUTHENTICATION,
  resource: "groups",
  subresource: "",
  namespace: "",
  name: MASTERS,
};

/**
 * Returns the effective user of a request: the sender, or the user in its `Impersonate-` headers.
 *
 * https://kubernetes.io/docs/reference/access-authn-authz/user-impersonation/
 *
 * @throws 400 for groups, a uid, or extra fields without a user name; 403 if the sender may not impersonate the user.
 */
export function impersonate(
  sender: UserInfo,
  { headers, attributes }: { headers: IncomingHttpHeaders; attributes: AccessAttributes },
  authorizer: Authorizer,
): UserInfo {
  const username = valuesOf(headers, "impersonate-user")[0] ?? "";
  const groups = valuesOf(headers, "impersonate-group");
  const uid = valuesOf(headers, "impersonate-uid")[0];
  const extra = extraOf(headers);
  if (username === "") {
    if (groups.length === 0 && uid === undefined && extra === undefined) return sender;
    const extras = Object.entries(extra ?? {}).map(([key, values]) => `${JSON.stringify(key)}:${goTexts(values)}`);
    const shown = extras.length === 0 ? "(nil)" : `{${extras.join(", ")}}`;
    throw badRequest(
      `requested &user.DefaultInfo{Name:"", UID:"${uid ?? ""}", Groups:${goTexts(groups)}, Extra:map[string][]string${shown}} ` +
        "without impersonating a user name",
    );
  }
  const wanted = { username, groups, uid, extra };
  const refused =
    firstRefused(sender, constrained(wanted, attributes), authorizer) ??
    (groups.includes(MASTERS) ? AS_MASTER : undefined);
  if (refused !== undefined && firstRefused(sender, unconstrained(wanted), authorizer) !== undefined) {
    throw accessDenied(sender, refused);
  }
  return {
    ...(username === ANONYMOUS.username ? anonymousUser(groups) : authenticatedUser(username, groups)),
    ...(uid === undefined ? {} : { uid }),
    ...(extra === undefined ? {} : { extra }),
  };
}

function anonymousUser(groups: readonly string[]): UserInfo {
  return { username: ANONYMOUS.username, groups: [...new Set([...groups, ...ANONYMOUS.groups])] };
}

// Formats strings as Go prints a slice.
function goTexts(texts: readonly string[]): string {
  return texts.length === 0 ? "[]string(nil)" : `[]string{${texts.map((text) => JSON.stringify(text)).join(", ")}}`;
}

interface Wanted {
  username: string;
  groups: readonly string[];
  uid: string | undefined;
  extra: Record<string, string[]> | undefined;
}

function firstRefused(
  sender: UserInfo,
  asked: AccessAttributes[],
  authorizer: Authorizer,
): AccessAttributes | undefined {
  return asked.find((attributes) => !authorizer.decide(sender, attributes).allowed);
}

// Both impersonating the user and the action as that user must be allowed: KEP-5284, enabled by default since 1.36.
function constrained(wanted: Wanted, attributes: AccessAttributes): AccessAttributes[] {
  const { username, groups } = wanted;
  const account = serviceAccountOf(username);
  const node = /^system:node:(.+)$/.exec(username)?.[1];
  const mode = account !== undefined ? "serviceaccount" : node !== undefined ? "arbitrary-node" : "user-info";
  const on = { ...attributes, verb: `impersonate-on:${mode}:${attributes.verb}` };
  const none = { verb: `impersonate:${mode}`, group: AUTHENTICATION, subresource: "", namespace: "" };
  if (account !== undefined) return [on, { ...none, resource: "serviceaccounts", ...account }];
  if (node !== undefined) return [on, { ...none, resource: "nodes", name: node }];
  return [
    on,
    { ...none, resource: "users", name: username },
    ...groups.map((name) => ({ ...none, resource: "groups", name })),
    ...detailsOf(wanted, none),
  ];
}

function unconstrained(wanted: Wanted): AccessAttributes[] {
  const account = serviceAccountOf(wanted.username);
  const none = { verb: "impersonate", group: "", subresource: "", namespace: "" };
  return [
    account === undefined
      ? { ...none, resource: "users", name: wanted.username }
      : { ...none, resource: "serviceaccounts", ...account },
    ...wanted.groups.map((name) => ({ ...none, resource: "groups", name })),
    ...detailsOf(wanted, { ...none, group: AUTHENTICATION }),
  ];
}

function detailsOf(
  { uid, extra }: Wanted,
  none: { verb: string; group: string; subresource: string; namespace: string },
): AccessAttributes[] {
  return [
    ...(uid === undefined ? [] : [{ ...none, resource: "uids", name: uid }]),
    ...Object.entries(extra ?? {}).flatMap(([key, values]) =>
      values.map((name) => ({ ...none, resource: "userextras", subresource: key, name })),
    ),
  ];
}

// Node joins repeated headers that it does not know with a comma; group names contain no commas.
function valuesOf(headers: IncomingHttpHeaders, name: string): string[] {
  const value = headers[name];
  if (value === undefined) return [];
  return Array.isArray(value) ? value : value.split(", ");
}

function extraOf(headers: IncomingHttpHeaders): Record<string, string[]> | undefined {
  const names = Object.keys(headers).filter((name) => name.startsWith(EXTRA));
  if (names.length === 0) return undefined;
  return Object.fromEntries(
    names.map((name) => [decodeURIComponent(name.slice(EXTRA.length)), valuesOf(headers, name)]),
  );
}
