/** What real servers do only when something is wrong with them, on request: for tests of clients. */
import type { ApiRequest } from "../http/message.js";

/** What happens to requests that match; every member that says which requests must match. */
export interface FaultRule {
  /** Verbs in the words of Kubernetes: get, list, watch, create, update, patch, delete, deletecollection. */
  verb?: string | readonly string[];
  /** A part of the path, or a pattern for it. */
  path?: string | RegExp;
  /** The namespace that the path names; requests across namespaces are not affected. */
  namespace?: string;
  /** The user who asks, for example `system:serviceaccount:web:operator`. */
  user?: string;
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

/** Watches that are silent. */
export interface HeldWatches extends Disposable {
  release(): void;
}

/** Makes a server misbehave. */
export interface FaultControl {
  /** Puts a rule in force; among several the oldest that matches acts. */
  add(rule: FaultRule): ActiveFault;
  /** Removes all rules and holds, and trusts the first token again. */
  clear(): void;
  /** Refuses every token with 401 until told otherwise. */
  refuseTokens(refuse: boolean): void;
  /** Trusts this token alone, as when the one before has expired; open watches go on. */
  replaceToken(token: string): void;
  /** Keeps back what open and new watches would tell, until it is released; then all of it is told, in order. */
  holdWatches(options?: { path?: string | RegExp }): HeldWatches;
  /** Breaks watches in the middle of a line: at once, or in the middle of their next event. Returns how many. */
  cutWatches(options?: { path?: string | RegExp; at?: "now" | "next-event" }): number;
  /** Ends watches properly, as a real server does after a while. Returns how many. */
  endWatches(options?: { path?: string | RegExp }): number;
  /** Ends watches with an event that says that their revision is too old (410). Returns how many. */
  expireWatches(options?: { path?: string | RegExp }): number;
  /** Forgets the history: a watch from any revision that a client knows is too old. */
  compact(): void;
  /** Breaks every connection and listens again on the same port, after `downMs`; the objects stay. */
  restart(options?: { downMs?: number }): Promise<void>;
}

interface Rule {
  rule: FaultRule;
  /** How many requests matched and were left alone, since the rule acts only after them. */
  passed: number;
  hits: number;
}

/** Who sends a request, and what for. */
export interface AskedOf {
  readonly verb: string;
  /** Looks up the user, only where a rule is about one; undefined for a token of nobody. */
  readonly user: () => string | undefined;
}

/** The rules in force. */
export class FaultRules {
  #rules: Rule[] = [];
  #refusesTokens = false;
  #token: string | undefined;

  /** The token that is trusted instead of the first one, if there is one. */
  get token(): string | undefined {
    return this.#token;
  }

  get refusesTokens(): boolean {
    return this.#refusesTokens;
  }

  add(rule: FaultRule): ActiveFault {
    const active: Rule = { rule, passed: 0, hits: 0 };
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
  }

  refuseTokens(refuse: boolean): void {
    this.#refusesTokens = refuse;
  }

  replaceToken(token: string): void {
    this.#token = token;
  }

  /** Returns the rule that a request meets, and counts it. */
  take(request: ApiRequest, asked: AskedOf): FaultRule | undefined {
    for (const active of this.#rules) {
      const { rule, hits } = active;
      if (hits >= (rule.times ?? Infinity) || !matches(rule, request, asked)) continue;
      if (active.passed < (rule.after ?? 0)) {
        active.passed++;
        continue;
      }
      active.hits++;
      return rule;
    }
    return undefined;
  }
}

/** True if a path is the one that a rule means. */
export function matchesPath(path: string, wanted: string | RegExp | undefined): boolean {
  if (wanted === undefined) return true;
  return typeof wanted === "string" ? path.includes(wanted) : wanted.test(path);
}

function matches(rule: FaultRule, request: ApiRequest, { verb, user }: AskedOf): boolean {
  const { verb: wanted, path, namespace } = rule;
  if (rule.user !== undefined && rule.user !== user()) return false;
  const isVerb = wanted === undefined || (typeof wanted === "string" ? wanted === verb : wanted.includes(verb));
  const isInNamespace = namespace === undefined || request.target?.namespace === namespace;
  return isVerb && isInNamespace && matchesPath(request.path, path);
}
