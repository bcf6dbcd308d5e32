import { readFile } from "node:fs/promises";
import { findError } from "../base/errors.js";
import { type Logger, messageOf } from "../base/logger.js";
import { withDeadline } from "../base/wait.js";
import { type Connection, type Credentials, checkHeaderValue } from "./connection.js";

/** Credentials that were read, and until when they are good. */
export interface ReadCredentials extends Credentials {
  /** Milliseconds since the epoch. Default: good until the server rejects them. */
  readonly expiresAt?: number | undefined;
}

interface RenewalOptions {
  /** Begins the message of a failure. */
  readonly what: string;
  /** Reads the credentials; stops when the signal is aborted, if it can. */
  read(signal: AbortSignal): Promise<ReadCredentials>;
  /** After how long they are read again. Default: one minute, as client-go reads token files. */
  readonly everyMs?: number;
  readonly timeoutMs?: number;
  /** Takes a warning where a read fails while the credentials of the one before are still used. */
  readonly logger?: Logger | undefined;
}

const MINUTE_MS = 60_000;
// A plugin may ask people, or a service that limits its callers.
const REJECTION_PAUSE_MS = 5_000;

/**
 * Creates credentials that are read again every so often, before they expire, and when the server rejects them, at most every 5 s. All requests
 * share one read, and none waits for it while the credentials of the read before are still good.
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
      // A minute ahead, or a fifth of what is left where that is less.
      dueAt = Math.min(dueAt, expiresAt - Math.min(MINUTE_MS, (expiresAt - Date.now()) / 5));
      return current;
    } catch (error) {
      const isUsed = current !== undefined && !isAwaited;
      if (isUsed) logger?.warn({}, `${what} failed: ${messageOf(error)}; keeping the previous credentials`);
      // Credentials that worked before will be replaced by working ones: a final error would end the retries of a running operator.
      const isFinal = wasGood && findError(error, "TerminalError") !== undefined;
      throw new Error(`${what} failed`, { cause: isFinal ? new Error(messageOf(error)) : error });
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
    // Later than that only after the clock was set back.
    const isDue = now >= dueAt || dueAt > now + everyMs;
    if (reading === undefined && (current === undefined || isReplaced || isDue)) {
      dueAt = now + everyMs;
      reading = read();
      // No request may be waiting for this read; the next one comes when it is due, or after a 401.
      reading.catch(() => {});
    }
    return isAwaited || current === undefined ? reading! : current;
  };
}

/**
 * Reads a bearer token from a file. An empty file is an error, as it is being written: an empty token would make requests anonymous. Throws a
 * TerminalError if no header may have the token.
 */
export async function readTokenFile(file: string): Promise<Credentials> {
  const token = checkNotEmpty(file, (await readFile(file, "utf8")).trim());
  checkHeaderValue(token, `the token in ${file}`);
  return { authorization: `Bearer ${token}` };
}

/** Returns the content of a file; throws if it is empty. */
export function checkNotEmpty<Content extends string | Buffer>(file: string, content: Content): Content {
  if (content.length > 0) return content;
  throw new Error(`${file} is empty`);
}
