import { Backoff, sleep, type Clock } from "../../base/clock.js";
import { findError } from "../../base/errors.js";
import { messageOf, type Logger } from "../../base/logger.js";
import type { Connection } from "../../client/connect/connection.js";
import { loadConnection } from "../../client/connect/load-connection.js";

// A pause is up to twice as long: 30 s.
const CONNECT_BACKOFF = { initialMs: 1_000, factor: 2, maxMs: 15_000 };

/**
 * Finds the connection as `loadConnection` does, and keeps trying until the signal is aborted: files that are being written are complete a moment
 * later. A kubeconfig that does not exist is a mistake, and ends the start.
 */
export async function findConnection(
  kubeconfig: string | undefined,
  { logger, signal, clock }: { readonly logger: Logger; readonly signal: AbortSignal; readonly clock?: Clock },
): Promise<Connection> {
  const backoff = new Backoff(CONNECT_BACKOFF);
  for (;;) {
    try {
      return await loadConnection(kubeconfig === undefined ? {} : { kubeconfig });
    } catch (error) {
      if (findError(error, "TerminalError") !== undefined) throw error;
      const retryAfterMs = backoff.next();
      logger.warn({ retryAfterMs: Math.round(retryAfterMs) }, `${messageOf(error)}; trying again`);
      await sleep(retryAfterMs, signal, clock).catch(() => {
        throw error;
      });
    }
  }
}
