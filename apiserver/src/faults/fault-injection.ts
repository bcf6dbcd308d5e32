/** Fault injection for tests of clients: on request, the server fails in ways in which a real API server fails only in an outage. */
import { sleep } from "../clock.js";
import { checkNames, hintOf } from "../did-you-mean.js";
import { statusError, unauthorized } from "../errors/status-error.js";
import { attributesOf } from "../http/endpoint.js";
import { renderFailure } from "../http/representation.js";
import { type Answer, type ApiRequest, type StreamAnswer, verbOf } from "../http/request-info.js";
import { accessDenied } from "../identity/authorizer.js";
import type { StreamSink } from "../read/watch.js";

/** A fault and the requests that it affects. A request must match all members of the scope. */
export interface FaultRule extends FaultScope {
  /** Verbs of Kubernetes: get, list, watch, create, update, patch, delete, deletecollection. */
  verb?: string | readonly string[];
  /** Number of matching requests that are served normally before the first one is affected. Default: 0. */
  after?: number;
  /** Number of requests to affect. Default: every request until the rule is removed. */
  times?: number;
  /** Delay before the request is handled, in milliseconds. */
  delayMs?: number;
  /** Responds with this instead of handling the request. */
  answer?: FaultAnswer;
  /** Responds with 403 as RBAC does, to requests for resources. Open watches continue, as on a real API server. */
  forbid?: boolean;
  /** Never responds. */
  hang?: boolean;
  /** Breaks the connection without handling the request. */
  disconnect?: boolean;
  /** Handles the request, then breaks the connection without a response: the client cannot know whether a write took effect. */
  loseAnswer?: boolean;
  /** Breaks the connection in the middle of the response. Watches are not affected; see `cutWatches`. */
  cutAnswer?: boolean;
  /**
   * Serves stale data: lists with `resourceVersion=0` or a version not newer than this rule, and watches from `resourceVersion=0`, get the state at
   * the time when the rule was added.
   */
  stale?: boolean;
}

/** A response that replaces that of the server. */
export interface FaultAnswer {
  status: number;
  reason?: string;
  message?: string;
  retryAfterSeconds?: number;
  /** The response body, instead of a Status. */
  body?: string;
  contentType?: string;
}

/** An active rule, as returned by `add`. */
export interface ActiveFault {
  /** Number of requests that it has affected. */
  readonly hits: number;
  remove(): void;
}

/** A disturbance of open and new watches, until it is released. */
export interface DisturbedWatches extends Disposable {
  release(): void;
}

/** Injects faults into a server. */
export interface FaultControl {
  /** Adds a rule. If several rules match a request, the oldest applies. */
  add(rule: FaultRule): ActiveFault;
  /** Removes all faults: rules, disturbed watches, rejected and replaced tokens, and the clock shift. */
  clear(): void;
  /** Rejects every request with 401, as if all credentials were invalid, unless a rule affects it; `false` ends it. */
  refuseTokens(refuse: boolean): void;
  /** Replaces the token of the administrator, as if the previous one had expired. Tokens of other users stay valid, and open watches continue. */
  replaceToken(token: string): void;
  /** Holds back the events of watches until the release, which then delivers all of them in order. */
  holdWatches(scope?: FaultScope): DisturbedWatches;
  /**
   * Makes watches stale: they stay open, but their events are lost. A watch that was silenced stays silent after the release; only watches opened
   * afterwards deliver events.
   */
  silenceWatches(scope?: FaultScope): DisturbedWatches;
  /** Delivers every event twice. */
  duplicateEvents(scope?: FaultScope): DisturbedWatches;
  /** Swaps each pair of consecutive events. Bookmarks keep their position. */
  reorderEvents(scope?: FaultScope): DisturbedWatches;
  /** Breaks the connections of watches in the middle of a line: at once, or within the next event. Returns the number of watches. */
  cutWatches(scope?: FaultScope & { at?: "now" | "next-event" }): number;
  /** Ends watches normally, as an API server does after a timeout. Returns the number of watches. */
  endWatches(scope?: FaultScope): number;
  /** Ends watches with an ERROR event with code 410 (Expired). Returns the number of watches. */
  expireWatches(scope?: FaultScope): number;
  /** Compacts the history of one kind or of all kinds: a watch from any resourceVersion that a client has seen, even the latest, gets 410. */
  compact(of?: { kind?: string }): void;
  /** Shifts the clock of the server, for new objects, managedFields, tokens, and responses. 0 ends the shift. */
  shiftClock(aheadMs: number): void;
  /** Breaks every connection and, after `downMs`, listens again on the same port. The objects are kept. */
  restart(options?: { downMs?: number }): Promise<void>;
}

interface Rule {
  rule: FaultRule;
  /** The store revision when the rule was added. */
  revision: number;
  /** Number of matching requests that were served normally because of `after`. */
  passed: number;
  hits: number;
}

/** The active rules. */
export class FaultRules {
  #rules: Rule[] = [];
  #refusesTokens = false;
  #token: string | undefined;
  #aheadMs = 0;

