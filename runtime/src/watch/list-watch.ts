// Follows the objects of one kind until its signal is aborted.
//
// A stream begins with a list (WatchList, or a paged LIST if the server does not support that) and goes on as a watch. After any interruption
// the watch is resumed at the last version. A version that is too old (410), and a server that is older than the version, cause a relist.
// Every other failure is retried after a growing, random delay.
import { Backoff } from "../base/backoff.js";
import { sleep, systemClock } from "../base/clock.js";
import { ConnectionError, isApiError } from "../base/errors.js";
import { itemsOf, metadataOf } from "../client/list-page.js";
import { errorOf } from "../client/requester.js";
import { collectionPath, queryOf } from "../client/resource-path.js";
import { peekIdentity } from "../decode/decode-resource.js";
import type { Range } from "../decode/json-scanner.js";
import { LineSplitter } from "../decode/line-splitter.js";
import { WatchedDecoder } from "./decode-watched.js";
import { METADATA_LIST, METADATA_OBJECT, type ListWatchConsumer, type ListWatchOptions } from "./list-watch-options.js";
import { checkChanges, checkVersion, RestoredError } from "./quiet-check.js";
import { Turns, visitInTurns } from "./turns.js";
import { endListing, ExpiredError, WatchReader, type StreamState, type WatchReaderRun } from "./watch-reader.js";
import { Watchdog } from "./watchdog.js";

export type { ListWatchConsumer, ListWatchOptions } from "./list-watch-options.js";

// The values of client-go's reflector.
const BACKOFF = { initialMs: 400, factor: 2, maxMs: 15_000 };
// A stream that has lasted this long was healthy: the next failure starts the backoff anew.
const HEALTHY_AFTER_MS = 10_000;
const SHORT_LIVED_MS = 1_000;
const MIN_TIMEOUT_SECONDS = 300;
// A quiet watch is checked for changes and for the version of the server by turns, so that a dead one is noticed within 40 s: two intervals
// and the answer. Bookmarks come once a minute at most.
const QUIET_MS = 15_000;
const INITIAL_TIMEOUT_MS = 30_000;
const LIST_LIMIT = 500;

// All list-watches of a process share its event loop.
const turns = new Turns();

/** Thrown when the server does not send a list in a watch. */
class WatchListUnsupportedError extends Error {}

/** Follows the kind until the signal is aborted; resolves then, and never rejects. */
export async function runListWatch(
  options: ListWatchOptions,
  consumer: ListWatchConsumer,
  signal: AbortSignal,
): Promise<void> {
  const { backoff = new Backoff(BACKOFF), clock = systemClock, restores } = options;
  const decoder = new WatchedDecoder(options);
  const state: StreamState = {
    version: "0",
    isListed: false,
    isRelist: false,
    isRestored: false,
    usesWatchList: true,
  };
  let attempt = new AbortController();
  const onRestored = () => {
    Object.assign(state, { isRestored: true, isListed: false });
    consumer.beginReplace({ isRestored: true });
    attempt.abort(new RestoredError("another watch found the store of the server restored to an older state"));
  };
  const leave = restores?.add(onRestored);
  signal.addEventListener("abort", () => leave?.(), { once: true });
  while (!signal.aborted) {
    const startedAt = clock.now();
    const isResumed = state.isListed;
    attempt = new AbortController();
    try {
      const either = AbortSignal.any([signal, attempt.signal]);
      const onListed = () => restores?.settle(onRestored);
      await runOnce(options, { consumer, decoder, state, signal: either, onListed });
      // Without a delay, a server that ends every stream at once would be asked in a tight loop.
      if (clock.now() - startedAt > SHORT_LIVED_MS) backoff.reset();
      else await sleep(backoff.next(), signal, clock);
    } catch (error) {
      if (signal.aborted) return;
      const isExpired = error instanceof ExpiredError || isApiError(error, 410);
      const hasState = state.isListed;
      if (error instanceof RestoredError) {
        state.isRestored = true;
        restores?.tell(onRestored);
      } else restores?.settle(onRestored);
      // A kind that is not served has no history from which a watch could be resumed.
      if (isExpired || state.isRestored || isApiError(error, 404)) state.isListed = false;
      if (error instanceof WatchListUnsupportedError) {
        state.usesWatchList = false;
        continue;
      }
      if (clock.now() - startedAt > HEALTHY_AFTER_MS) backoff.reset();
      // An expired version says nothing about the health of the server, unless it is the version of a fresh list.
      const growsMs = isExpired && isResumed ? BACKOFF.initialMs : backoff.next();
      const retryAfterMs = Math.max(growsMs, isApiError(error) ? (error.retryAfterMs ?? 0) : 0);
      if (!isExpired || !hasState) report(consumer, error, retryAfterMs);
      await sleep(retryAfterMs, signal, clock).catch(() => {});
    }
  }
}

