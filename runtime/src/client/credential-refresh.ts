import { readFile } from "node:fs/promises";
import { findError } from "../base/errors.js";
import { type Logger, messageOf } from "../base/logger.js";
import { withDeadline } from "../base/wait.js";
import { type Connection, type Credentials, checkHeaderValue } from "./connection.js";

/** Credentials and their time of expiry. */
export interface ReadCredentials extends Credentials {
  /** In milliseconds since the epoch. Default: valid until the server rejects them */
  readonly expiresAt?: number | undefined;
}

interface RenewalOptions {
  /** Prefix of the error message. */
  readonly what: string;
  /** Reads the credentials. Should stop when the signal is aborted. */
  read(signal: AbortSignal): Promise<ReadCredentials>;
  /** The refresh interval. Default: one minute, like client-go for token files */
  readonly everyMs?: number;
  readonly timeoutMs?: number;
  /** Receives a warning if a refresh fails while the previous credentials are still in use. */
  readonly logger?: Logger | undefined;
}

const MINUTE_MS = 60_000;
// A plugin may prompt the user or call a rate-limited service.
const REJECTION_PAUSE_MS = 5_000;

/**
 * Creates credentials that are refreshed periodically, before they expire, and when the server rejects them, at most every 5 s. Requests share a
 * refresh, and do not wait for it as long as the previous credentials are valid.
 */
export function createRenewedCredentials(options: RenewalOptions): Connection["credentials"] {
  const { what, everyMs = MINUTE_MS, timeoutMs = MINUTE_MS, logger } = options;
  let wasGood = false;
  let current: ReadCredentials | undefined;
  let reading: Promise<Credentials> | undefined;
  let [dueAt, rejectedAt] = [0, 0];
  let isAwaited = false;
  const read = async (): Promise<Credentials> => {
    try {
      const message = `it did not answer within ${timeoutMs / 1000} s`;
      current = await withDeadline((late) => options.read(late), { timeoutMs, message });
      wasGood = true;
      const { expiresAt = Infinity } = current;
      // Refresh before the expiry: by one minute, or by a fifth of the remaining lifetime if that is less.
      dueAt = Math.min(dueAt, expiresAt - Math.min(MINUTE_MS, (expiresAt - Date.now()) / 5));
      return current;
    } catch (error) {
      const isUsed = current !== undefined && !isAwaited;
      if (isUsed) logger?.warn({}, `${what} failed: ${messageOf(error)}; keeping the previous credentials`);
      // Credentials that worked before will eventually be replaced by valid ones, so a terminal error must not end the retries of a running operator.
      const mustStayRetriable = wasGood && findError(error, "TerminalError") !== undefined;
      throw new Error(`${what} failed`, { cause: mustStayRetriable ? new Error(messageOf(error)) : error });
    } finally {
      reading = undefined;
      isAwaited = false;
    }
  };
  return ({ isRejected }) => {
    const now = Date.now();
    if ((current?.expiresAt ?? Infinity) <= now) current = undefined;
    const isReplaced = isRejected && Math.abs(now - rejectedAt) >= REJECTION_PAUSE_MS;
    if (isReplaced) [rejectedAt, isAwaited] = [now, true];
    // A later due time means that the clock was set back.
    const isDue = now >= dueAt || dueAt > now + everyMs;
    if (reading === undefined && (current === undefined || isReplaced || isDue)) {
      dueAt = now + everyMs;
      reading = read();
      // Possibly no request awaits this refresh. The next one starts when it is due or after a 401.
      reading.catch(() => {});
    }
    return isAwaited || current === undefined ? reading! : current;
  };
}

/**
 * Reads a bearer token from a file. Throws if the file is empty, because it is being written: an empty token would make requests anonymous. Throws a
 * TerminalError if the token is not a valid header value.
 */
export async function readTokenFile(file: string): Promise<Credentials> {
  const token = checkNotEmpty(file, (await readFile(file, "utf8")).trim());
  checkHeaderValue(token, `the token in ${file}`);
  return { authorization: `Bearer ${token}` };
}

/** Returns the content of a file. Throws if it is empty. */
export function checkNotEmpty<Content extends string | Buffer>(file: string, content: Content): Content {
  if (content.length > 0) return content;
  throw new Error(`${file} is empty`);
}