  /** How far the clock of the server is ahead, in milliseconds. */
  get aheadMs(): number {
    return this.#aheadMs;
  }

  /** The token that replaces that of the administrator, if any. */
  get token(): string | undefined {
    return this.#token;
  }

  get refusesTokens(): boolean {
    return this.#refusesTokens;
  }

  /** Adds a rule. `revision` is the current revision of the store, for stale responses. */
  add(rule: FaultRule, revision: number): ActiveFault {
    checkRule(rule);
    const active: Rule = { rule, revision, passed: 0, hits: 0 };
    this.#rules.push(active);
    return {
      get hits() {
        return active.hits;
      },
      remove: () => void (this.#rules = this.#rules.filter((other) => other !== active)),
    };
  }

  clear(): void {
    this.#rules = [];
    this.#refusesTokens = false;
    this.#token = undefined;
    this.#aheadMs = 0;
  }

  shiftClock(aheadMs: number): void {
    this.#aheadMs = aheadMs;
  }

  refuseTokens(refuse: boolean): void {
    this.#refusesTokens = refuse;
  }

  replaceToken(token: string): void {
    this.#token = token;
  }

  /** Returns the rule that applies to a request and counts the request; undefined if there is none. */
  take(asked: AskedFor, verb: string): { rule: FaultRule; revision: number } | undefined {
    for (const active of this.#rules) {
      const { rule, hits } = active;
      if (hits >= (rule.times ?? Infinity) || !matches(rule, asked, verb)) continue;
      if (active.passed < (rule.after ?? 0)) {
        active.passed++;
        continue;
      }
      active.hits++;
      return active;
    }
    return undefined;
  }
}

const SCOPE: Record<keyof FaultScope, true> = { path: true, kind: true, namespace: true, user: true };
const RULE: Record<keyof FaultRule, true> = {
  ...{ verb: true, ...SCOPE, after: true, times: true, delayMs: true, answer: true, forbid: true },
  ...{ hang: true, disconnect: true, loseAnswer: true, cutAnswer: true, stale: true },
};
const VERBS = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];

/** Throws an Error for an unknown member or verb. */
export function checkRule(rule: FaultRule): void {
  checkNames(rule, { known: Object.keys(RULE), what: "field of a fault rule" });
  for (const verb of rule.verb === undefined ? [] : [rule.verb].flat()) {
    if (VERBS.includes(verb)) continue;
    throw new Error(
      `unknown verb ${JSON.stringify(verb)} in a fault rule: must be one of ${VERBS.join(", ")}${hintOf(verb, VERBS)}`,
    );
  }
}

/** Throws an Error for an unknown member. */
export function checkScope(scope: FaultScope): void {
  checkNames(scope, { known: Object.keys(SCOPE), what: "field of a fault scope" });
}

function matches({ verb: wanted, ...scope }: FaultRule, asked: AskedFor, verb: string): boolean {
  const isVerb = wanted === undefined || (typeof wanted === "string" ? wanted === verb : wanted.includes(verb));
  return isVerb && isInScope(scope, asked);
}

/** The requests that a fault affects. All members must match. */
export interface FaultScope {
  /** A substring of the path, or a regular expression. */
  path?: string | RegExp;
  /** The kind of the request: `ConfigMap`, or with group and version `apps/v1/Deployment`. */
  kind?: string;
  /** The namespace of the request. Requests across all namespaces do not match. */
  namespace?: string;
  /** The name of the user, for example `system:serviceaccount:web:operator`. */
  user?: string;
}

/** The attributes of a request that scopes match. Expensive ones are computed on demand. */
export interface AskedFor {
  readonly path: string;
  readonly namespace: string | undefined;
  /** Such as `v1/ConfigMap`; undefined if the path has no kind. */
  readonly kind: () => string | undefined;
  /** Undefined if the token is invalid. */
  readonly user: () => string | undefined;
}

/** Reports whether a request matches a scope. */
export function isInScope({ path, kind, namespace, user }: FaultScope, asked: AskedFor): boolean {
  if (namespace !== undefined && namespace !== asked.namespace) return false;
  if (path !== undefined && !(typeof path === "string" ? asked.path.includes(path) : path.test(asked.path)))
    return false;
  if (kind !== undefined && !isKind(kind, asked.kind())) return false;
  return user === undefined || user === asked.user();
}

function isKind(wanted: string, actual: string | undefined): boolean {
  return actual !== undefined && (actual === wanted || actual.slice(actual.lastIndexOf("/") + 1) === wanted);
}

/** Thrown instead of a response; the listener then breaks the connection. */
class ConnectionLost extends Error {
  override readonly name = "ConnectionLost";
}

// An injected 403 does not come from RBAC, so it names a fixed user.
const FORBIDDEN_USER = { username: "admin", groups: [] };

