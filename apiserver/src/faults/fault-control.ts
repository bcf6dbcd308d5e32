import { setImmediate, sleep } from "../clock.js";
import { parseObjectBody } from "../decode/body.js";
import { hintOf } from "../did-you-mean.js";
import { StatusError, badRequest, expired, statusError } from "../errors/status-error.js";
import type { Listener } from "../http/listener.js";
import { renderFailure } from "../http/representation.js";
import type { Answer, ApiRequest } from "../http/request-info.js";
import type { StreamConnection } from "../http/stream-connection.js";
import { MASTERS, type UserInfo } from "../identity/user.js";
import { type JsonObject, type JsonValue, isObject } from "../json.js";
import type { Registry } from "../registry/registry.js";
import {
  type ActiveFault,
  type AskedFor,
  type DisturbedWatches,
  type FaultControl,
  type FaultRule,
  type FaultRules,
  type FaultScope,
  checkScope,
  isInScope,
} from "./fault-injection.js";
import type { Disturbance, WatchFaults } from "./watch-faults.js";

/** Creates the fault control of a server. */
export function faultControlOf(parts: {
  rules: FaultRules;
  watches: WatchFaults;
  listener: Listener;
  registry: Registry;
  askedFor: (request: ApiRequest) => AskedFor;
  /** Notifies the simulated controllers of a new clock. */
  clockChanged: () => void;
}): FaultControl {
  const { rules, watches, listener, registry, askedFor, clockChanged } = parts;
  const setClock = (aheadMs: number): void => {
    rules.shiftClock(aheadMs);
    clockChanged();
  };
  const streamsIn = (scope: FaultScope): StreamConnection[] => {
    checkScope(scope);
    return [...listener.streams].filter(([, request]) => isInScope(scope, askedFor(request))).map(([stream]) => stream);
  };
  const disturb =
    (how: Disturbance) =>
    (scope: FaultScope = {}): DisturbedWatches =>
      watches.add(how, scope, streamsIn(scope));
  const forEach = (scope: FaultScope, act: (stream: StreamConnection) => void): number => {
    const streams = streamsIn(scope);
    for (const stream of streams) act(stream);
    return streams.length;
  };
  return {
    add: (rule) => rules.add(rule, registry.store.revision),
    clear() {
      const wasShifted = rules.aheadMs !== 0;
      rules.clear();
      watches.clear();
      if (wasShifted) clockChanged();
    },
    refuseTokens: (refuse) => rules.refuseTokens(refuse),
    replaceToken: (token) => rules.replaceToken(token),
    holdWatches: disturb("hold"),
    silenceWatches: disturb("silence"),
    duplicateEvents: disturb("duplicate"),
    reorderEvents: disturb("reorder"),
    expireWatches(scope = {}) {
      const { status } = expired(`too old resource version: ${registry.store.revision}`);
      return forEach(scope, (stream) => stream.fail(status));
    },
    cutWatches: ({ at = "now", ...scope } = {}) => forEach(scope, (stream) => stream.cut({ at })),
    endWatches: (scope = {}) => forEach(scope, (stream) => stream.end()),
    compact({ kind } = {}) {
      if (kind === undefined) return registry.store.compact();
      const found = [...registry.resources].find(({ type }) => isInScope({ kind }, kindOnly(kindOf(type))));
      if (found === undefined)
        throw new Error(`kind ${JSON.stringify(kind)} not found: the API server does not serve it`);
      registry.store.compact(found.store);
    },
    shiftClock: setClock,
    async restart({ downMs = 0 } = {}) {
      await listener.close();
      if (downMs > 0) await sleep(downMs);
      await listener.open();
    },
  };
}

/** Formats a kind as scopes name it: `v1/ConfigMap`, `apps/v1/Deployment`. */
export function kindOf({ group, version, kind }: { group: string; version: string; kind: string }): string {
  return `${group === "" ? version : `${group}/${version}`}/${kind}`;
}

