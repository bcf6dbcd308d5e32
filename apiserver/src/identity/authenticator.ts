import { randomBytes } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { unauthorized } from "../errors/status-error.js";
import type { Secrets } from "./secrets.js";
import type { ServiceAccountTokens } from "./service-account-tokens.js";
import { ADMIN_USER, ANONYMOUS, type UserInfo } from "./user.js";

const EXTRA_SPACE = "the provided Authorization header contains extra space before the bearer token, and is ignored";

const TOKEN_OF = "token-of/";
const USER_OF = "user-of/";

/** Knows users by their tokens: those that it handed out, and those of service accounts. */
export class Authenticator {
  readonly #secrets: Secrets;
  readonly #tokens: ServiceAccountTokens;
  readonly #adminToken: string;

  constructor(options: { adminToken: string; tokens: ServiceAccountTokens; secrets: Secrets }) {
    this.#adminToken = options.adminToken;
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
    const user = this.#secrets.get(USER_OF + token);
    return user === undefined ? this.#tokens.userOf(token) : (JSON.parse(user) as UserInfo);
  }

  /** Returns who sends a request; undefined for a token of nobody. */
  userOfRequest(headers: IncomingHttpHeaders, replaced?: string): UserInfo | undefined {
    try {
      return this.authenticate(headers, { replaced, warnings: [] });
    } catch {
      return undefined;
    }
  }

  /**
   * Returns who sends a request: who shows no bearer token is anonymous.
   *
   * @throws 401 for a token of nobody.
   */
  authenticate(headers: IncomingHttpHeaders, options: { replaced?: string | undefined; warnings: string[] }): UserInfo {
    const given = /^bearer( +)(\S+) *$/i.exec(headers.authorization ?? "");
    if (given === null) return ANONYMOUS;
    const [, space = "", token = ""] = given;
    if (space.length > 1) {
      options.warnings.push(EXTRA_SPACE);
      return ANONYMOUS;
    }
    const user = this.userOf(token, options.replaced);
    if (user === undefined) throw unauthorized();
    return user;
  }
}