/** Handles a request and applies the fault rules. */
export async function answerWithFaults(
  rules: FaultRules,
  request: ApiRequest,
  { asked, serve }: { asked: AskedFor; serve: (request: ApiRequest) => Promise<Answer | StreamAnswer> },
): Promise<Answer | StreamAnswer> {
  const verb = verbOf(request);
  const active = rules.take(asked, verb);
  if (active === undefined)
    return rules.refusesTokens ? renderFailure(unauthorized(), { isPretty: false }) : serve(request);
  const { rule, revision } = active;
  if (rule.delayMs !== undefined) await sleep(rule.delayMs);
  if (rule.hang === true) return new Promise<never>(() => undefined);
  if (rule.disconnect === true) throw new ConnectionLost("a fault rule closed the connection");
  if (rule.loseAnswer === true) {
    await serve(request);
    throw new ConnectionLost("a fault rule closed the connection after the request was handled");
  }
  if (rule.forbid === true && request.target !== undefined)
    return renderFailure(accessDenied(FORBIDDEN_USER, attributesOf(request)), { isPretty: false });
  if (rule.answer !== undefined) return faultAnswer(rule.answer);
  const answer = await (rule.stale === true ? answerStale(request, { verb, revision, serve }) : serve(request));
  return rule.cutAnswer === true && answer.kind === "answer" ? { ...answer, isCut: true } : answer;
}

const REASONS: Record<number, string> = {
  400: "BadRequest",
  401: "Unauthorized",
  403: "Forbidden",
  404: "NotFound",
  405: "MethodNotAllowed",
  409: "Conflict",
  410: "Expired",
  422: "Invalid",
  429: "TooManyRequests",
  500: "InternalError",
  503: "ServiceUnavailable",
  504: "Timeout",
};

function faultAnswer(fault: FaultAnswer): Answer {
  const { status, message = `fault: ${fault.status}`, retryAfterSeconds, body } = fault;
  const reason = fault.reason ?? REASONS[status];
  const details = retryAfterSeconds === undefined ? {} : { details: { retryAfterSeconds } };
  const failure = statusError({ code: status, message, ...(reason === undefined ? {} : { reason }), ...details });
  const answer = renderFailure(failure, { isPretty: false });
  return body === undefined ? answer : { ...answer, body, contentType: fault.contentType ?? answer.contentType };
}

// Serves past state to requests that accept any version, as an API server with a lagging watch cache does.

type Serve = (request: ApiRequest) => Promise<Answer | StreamAnswer>;

interface ListBody {
  kind: string;
  apiVersion: string;
  metadata: { resourceVersion: string };
  items: object[];
}

/** Serves a list, or a watch that starts with the state, as of a revision; handles all other requests normally. */
async function answerStale(
  request: ApiRequest,
  { verb, revision, serve }: { verb: string; revision: number; serve: Serve },
): Promise<Answer | StreamAnswer> {
  if (!allowsRevision(request.query, { verb, revision })) return serve(request);
  const list = await serve(listAt(request, revision));
  if (verb !== "watch" || list.kind !== "answer" || list.status !== 200) return list;
  const since = new URLSearchParams(request.query);
  since.set("resourceVersion", String(revision));
  for (const name of ["sendInitialEvents", "resourceVersionMatch"]) since.delete(name);
  const watch = await serve({ ...request, query: since });
  if (watch.kind !== "stream") return watch;
  const lines = initialLines(
    JSON.parse(String(list.body)) as ListBody,
    request.query.get("sendInitialEvents") === "true",
  );
  return {
    ...watch,
    open(sink: StreamSink) {
      sink.sendLazily(lines);
      return watch.open(sink);
    },
  };
}

// "0" accepts any version; any other resourceVersion is a lower bound.
function allowsRevision(query: URLSearchParams, { verb, revision }: { verb: string; revision: number }): boolean {
  const version = query.get("resourceVersion") ?? "";
  if (verb === "watch") return version === "0";
  if (verb !== "list" || version === "" || query.get("resourceVersionMatch") === "Exact") return false;
  return query.get("continue") === null && Number(version) <= revision;
}

function listAt(request: ApiRequest, revision: number): ApiRequest {
  const query = new URLSearchParams();
  for (const name of ["labelSelector", "fieldSelector"]) {
    const value = request.query.get(name);
    if (value !== null) query.set(name, value);
  }
  query.set("resourceVersion", String(revision));
  query.set("resourceVersionMatch", "Exact");
  return { ...request, query };
}

function initialLines({ kind, apiVersion, metadata, items }: ListBody, endsInitialEvents: boolean): Buffer[] {
  const head = { kind: kind.replace(/List$/, ""), apiVersion };
  const lines = items.map((item) => lineOf("ADDED", { ...head, ...item }));
  if (!endsInitialEvents) return lines;
  const { resourceVersion } = metadata;
  const annotations = { "k8s.io/initial-events-end": "true" };
  return [...lines, lineOf("BOOKMARK", { ...head, metadata: { resourceVersion, annotations } })];
}

function lineOf(type: string, object: object): Buffer {
  return Buffer.from(`${JSON.stringify({ type, object })}\n`);
}