function kindOnly(kind: string): AskedFor {
  return { path: "", namespace: undefined, kind: () => kind, user: () => undefined };
}

// Fault control over HTTP, for tests in another process or language.

const ROOT = "/faults";

/** The paths that FaultRequests handles. */
export const FAULT_PATHS = /^\/faults(\/|$)/;

const SCOPE_MEMBERS: Readonly<Record<string, string>> = {
  path: 'string, or an object with the regular expression as "pattern"',
  kind: "string",
  namespace: "string",
  user: "string",
};
const RULE_MEMBERS: Readonly<Record<string, string>> = {
  verb: "string or a list of strings",
  ...SCOPE_MEMBERS,
  after: "number",
  times: "number",
  delayMs: "number",
  answer: "object",
  forbid: "boolean",
  hang: "boolean",
  disconnect: "boolean",
  loseAnswer: "boolean",
  cutAnswer: "boolean",
  stale: "boolean",
};
const WATCH_FAULTS = "cut, end, expire, hold, silence, duplicate, reorder";

type Held = { rule: JsonObject; active: ActiveFault } | { watches: JsonObject; disturbed: DisturbedWatches };

/** Handles requests below `/faults`. Only system:masters is authorized, and fault rules do not apply. */
export class FaultRequests {
  readonly #faults: FaultControl;
  readonly #held = new Map<string, Held>();
  #last = 0;

  constructor(faults: FaultControl) {
    this.#faults = faults;
  }

  answer(request: ApiRequest, user: () => UserInfo | undefined): Answer {
    try {
      if (user()?.groups.includes(MASTERS) !== true) {
        throw statusError({
          code: 403,
          reason: "Forbidden",
          message: "faults: access is forbidden: only members of the group system:masters can inject faults",
        });
      }
      return this.#answer(request, request.path.slice(ROOT.length + 1));
    } catch (error) {
      return renderFailure(error instanceof StatusError ? error : badRequest((error as Error).message), {
        isPretty: false,
      });
    }
  }

  #answer(request: ApiRequest, name: string): Answer {
    const { method } = request;
    if (method === "GET" && name === "") return json(200, { faults: this.#list() });
    if (method === "DELETE") return name === "" ? this.#clear() : this.#remove(name);
    if (method !== "POST")
      throw statusError({
        code: 405,
        reason: "MethodNotAllowed",
        message: `faults: method ${method} is not allowed on ${request.path}`,
      });
    const body = bodyOf(request);
    switch (name) {
      case "":
        return this.#add(body);
      case "watches":
        return this.#watches(body);
      case "tokens":
        return this.#tokens(body);
      case "compact":
        checkMembers(body, { kind: "string" });
        this.#faults.compact(body);
        return json(200, {});
      case "clock":
        checkMembers(body, { aheadMs: "number" });
        this.#faults.shiftClock(Number(body["aheadMs"] ?? 0));
        return json(200, {});
      case "restart":
        // Respond first: the restart breaks all connections.
        setImmediate(() => void this.#faults.restart({ downMs: Number(body["downMs"] ?? 0) }));
        return json(202, {});
      default:
        throw statusError({
          code: 404,
          reason: "NotFound",
          message: `faults: ${request.path} not found: must be ${ROOT}, or below it one of watches, tokens, compact, clock, restart`,
        });
    }
  }

  #add(rule: JsonObject): Answer {
    const active = this.#faults.add(ruleOf(rule));
    return this.#keep({ rule, active });
  }

  #keep(held: Held): Answer {
    const id = String(++this.#last);
    this.#held.set(id, held);
    return json(201, { id });
  }

  #list(): JsonObject[] {
    return [...this.#held].map(([id, held]) =>
      "rule" in held ? { id, rule: held.rule, hits: held.active.hits } : { id, watches: held.watches },
    );
  }

