import type { Secrets } from "./secrets.js";
import type { Registry } from "../registry/registry.js";
import { Authenticator } from "./authenticator.js";
import { Authorizer } from "./rbac/authorizer.js";
import type { StaticUser } from "./tokens/token-file.js";
import { ServiceAccountTokens } from "./tokens/service-account-tokens.js";

/** Who the users of a server are, and what they may do. */
export interface Identity {
  readonly tokens: ServiceAccountTokens;
  readonly authenticator: Authenticator;
  readonly authorizer: Authorizer;
}

/** Makes what knows the users of a server whose objects the registry has. */
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
