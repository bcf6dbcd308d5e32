// Who may scrape: whoever has a token that the API server knows and may `get` the path (as controller-runtime's authentication filter).
import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { KubernetesObject } from "../../base/kubernetes-object.js";
import { builtinKindOf, type ResourceDefinition } from "../../base/resource-definition.js";
import type { ApiClient } from "../../client/api-client.js";
import type { EndpointAnswer } from "../http/http-endpoint.js";

interface Review extends KubernetesObject {
  readonly spec: object;
  readonly status?: {
    readonly authenticated?: boolean;
    readonly allowed?: boolean;
    readonly user?: {
      readonly username?: string;
      readonly uid?: string;
      readonly groups?: string[];
      readonly extra?: object;
    };
  };
}

const TOKEN_REVIEW = builtinKindOf<Review>({
  ...{ group: "authentication.k8s.io", kind: "TokenReview", plural: "tokenreviews" },
  scope: "Cluster",
});
const ACCESS_REVIEW = builtinKindOf<Review>({
  ...{ group: "authorization.k8s.io", kind: "SubjectAccessReview", plural: "subjectaccessreviews" },
  scope: "Cluster",
});

// What was granted or refused holds for so long; Prometheus asks every 15 to 60 s.
const KEPT_MS = 60_000;
const MAX_KEPT = 1_000;
const REVIEW_TIMEOUT_MS = 5_000;

const UNKNOWN: EndpointAnswer = { status: 401, body: "401 unauthorized: a bearer token of the cluster is needed\n" };
const FORBIDDEN: EndpointAnswer = { status: 403, body: "403 forbidden: the token may not get this path\n" };

/** Asks the API server who may get a path, and remembers the answers for a minute. */
export class ScrapeAuthentication {
  readonly #client: () => Pick<ApiClient, "create"> | undefined;
  readonly #answers = new Map<string, { readonly answer: EndpointAnswer | undefined; readonly until: number }>();

  /** The client may be absent until the operator has found its API server; no fence may hold it back. */
  constructor(client: () => Pick<ApiClient, "create"> | undefined) {
    this.#client = client;
  }

  /** Returns the refusal; undefined for whoever may get the path. Throws if the API server does not answer. */
  async refusalOf(path: string, { headers }: Pick<IncomingMessage, "headers">): Promise<EndpointAnswer | undefined> {
    const token = /^Bearer ([^\s]+)$/i.exec(headers.authorization ?? "")?.[1];
    if (token === undefined) return UNKNOWN;
    // The token itself is not kept.
    const key = `${createHash("sha256").update(token).digest("hex")} ${path}`;
    const kept = this.#answers.get(key);
    if (kept !== undefined && kept.until > performance.now()) return kept.answer;
    const answer = await this.#review(path, token);
    if (this.#answers.size >= MAX_KEPT) this.#answers.clear();
    this.#answers.set(key, { answer, until: performance.now() + KEPT_MS });
    return answer;
  }

  async #review(path: string, token: string): Promise<EndpointAnswer | undefined> {
    const client = this.#client();
    if (client === undefined) throw new Error("there is no connection to the API server yet");
    const ask = async (definition: ResourceDefinition<Review>, spec: object) => {
      const signal = AbortSignal.timeout(REVIEW_TIMEOUT_MS);
      return (await client.create({ definition }, { metadata: { name: "" }, spec }, { signal })).status;
    };
    const identity = await ask(TOKEN_REVIEW, { token });
    if (identity?.authenticated !== true || identity.user === undefined) return UNKNOWN;
    const { username: user, uid, groups, extra } = identity.user;
    const nonResourceAttributes = { path, verb: "get" };
    const access = await ask(ACCESS_REVIEW, { user, uid, groups, extra, nonResourceAttributes });
    return access?.allowed === true ? undefined : FORBIDDEN;
  }
}
