import { expired } from "../errors/status-error.js";
import type { Listener } from "../http/listener.js";
import type { Registry } from "../registry/registry.js";
import { matchesPath, type FaultControl, type FaultRules } from "./faults.js";
import type { WatchHolds } from "./watch-holds.js";

/** Returns what makes a server misbehave. */
export function faultControlOf(parts: {
  rules: FaultRules;
  holds: WatchHolds;
  listener: Listener;
  registry: Registry;
}): FaultControl {
  const { rules, holds, listener, registry } = parts;
  const streamsAt = (path: string | RegExp | undefined) =>
    [...listener.streams].filter(([, stream]) => matchesPath(stream.path, path)).map(([connection]) => connection);
  return {
    add: (rule) => rules.add(rule),
    clear() {
      rules.clear();
      holds.clear();
    },
    refuseTokens: (refuse) => rules.refuseTokens(refuse),
    replaceToken: (token) => rules.replaceToken(token),
    holdWatches: ({ path } = {}) => holds.add(path, streamsAt(path)),
    expireWatches({ path } = {}) {
      const streams = streamsAt(path);
      const message = `too old resource version: ${registry.store.revision}`;
      for (const stream of streams) stream.fail(expired(message).status);
      return streams.length;
    },
    cutWatches({ path, at = "now" } = {}) {
      const streams = streamsAt(path);
      for (const stream of streams) stream.cut({ at });
      return streams.length;
    },
    endWatches({ path } = {}) {
      const streams = streamsAt(path);
      for (const stream of streams) stream.end();
      return streams.length;
    },
    compact: () => registry.store.compact(),
    async restart({ downMs = 0 } = {}) {
      await listener.close();
      if (downMs > 0) await new Promise((resolve) => setTimeout(resolve, downMs));
      await listener.open();
    },
  };
}
