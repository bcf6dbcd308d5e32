/** What real servers do only when something is wrong with them, on request: for tests of clients. */
import { sleep } from "../clock.js";
import { checkNames, hintOf } from "../did-you-mean.js";
import { statusError, unauthorized } from "../errors/status-error.js";
import { attributesOf } from "../http/endpoint.js";
import { renderFailure } from "../http/representation.js";
import { type Answer, type ApiRequest, type StreamAnswer, verbOf } from "../http/request-info.js";
import { accessDenied } from "../identity/authorizer.js";
import type { StreamSink } from "../read/watch.js";

/** What happens to requests that match; every member that says which requests must match. */
export interface FaultRule extends FaultScope {
  /** Verbs in the words of Kubernetes: get, list, watch, create, update, patch, delete, deletecollection. */
  verb?: string | readonly string[];
  /** How many requests that match are answered as if there were no rule, before the first one that is affected. Default: 0. */
  after?: number;
  /** How many requests are affected; without it every one until the rule is removed. */
  times?: number;
  /** Waits before the request is answered. */
  delayMs?: number;
  /** Answers instead of the server. */
  answer?: FaultAnswer;
  /** Refuses with 403 in the words of RBAC; open watches go on, as they do on a real server. */
  forbid?: boolean;
  /** Never answers. */
  hang?: boolean;
  /** Breaks the connection instead of an answer. */
  disconnect?: boolean;
  /** Answers, but breaks the connection after the write was done, so that the client cannot know. */
  loseAnswer?: boolean;
  /** Breaks the connection in the middle of the answer. */
  cutAnswer?: boolean;
  /** Answers lists for which any version will do (`resourceVersion=0`, or one from before) with the state of when the rule was added. */
  stale?: boolean;
}

/** An answer that the server would not have given. */
export interface FaultAnswer {
  status: number;
  reason?: string;
  message?: string;
  retryAfterSeconds?: number;
  /** Sent as it is instead of a Status. */
  body?: string;
  contentType?: string;
}

/** A rule in force. */
export interface ActiveFault {
  /** How many requests it has met. */
  readonly hits: number;
  remove(): void;
}

/** Watches that misbehave, open ones and new ones, until they are released. */
export interface DisturbedWatches extends Disposable {
  release(): void;
}

/** Makes a server misbehave. */
export interface FaultControl {
  /** Puts a rule in force; among several the oldest that matches acts. */
  add(rule: FaultRule): ActiveFault;
  /** Ends every fault: rules, disturbed watches, refused and replaced tokens, the shifted clock. */
  clear(): void;
  /** Refuses every token with 401 until told otherwise. */
  refuseTokens(refuse: boolean): void;
  /** Trusts this token alone, as when the one before has expired; open watches go on. */
  replaceToken(token: string): void;
  /** Keeps back what watches would tell, until it is released; then all of it is told, in order. */
  holdWatches(scope?: FaultScope): DisturbedWatches;
  /** Makes watches dead: they stay open, and what they would tell is lost. Those that were open then stay dead when it is released. */
  silenceWatches(scope?: FaultScope): DisturbedWatches;
  /** Tells every event twice. */
  duplicateEvents(scope?: FaultScope): DisturbedWatches;
  /** Tells every second event before the one that it follows; bookmarks stay where they are. */
  reorderEvents(scope?: FaultScope): DisturbedWatches;
  /** Breaks watches in the middle of a line: at once, or in the middle of their next event. Returns how many. */
  cutWatches(scope?: FaultScope & { at?: "now" | "next-event" }): number;
  /** Ends watches properly, as a real server does after a while. Returns how many. */
  endWatches(scope?: FaultScope): number;
  /** Ends watches with an event that says that their revision is too old (410). Returns how many. */
  expireWatches(scope?: FaultScope): number;
  /** Forgets the history, of one kind or of all: a watch from any revision that a client knows is too old. */
  compact(of?: { kind?: string }): void;
  /** Shifts the time of the server: of new objects and managed fields, of tokens, of its answers. 0 ends it. */
  shiftClock(aheadMs: number): void;
  /** Breaks every connection and listens again on the same port, after `downMs`; the objects stay. */
  restart(options?: { downMs?: number }): Promise<void>;
}