// A consumer that throws must not end the list-watch.
function report(consumer: ListWatchConsumer, error: unknown, retryAfterMs: number): void {
  try {
    consumer.onFailure(error, retryAfterMs);
  } catch {
    // There is nobody left to notify.
  }
}

interface Run extends WatchReaderRun {
  readonly signal: AbortSignal;
}

async function runOnce(options: ListWatchOptions, run: Run): Promise<void> {
  const { state, consumer, signal } = run;
  if (state.isListed) {
    await checkVersion(options, state.version, signal);
    return watch(options, run);
  }
  consumer.beginReplace({ isRestored: state.isRestored });
  try {
    if (!state.usesWatchList) await list(options, run);
    await watch(options, run);
  } finally {
    state.isRelist = true;
  }
}

function selectorsOf({ labelSelector, fieldSelector, shardSelector }: ListWatchOptions) {
  return { labelSelector, fieldSelector, shardSelector };
}

async function list(options: ListWatchOptions, run: Run): Promise<void> {
  const { definition, namespace, requester } = options;
  const { consumer, decoder, state, signal } = run;
  let next: string | undefined;
  let version: string;
  do {
    const query = queryOf({ ...selectorsOf(options), limit: LIST_LIMIT, continue: next });
    const path = collectionPath(definition, namespace) + query;
    const accept = options.isMetadataOnly === true ? { accept: METADATA_LIST } : {};
    const { body } = await requester.send({ method: "GET", path, ...accept, signal });
    ({ resourceVersion: version, continue: next } = metadataOf(body));
    const visit = ({ start, end }: Range) => {
      const identity = state.isRelist ? peekIdentity(body, start) : undefined;
      if (identity !== undefined && consumer.observeKnown(identity.key, identity.version)) return;
      consumer.observeListed(decoder.decode(body, { start, end, lacksType: true }));
    };
    await visitInTurns(itemsOf(body), { turns, visit, isOver: () => signal.aborted });
    signal.throwIfAborted();
  } while (next !== undefined);
  endListing(options, run, version);
  // The next relist tries WatchList again: a busy server may have ended the stream.
  state.usesWatchList = true;
}

async function watch(options: ListWatchOptions, run: Run): Promise<void> {
  const { definition, namespace, transport, quietMs = QUIET_MS, initialTimeoutMs = INITIAL_TIMEOUT_MS } = options;
  const { state, consumer, signal } = run;
  const isInitial = !state.isListed;
  const query = queryOf({
    watch: true,
    allowWatchBookmarks: true,
    ...selectorsOf(options),
    ...(isInitial
      ? { sendInitialEvents: true, resourceVersionMatch: "NotOlderThan" }
      : { resourceVersion: state.version }),
    timeoutSeconds: MIN_TIMEOUT_SECONDS + Math.floor(Math.random() * MIN_TIMEOUT_SECONDS),
  });
  const reader = new WatchReader(options, run);
  let checks = 0;
  const watchdog = new Watchdog({
    signal,
    clock: options.clock,
    quietMs: () => (state.isListed ? quietMs : initialTimeoutMs),
    check: async (inner) => {
      if (!watchdog.wasReset)
        throw new ConnectionError(`${transport.connection.server} does not answer: nothing arrived`);
      // A server that answers but sends no bookmark at the end of the list does not support sendInitialEvents.
      if (!state.isListed) throw new WatchListUnsupportedError();
      if (checks++ % 2 === 0) await checkChanges(options, () => state.version, inner);
      else await checkVersion(options, state.version, inner);
    },
  });
  const splitter = new LineSplitter();
  let isOver = false;
  const eachLine = { turns, visit: (line: Buffer) => reader.read(line), isOver: () => isOver };
  try {
    const response = await transport.send(
      {
        method: "GET",
        path: collectionPath(definition, namespace) + query,
        ...(options.isMetadataOnly === true ? { accept: METADATA_OBJECT } : {}),
        signal: watchdog.signal,
      },
      {
        onStart(status) {
          watchdog.reset();
          if (status === 200) consumer.onConnected();
        },
        onData(chunk) {
          const rest = visitInTurns(splitter.split(chunk), eachLine);
          watchdog.reset();
          return rest;
        },
      },
    );
    if (response.status !== 200) {
      const error = errorOf(response);
      if (isInitial && (error.code === 400 || error.code === 422)) throw new WatchListUnsupportedError();
      throw error;
    }
    // A server that does not support sendInitialEvents ends the stream without the bookmark.
    if (!state.isListed) throw new WatchListUnsupportedError();
  } catch (error) {
    throw watchdog.failure ?? error;
  } finally {
    isOver = true;
    watchdog.stop();
  }
}
