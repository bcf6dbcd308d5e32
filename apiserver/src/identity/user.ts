import type { JsonObject } from "../json.js";

/** Who asks, in the form of Kubernetes' UserInfo. */
export interface UserInfo {
  readonly username: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

/** The group of all who have proven to be who they are. */
export const AUTHENTICATED = "system:authenticated";
const SERVICE_ACCOUNT = "system:serviceaccount:";

/** The group that may do everything. */
export const MASTERS = "system:masters";

/** The user that the first token belongs to. */
export const ADMIN_USER: UserInfo = { username: "gen-operator-admin", groups: [MASTERS, AUTHENTICATED] };

/** Whoever shows no credentials. */
export const ANONYMOUS: UserInfo = { username: "system:anonymous", groups: ["system:unauthenticated"] };

/** Returns a user who has proven to be who they are: with the groups of all, and those of all service accounts for one of them. */
export function authenticatedUser(username: string, groups: readonly string[] = []): UserInfo {
  const account = serviceAccountOf(username);
  const ofAccount =
    account === undefined ? [] : ["system:serviceaccounts", `system:serviceaccounts:${account.namespace}`];
  return { username, groups: [...new Set([...groups, ...ofAccount, AUTHENTICATED])] };
}

/** Returns the name of the user that a service account is. */
export function serviceAccountUsername({ namespace, name }: { namespace: string; name: string }): string {
  return `${SERVICE_ACCOUNT}${namespace}:${name}`;
}

/** Returns the service account that a user is; undefined for other users. */
export function serviceAccountOf(username: string): { namespace: string; name: string } | undefined {
  if (!username.startsWith(SERVICE_ACCOUNT)) return undefined;
  const [namespace = "", name = "", ...more] = username.slice(SERVICE_ACCOUNT.length).split(":");
  return namespace === "" || name === "" || more.length > 0 ? undefined : { namespace, name };
}

/** Returns a user as an object of an answer. */
export function userObject({ username, uid, groups, extra }: UserInfo): JsonObject {
  return {
    username,
    ...(uid === undefined ? {} : { uid }),
    ...(groups.length === 0 ? {} : { groups: [...groups] }),
    ...(extra === undefined ? {} : { extra: Object.fromEntries(Object.entries(extra).map(([k, v]) => [k, [...v]])) }),
  };
}
