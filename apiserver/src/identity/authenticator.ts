import { randomBytes } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { unauthorized } from "../errors/status-error.js";
import { isValid, userOfCertificate, type ClientCertificate } from "./client-certificate.js";
import type { Secrets } from "./secrets.js";
import type { ServiceAccountTokens } from "./tokens/service-account-tokens.js";
import type { StaticUser } from "./tokens/token-file.js";
import { ADMIN_USER, ANONYMOUS, AUTHENTICATED, type UserInfo } from "./user.js";

const EXTRA_SPACE = "the provided Authorization header contains extra space before the bearer token, and is ignored";

const TOKEN_OF = "token-of/";
const USER_OF = "user-of/";

/** What a client shows of itself. */
export interface Shown {
  readonly headers: IncomingHttpHeaders;
  readonly certificate?: ClientCertificate | undefined;
}

/** Knows users by their certificates and by their tokens: those that it handed out or was given, and those of service accounts. */
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

  /** Returns the token of a user: always the same one. */
  tokenOf(user: UserInfo): string {
    const text = JSON.stringify(user);
    const known = this.#secrets.get(TOKEN_OF + text);
    if (known !== undefined) return known;
    const token = randomBytes(16).toString("hex");
    this.#secrets.set(TOKEN_OF + text, token);
    this.#secrets.set(USER_OF + token, text);
    return token;
  }

  /** Returns the user that a token belongs to, if there is one; `replaced` is trusted in place of the administrator's token. */
  userOf(token: string, replaced?: string): UserInfo | undefined {
    if (replaced !== undefined && token === replaced) return ADMIN_USER;
    if (token === this.#adminToken) return replaced === undefined ? ADMIN_USER : undefined;
    const given = this.#given.get(token);
    if (given !== undefined) return given;
    const user = this.#secrets.get(USER_OF + token);
    return user === undefined ? this.#tokens.userOf(token) : (JSON.parse(user) as UserInfo);
  }

  /** Returns who sends a request; undefined for credentials of nobody. */
  userOfRequest(shown: Shown, replaced?: string): UserInfo | undefined {
    try {
      return this.authenticate(shown, { replaced, warnings: [] });
    } catch {
      return undefined;
    }
  }

  /**
   * Returns who sends a request. A valid certificate counts before a token; who shows neither is anonymous.
   *
   * @throws 401 for a token of nobody, and for a certificate that proves nothing if there is no token.
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
