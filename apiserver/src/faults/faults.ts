/** What real servers do only when something is wrong with them, on request: for tests of clients. */
import { checkNames, hintOf } from "../did-you-mean.js";
import { isInScope, type AskedFor, type FaultScope } from "./fault-scope.js";

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