  #clear(): Answer {
    this.#held.clear();
    this.#faults.clear();
    return json(200, {});
  }

  #remove(id: string): Answer {
    const held = this.#held.get(id);
    if (held === undefined)
      throw statusError({ code: 404, reason: "NotFound", message: `faults: fault ${JSON.stringify(id)} not found` });
    this.#held.delete(id);
    if ("rule" in held) held.active.remove();
    else held.disturbed.release();
    return json(200, {});
  }

  #watches(body: JsonObject): Answer {
    checkMembers(body, { do: WATCH_FAULTS, ...SCOPE_MEMBERS, at: "now or next-event" });
    const { do: what, at, ...given } = body;
    const scope = scopeOf(given);
    const disturbed = (watches: DisturbedWatches): Answer => this.#keep({ watches: body, disturbed: watches });
    switch (what) {
      case "cut":
        return json(200, {
          watches: this.#faults.cutWatches({ ...scope, at: at === "next-event" ? "next-event" : "now" }),
        });
      case "end":
        return json(200, { watches: this.#faults.endWatches(scope) });
      case "expire":
        return json(200, { watches: this.#faults.expireWatches(scope) });
      case "hold":
        return disturbed(this.#faults.holdWatches(scope));
      case "silence":
        return disturbed(this.#faults.silenceWatches(scope));
      case "duplicate":
        return disturbed(this.#faults.duplicateEvents(scope));
      case "reorder":
        return disturbed(this.#faults.reorderEvents(scope));
      default:
        throw badRequest(
          `faults: invalid value ${JSON.stringify(what ?? null)} of do: must be one of ${WATCH_FAULTS}${hintOf(String(what), WATCH_FAULTS.split(", "))}`,
        );
    }
  }

  #tokens(body: JsonObject): Answer {
    checkMembers(body, { refuse: "boolean", replace: "string" });
    const { refuse, replace } = body;
    if (typeof refuse === "boolean") this.#faults.refuseTokens(refuse);
    if (typeof replace === "string") this.#faults.replaceToken(replace);
    return json(200, {});
  }
}

function ruleOf(given: JsonObject): FaultRule {
  checkMembers(given, RULE_MEMBERS);
  return scopeOf(given);
}

function scopeOf(given: JsonObject): FaultScope {
  const { path, ...rest } = given;
  const pattern = pathOf(path);
  return { ...(rest as FaultScope), ...(pattern === undefined ? {} : { path: pattern }) };
}

function pathOf(path: JsonValue | undefined): string | RegExp | undefined {
  if (path === undefined || typeof path === "string") return path;
  const pattern = isObject(path) ? path["pattern"] : undefined;
  if (typeof pattern !== "string")
    throw badRequest(`faults: invalid value ${JSON.stringify(path)} of path: must be a ${SCOPE_MEMBERS["path"] ?? ""}`);
  return new RegExp(pattern);
}

function checkMembers(given: JsonObject, known: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(given)) {
    const wanted = Object.hasOwn(known, name) ? known[name] : undefined;
    if (wanted === undefined) {
      const names = Object.keys(known);
      throw badRequest(
        `faults: unknown field ${JSON.stringify(name)}: must be one of ${names.join(", ")}${hintOf(name, names)}`,
      );
    }
    if (["string", "number", "boolean", "object"].includes(wanted) && (typeof value !== wanted || value === null)) {
      throw badRequest(
        `faults: invalid value ${JSON.stringify(value)} of ${name}: must be ${wanted === "object" ? "an object" : `a ${wanted}`}`,
      );
    }
  }
}

function bodyOf({ body, headers }: ApiRequest): JsonObject {
  if (body.length === 0) return {};
  const { value } = parseObjectBody(body, headers["content-type"]);
  if (!isObject(value)) throw badRequest("faults: invalid request body: must be an object");
  return value;
}

function json(status: number, value: JsonObject): Answer {
  return { kind: "answer", status, contentType: "application/json", body: `${JSON.stringify(value)}\n` };
}
