import type { IncomingHttpHeaders } from "node:http";
import { badRequest } from "../errors/status-error.js";
import { accessDenied } from "./rbac/access.js";
import type { Authorizer } from "./rbac/authorizer.js";
import type { AccessAttributes } from "./rbac/policy-rule.js";
import { ANONYMOUS, authenticatedUser, MASTERS, serviceAccountOf, type UserInfo } from "./user.js";

const EXTRA = "impersonate-extra-";
const AUTHENTICATION = "authentication.k8s.io";
// Only who may impersonate without constraints may be one of the administrators.
const AS_MASTER: AccessAttributes = {
  verb: "impersonate:user-info",
  group: AUTHENTICATION,
  resource: "groups",
  subresource: "",
  namespace: "",
  name: MASTERS,
};

/**
 * Returns the user that a request is made for: who sends it, or who its `Impersonate-` headers name.
 *
 * https://kubernetes.io/docs/reference/access-authn-authz/user-impersonation/
 *
 * @throws 400 for groups or a uid without a name, 403 if the sender may not impersonate that user.
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

// As Go prints a slice.
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

// Both the kind of user and what is done as them have to be allowed: KEP-5284, on by default since 1.36.
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

// Node joins repeated headers that it does not know; groups have no commas.
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
