// Who may scrape: whoever has a token that the API server knows and may `get` the path (as controller-runtime's authentication filter).
import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { findError, isApiError } from "../../base/errors.js";
import type { ApiClient } from "../../client/api-client.js";
import { review } from "../access-review.js";
import { textAnswer, type EndpointAnswer } from "../http/http-endpoint.js";

// How long a decision holds. Prometheus asks every 15 to 60 s.
const KEPT_MS = 60_000;
const MAX_KEPT = 1_000;
const REVIEW_TIMEOUT_MS = 5_000;

const UNKNOWN = textAnswer(401, "unauthorized: a bearer token of the cluster is needed");
const FORBIDDEN = textAnswer(403, "forbidden: the token may not get this path");

/**
 * Creates what asks the API server who may get a path, and remembers the answers for a minute. It returns the refusal; undefined for whoever may
 * get the path. It throws if the API server does not answer. The client may be absent until the operator has found its API server; no fence may
 * hold it back.
 */
export function createScrapeAuthentication(clientOf: () => Pick<ApiClient, "create"> | undefined) {
  const answers = new Map<string, { readonly answer: EndpointAnswer | undefined; readonly until: number }>();
  return async (path: string, { headers }: Pick<IncomingMessage, "headers">): Promise<EndpointAnswer | undefined> => {
    const token = /^Bearer ([^\s]+)$/i.exec(headers.authorization ?? "")?.[1];
    if (token === undefined) return UNKNOWN;
    // The token itself is not kept.
    const key = `${createHash("sha256").update(token).digest("hex")} ${path}`;
    const kept = answers.get(key);
    if (kept !== undefined && kept.until > performance.now()) return kept.answer;
    const client = clientOf();
    if (client === undefined) throw new Error("there is no connection to the API server yet");
    const answer = await refusalOf(client, path, token);
    if (answers.size >= MAX_KEPT) answers.clear();
    answers.set(key, { answer, until: performance.now() + KEPT_MS });
    return answer;
  };
}

const NEEDED = [
  { group: "authentication.k8s.io", resource: "tokenreviews" },
  { group: "authorization.k8s.io", resource: "subjectaccessreviews" },
];

/** Throws an error that names the rights that the operator lacks to authenticate scrapes; an API server that gives no answer passes. */
export async function checkScrapeRights(client: Pick<ApiClient, "create">, signal: AbortSignal): Promise<void> {
  const isAllowed = async (right: (typeof NEEDED)[number]) => {
    const spec = { resourceAttributes: { verb: "create", ...right } };
    const answer = await review(client, "ownAccess", { spec, signal }).catch((error: unknown) => {
      if (isApiError(error) || findError(error, "ConnectionError") !== undefined) return undefined;
      throw error;
    });
    return answer?.allowed !== false;
  };
  const answers = await Promise.all(NEEDED.map(isAllowed));
  const missing = NEEDED.filter((_, index) => answers[index] === false);
  if (missing.length === 0) return;
  const rights = missing.map(({ group, resource }) => `create ${resource}.${group}`);
  throw new Error(
    `metricsAuthentication: the operator may not ${rights.join(" and ")}, so every scrape would fail; bind its ServiceAccount to ClusterRole ` +
      "system:auth-delegator, or install with deploy/metrics-authentication (metricsAuthentication.enabled of the chart)",
  );
}

async function refusalOf(
  client: Pick<ApiClient, "create">,
  path: string,
  token: string,
): Promise<EndpointAnswer | undefined> {
  const ask = (about: "token" | "access", spec: object) =>
    review(client, about, { spec, signal: AbortSignal.timeout(REVIEW_TIMEOUT_MS) });
  const identity = await ask("token", { token });
  if (identity?.authenticated !== true || identity.user === undefined) return UNKNOWN;
  const { username: user, uid, groups, extra } = identity.user;
  const access = await ask("access", { user, uid, groups, extra, nonResourceAttributes: { path, verb: "get" } });
  return access?.allowed === true ? undefined : FORBIDDEN;
}
