import { Backoff, sleep, type Clock } from "../../base/clock.js";
import { findError } from "../../base/errors.js";
import { messageOf, type Logger } from "../../base/logger.js";
import { withDeadline } from "../../base/promises.js";
import type { Connection } from "../../client/connect/connection.js";
import { loadConnection } from "../../client/connect/load-connection.js";

const FIRST_READ_MS = 70_000;
// A pause is up to twice as long: 30 s.
const CONNECT_BACKOFF = { initialMs: 1_000, factor: 2, maxMs: 15_000 };

/**
 * Finds the connection as `loadConnection` does, and keeps trying until the signal is aborted: files that are being written are complete a moment
 * later. A kubeconfig that does not exist, or a token that no header may have, is a mistake, and ends the start.
 */
export async function findConnection(
  kubeconfig: string | undefined,
  { logger, signal, clock }: { readonly logger: Logger; readonly signal: AbortSignal; readonly clock?: Clock },
): Promise<Connection> {
  const backoff = new Backoff(CONNECT_BACKOFF);
  for (;;) {
    try {
      const connection = await loadConnection(kubeconfig === undefined ? { logger } : { kubeconfig, logger });
      await checkCredentials(connection, signal);
      return connection;
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

// Plugins and the token of a service account are read by the first request; what else they fail by is mended while requests are retried.
async function checkCredentials({ credentials, origin }: Connection, signal: AbortSignal): Promise<void> {
  const message = `the credentials function of ${origin} did not answer within ${FIRST_READ_MS / 1000} s`;
  try {
    await withDeadline(async () => credentials({ isRejected: false }), { timeoutMs: FIRST_READ_MS, message }, [signal]);
  } catch (error) {
    if (findError(error, "TerminalError") !== undefined) throw error;
  }
}
