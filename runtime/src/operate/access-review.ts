// Access reviews: the operator's own permissions for its Lease, and authorization of metrics scrapes.
import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { findError, isApiError } from "../base/errors.js";
import { type KubernetesObject, type ObjectRef, builtinKindOf } from "../base/kubernetes-object.js";
import type { ApiClient } from "../client/api-client.js";
import { type EndpointAnswer, textAnswer } from "./http-endpoint.js";
import { LEASE } from "./lease-lock.js";

interface Review extends KubernetesObject {
  readonly spec: object;
  readonly status?: {
    readonly authenticated?: boolean;
    readonly allowed?: boolean;
    readonly user?: { readonly username?: string; readonly [fact: string]: unknown };
  };
}

const reviewOf = (group: string, kind: string) =>
  builtinKindOf<Review>({ group, kind, plural: `${kind.toLowerCase()}s`, scope: "Cluster" });

const REVIEWS = {
  token: reviewOf("authentication.k8s.io", "TokenReview"),
  access: reviewOf("authorization.k8s.io", "SubjectAccessReview"),
  ownAccess: reviewOf("authorization.k8s.io", "SelfSubjectAccessReview"),
};

async function review(
  client: Pick<ApiClient, "create">,
  about: keyof typeof REVIEWS,
  { spec, signal }: { readonly spec: object; readonly signal: AbortSignal },
): Promise<Review["status"]> {
  return (await client.create({ definition: REVIEWS[about] }, { metadata: { name: "" }, spec }, { signal })).status;
}

const LEASE_VERBS = ["get", "watch", "create", "update"];
// The cluster does not serve access reviews to this identity: forbidden, not found, or method not allowed.
const UNANSWERED = [403, 404, 405];

/**
 * Throws an error that lists the permissions that the operator lacks for the Lease (JOSDK's LeaderElectionManager). Passes if the API server does not
 * serve access reviews to this identity.
 */
export async function checkLeasePermissions(
  client: Pick<ApiClient, "create">,
  { name, namespace }: Required<ObjectRef>,
  signal: AbortSignal,
): Promise<void> {
  const isAllowed = async (verb: string) => {
    const resource = { namespace, verb, group: LEASE.group, resource: LEASE.plural };
    // RBAC cannot restrict create requests by resourceName.
    const resourceAttributes = verb === "create" ? resource : { ...resource, name };
    const spec = { resourceAttributes };
    const answer = await review(client, "ownAccess", { spec, signal }).catch((error: unknown) => {
      if (UNANSWERED.some((code) => isApiError(error, code))) return undefined;
      throw error;
    });
    return answer?.allowed !== false;
  };
  const answers = await Promise.all(LEASE_VERBS.map(isAllowed));
  const missing = LEASE_VERBS.filter((_, index) => answers[index] === false);
  if (missing.length === 0) return;
  throw new Error(
    `leader election needs to ${new Intl.ListFormat("en-GB").format(missing)} ${LEASE.plural}.${LEASE.group} in namespace "${namespace}" (Lease "${name}"), which the ` +
      "identity of this operator may not; grant it by a Role, or turn leader election off (leaderElection: false)",
  );
}

// How long a decision is cached. Prometheus scrapes every 15 to 60 s.
const DECISION_MS = 60_000;
const MAX_DECISIONS = 1_000;
const REVIEW_TIMEOUT_MS = 5_000;

const UNAUTHENTICATED = textAnswer(401, "unauthorized: a bearer token of the cluster is needed");
const FORBIDDEN = textAnswer(403, "forbidden: the token may not get this path");

/**
 * Creates the authentication filter of metrics scrapes, as controller-runtime does: a TokenReview, then a SubjectAccessReview for `get` of the path.
 * Decisions are cached for a minute. The filter returns the response to a rejected request, or undefined if the request is allowed; it throws if the
 * API server does not respond. `clientOf` may return undefined until the operator has connected; its client must not check the write fence.
 */
export function createScrapeAuthentication(clientOf: () => Pick<ApiClient, "create"> | undefined) {
  const answers = new Map<string, { readonly answer: EndpointAnswer | undefined; readonly until: number }>();
  return async (path: string, { headers }: Pick<IncomingMessage, "headers">): Promise<EndpointAnswer | undefined> => {
    const token = /^Bearer ([^\s]+)$/i.exec(headers.authorization ?? "")?.[1];
    if (token === undefined) return UNAUTHENTICATED;
    // Keep a hash in memory instead of the token.
    const key = `${createHash("sha256").update(token).digest("hex")} ${path}`;
    const kept = answers.get(key);
    if (kept !== undefined && kept.until > performance.now()) return kept.answer;
    const client = clientOf();
    if (client === undefined) throw new Error("there is no connection to the API server yet");
    const answer = await scrapeRefusalOf(client, path, token);
    if (answers.size >= MAX_DECISIONS) answers.clear();
    answers.set(key, { answer, until: performance.now() + DECISION_MS });
    return answer;
  };
}

const SCRAPE_RIGHTS = [
  { group: "authentication.k8s.io", resource: "tokenreviews" },
  { group: "authorization.k8s.io", resource: "subjectaccessreviews" },
];

/** Throws an error that lists the permissions that the operator lacks to authenticate scrapes. Passes if the API server does not respond. */
export async function checkScrapeRights(client: Pick<ApiClient, "create">, signal: AbortSignal): Promise<void> {
  const isAllowed = async (right: (typeof SCRAPE_RIGHTS)[number]) => {
    const spec = { resourceAttributes: { verb: "create", ...right } };
    const answer = await review(client, "ownAccess", { spec, signal }).catch((error: unknown) => {
      if (isApiError(error) || findError(error, "ConnectionError") !== undefined) return undefined;
      throw error;
    });
    return answer?.allowed !== false;
  };
  const answers = await Promise.all(SCRAPE_RIGHTS.map(isAllowed));
  const missing = SCRAPE_RIGHTS.filter((_, index) => answers[index] === false);
  if (missing.length === 0) return;
  const rights = missing.map(({ group, resource }) => `create ${resource}.${group}`);
  throw new Error(
    `metricsAuthentication: the operator may not ${rights.join(" and ")}, so every scrape would fail; bind its ServiceAccount to ClusterRole ` +
      "system:auth-delegator, or install with deploy/metrics-authentication (metricsAuthentication.enabled of the chart)",
  );
}

async function scrapeRefusalOf(
  client: Pick<ApiClient, "create">,
  path: string,
  token: string,
): Promise<EndpointAnswer | undefined> {
  const ask = (about: "token" | "access", spec: object) =>
    review(client, about, { spec, signal: AbortSignal.timeout(REVIEW_TIMEOUT_MS) });
  const identity = await ask("token", { token });
  if (identity?.authenticated !== true || identity.user === undefined) return UNAUTHENTICATED;
  const { username: user, uid, groups, extra } = identity.user;
  const access = await ask("access", { user, uid, groups, extra, nonResourceAttributes: { path, verb: "get" } });
  return access?.allowed === true ? undefined : FORBIDDEN;
}