interface Rule {
  rule: FaultRule;
  /** Of when it was added. */
  revision: number;
  /** How many requests matched and were left alone, since the rule acts only after them. */
  passed: number;
  hits: number;
}

/** The rules in force. */
export class FaultRules {
  #rules: Rule[] = [];
  #refusesTokens = false;
  #token: string | undefined;
  #aheadMs = 0;

  /** How far the clock of the server is ahead. */
  get aheadMs(): number {
    return this.#aheadMs;
  }

  /** The token that is trusted instead of the first one, if there is one. */
  get token(): string | undefined {
    return this.#token;
  }

  get refusesTokens(): boolean {
    return this.#refusesTokens;
  }

  /** Puts a rule in force; `revision` is the present one, which stale answers are from. */
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

  /** Returns the rule that a request meets, and counts it. */
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

/** Throws an Error for a rule that no request could meet as it is meant: a member or verb that is not known. */
export function checkRule(rule: FaultRule): void {
  checkNames(rule, { known: Object.keys(RULE), what: "member of a fault rule" });
  for (const verb of rule.verb === undefined ? [] : [rule.verb].flat()) {
    if (VERBS.includes(verb)) continue;
    throw new Error(
      `unknown verb ${JSON.stringify(verb)} in a fault rule; known are ${VERBS.join(", ")}${hintOf(verb, VERBS)}`,
    );
  }
}

/** Throws an Error for a scope with a member that is not known. */
export function checkScope(scope: FaultScope): void {
  checkNames(scope, { known: Object.keys(SCOPE), what: "member of a fault" });
}

function matches({ verb: wanted, ...scope }: FaultRule, asked: AskedFor, verb: string): boolean {
  const isVerb = wanted === undefined || (typeof wanted === "string" ? wanted === verb : wanted.includes(verb));
  return isVerb && isInScope(scope, asked);
}

/** Which requests a fault is for: those for which every member holds. */
export interface FaultScope {
  /** A part of the path, or a pattern for it. */
  path?: string | RegExp;
  /** The kind that the path names: `ConfigMap`, or with its group and version `apps/v1/Deployment`. */
  kind?: string;
  /** The namespace that the path names; requests across namespaces are not affected. */
  namespace?: string;
  /** The user who asks, for example `system:serviceaccount:web:operator`. */
  user?: string;
}

/** A request as scopes see it; what costs something is looked up where a scope is about it. */
export interface AskedFor {
  readonly path: string;
  readonly namespace: string | undefined;
  /** `v1/ConfigMap`; undefined where the path names no kind. */
  readonly kind: () => string | undefined;
  /** Undefined if the token is not valid. */
  readonly user: () => string | undefined;
}

/** True if a fault is for a request. */
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

/** Says that a request gets no answer; the listener breaks its connection. */
class ConnectionLost extends Error {
  override readonly name = "ConnectionLost";
}

// An injected 403 names a fixed user, as it does not come from RBAC.
const FORBIDDEN_USER = { username: "admin", groups: [] };

/** Answers a request, unless a rule says otherwise. */
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
  if (rule.disconnect === true) throw new ConnectionLost("by a fault rule");
  if (rule.loseAnswer === true) {
    await serve(request);
    throw new ConnectionLost("by a fault rule, after the request was served");
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

// Answers from a moment of the past to those for whom any version will do, as an API server gives them whose cache is behind.

type Serve = (request: ApiRequest) => Promise<Answer | StreamAnswer>;

interface ListBody {
  kind: string;
  apiVersion: string;
  metadata: { resourceVersion: string };
  items: object[];
}

/** Answers a list, or a watch that begins with the state, as of a revision; everything else as it is. */
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

// Any version will do for 0; a version that the client has seen is a lower bound.
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
