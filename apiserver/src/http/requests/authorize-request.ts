import type { Decision } from "../../identity/rbac/authorizer.js";
import { accessDenied } from "../../identity/rbac/access.js";
import type { AccessAttributes } from "../../identity/rbac/policy-rule.js";
import type { Identity } from "../../identity/identity.js";
import { impersonate } from "../../identity/impersonate.js";
import type { UserInfo } from "../../identity/user.js";
import type { ApiRequest } from "../message.js";
import { verbOf } from "./request-verb.js";

/** Who sends a request, who it is made for, and what the roles say. */
export interface Authorized {
  readonly sender: UserInfo;
  readonly user: UserInfo;
  readonly decision: Decision;
}

/**
 * Returns who a request is made for, after `onDecision` was told of it.
 *
 * @throws 401 for credentials of nobody, 403 for what no role allows.
 */
export function authorizeRequest(
  { authenticator, authorizer }: Identity,
  request: ApiRequest,
  options: {
    replaced?: string | undefined;
    warnings: string[];
    onDecision?: ((authorized: Authorized) => void) | undefined;
  },
): UserInfo {
  const sender = authenticator.authenticate(request, options);
  const attributes = attributesOf(request);
  const user = impersonate(sender, { headers: request.headers, attributes }, authorizer);
  const decision = authorizer.decide(user, attributes);
  options.onDecision?.({ sender, user, decision });
  if (!decision.allowed) throw accessDenied(user, attributes);
  return user;
}

/** Returns what a request does, as roles name it. */
export function attributesOf(request: ApiRequest): AccessAttributes {
  const { target, method, path } = request;
  if (target === undefined) return { verb: method.toLowerCase(), path };
  const { group, plural, subresource = "", namespace, name } = target;
  // A Namespace is in itself.
  const isNamespace = group === "" && plural === "namespaces";
  return {
    verb: verbOf(request),
    group,
    resource: plural,
    subresource,
    namespace: namespace ?? (isNamespace ? (name ?? "") : ""),
    name: name ?? target.watchedName ?? nameOfSelector(request.query),
  };
}

// Who lists or watches one object by its name needs the right to that object alone.
function nameOfSelector(query: URLSearchParams): string {
  return /^metadata\.name={1,2}([^,!=]+)$/.exec(query.get("fieldSelector") ?? "")?.[1] ?? "";
}
