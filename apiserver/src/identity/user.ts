import type { JsonObject } from "../json.js";

/** A user, with the fields of Kubernetes' UserInfo. */
export interface UserInfo {
  readonly username: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

/** The group of all authenticated users. */
export const AUTHENTICATED = "system:authenticated";
const SERVICE_ACCOUNT = "system:serviceaccount:";

/** The group that bypasses authorization. */
export const MASTERS = "system:masters";

/** The user of the administrator's token. */
export const ADMIN_USER: UserInfo = { username: "gen-operator-admin", groups: [MASTERS, AUTHENTICATED] };

/** The user of requests without credentials. */
export const ANONYMOUS: UserInfo = { username: "system:anonymous", groups: ["system:unauthenticated"] };

/** Returns an authenticated user with its groups, including the groups of all ServiceAccounts if it is one. */
export function authenticatedUser(username: string, groups: readonly string[] = []): UserInfo {
  const account = serviceAccountOf(username);
  const ofAccount =
    account === undefined ? [] : ["system:serviceaccounts", `system:serviceaccounts:${account.namespace}`];
  return { username, groups: [...new Set([...groups, ...ofAccount, AUTHENTICATED])] };
}

/** Returns the username of a ServiceAccount. */
export function serviceAccountUsername({ namespace, name }: { namespace: string; name: string }): string {
  return `${SERVICE_ACCOUNT}${namespace}:${name}`;
}

/** Returns the ServiceAccount of a username; undefined for other users. */
export function serviceAccountOf(username: string): { namespace: string; name: string } | undefined {
  if (!username.startsWith(SERVICE_ACCOUNT)) return undefined;
  const [namespace = "", name = "", ...more] = username.slice(SERVICE_ACCOUNT.length).split(":");
  return namespace === "" || name === "" || more.length > 0 ? undefined : { namespace, name };
}

/** Returns a user as a UserInfo object. */
export function userObject({ username, uid, groups, extra }: UserInfo): JsonObject {
  return {
    username,
    ...(uid === undefined ? {} : { uid }),
    ...(groups.length === 0 ? {} : { groups: [...groups] }),
    ...(extra === undefined ? {} : { extra: Object.fromEntries(Object.entries(extra).map(([k, v]) => [k, [...v]])) }),
  };
}
