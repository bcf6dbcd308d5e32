import { sleep } from "../real-time.js";
import { expired } from "../errors/status-error.js";
import type { Listener } from "../http/listener.js";
import type { ApiRequest } from "../http/message.js";
import type { StreamConnection } from "../http/stream-connection.js";
import type { Registry } from "../registry/registry.js";
import { isInScope, type AskedFor, type FaultScope } from "./fault-scope.js";
import { checkScope, type DisturbedWatches, type FaultControl, type FaultRules } from "./faults.js";
import type { Disturbance, WatchFaults } from "./watch-faults.js";

/** Returns what makes a server misbehave. */
export function faultControlOf(parts: {
  rules: FaultRules;
  watches: WatchFaults;
  listener: Listener;
  registry: Registry;
  askedFor: (request: ApiRequest) => AskedFor;
  /** Tells the simulated controllers. */
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
      if (found === undefined) throw new Error(`no kind ${kind} is served`);
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

/** Returns a kind as scopes name it. */
export function kindOf({ group, version, kind }: { group: string; version: string; kind: string }): string {
  return `${group === "" ? version : `${group}/${version}`}/${kind}`;
}

function kindOnly(kind: string): AskedFor {
  return { path: "", namespace: undefined, kind: () => kind, user: () => undefined };
}
