// Follows the objects of one kind until its signal is aborted: by a list (WatchList, or a paged LIST if the server does not support that) that
// goes on as a watch. After an interruption the watch is resumed at the last version. A version that is too old (410), and a server that is
// older than the version, cause a relist. Every other failure is retried after a growing, random delay.
import { Backoff, sleep, systemClock, turns } from "../base/clock.js";
import { ConnectionError, isApiError } from "../base/errors.js";
import { abortWith, callUnawaited } from "../base/promises.js";
import { METADATA_LIST, itemsOf, metadataOf, pagesOf } from "../client/list-page.js";
import { errorOf } from "../client/requester.js";
import { METADATA_OBJECT, type ListWatchOptions } from "./list-watch-options.js";
import { checkChanges, checkVersion, pathOf, RestoredError } from "./quiet-check.js";
import { Restores } from "./restores.js";
import { WatchReader } from "./watch-reader.js";

// The values of client-go's reflector.
const BACKOFF = { initialMs: 400, factor: 2, maxMs: 15_000 };
// A stream that has lasted this long was healthy: the next failure starts the backoff anew.
const HEALTHY_AFTER_MS = 10_000;
const SHORT_LIVED_MS = 1_000;
const MIN_TIMEOUT_SECONDS = 300;
// A quiet watch is checked for changes and for the version of the server, so that a dead one is noticed within 40 s: the interval and the
// answer. Bookmarks come once a minute at most.
const QUIET_MS = 30_000;
const INITIAL_TIMEOUT_MS = 30_000;

/** Thrown when the server does not send a list in a watch. */
class WatchListUnsupportedError extends Error {}

/** Follows the kind until the signal is aborted; resolves then, and never rejects. */
export async function runListWatch(options: ListWatchOptions, signal: AbortSignal): Promise<void> {
  const { backoff = new Backoff(BACKOFF), clock = systemClock, restores = new Restores() } = options;
  let attempt = new AbortController();
  const onRestored = () => {
    reader.isRestored = true;
    reader.beginList();
    attempt.abort(new RestoredError("another watch found the store of the server restored to an older state"));
  };
  const onListed = () => {
    restores.settle(onRestored);
    options.onListed?.();
  };
  const reader = new WatchReader({ ...options, onListed });
  let usesWatchList = true;
  const leave = restores.add(onRestored);
  signal.addEventListener("abort", leave, { once: true });
  while (!signal.aborted) {
    const startedAt = clock.now();
    const isResumed = reader.isListed;
    attempt = new AbortController();
    const leaveAttempt = abortWith(attempt, signal);
    try {
      if (isResumed) await checkVersion(options, reader.version, attempt.signal);
      else {
        reader.beginList();
        if (!usesWatchList) await list(options, reader, attempt.signal);
        // The next relist tries WatchList again: a busy server may have ended the stream.
        usesWatchList = true;
      }
      await watch(options, reader, attempt.signal);
      options.onEnded?.("ended");
      // Without a delay, a server that ends every stream at once would be asked in a tight loop.
      if (clock.now() - startedAt > SHORT_LIVED_MS) backoff.reset();
      else await sleep(backoff.next(), signal, clock);
    } catch (error) {
      if (signal.aborted) return;
      const isExpired = isApiError(error) && (error.code === 410 || /^(Expired|Gone)$/.test(error.reason));
      const hasState = reader.isListed;
      if (error instanceof RestoredError) {
        reader.isRestored = true;
        restores.tell(onRestored);
      } else restores.settle(onRestored);
      // A kind that is not served has no history from which a watch could be resumed.
      if (isExpired || reader.isRestored || isApiError(error, 404)) reader.isListed = false;
      if (error instanceof WatchListUnsupportedError) {
        usesWatchList = false;
        continue;
      }
      options.onEnded?.(isExpired ? "expired" : reader.isRestored ? "restored" : "failed");
      if (clock.now() - startedAt > HEALTHY_AFTER_MS) backoff.reset();
      // An expired version says nothing about the health of the server, unless it is the version of a fresh list.
      const growsMs = isExpired && isResumed ? BACKOFF.initialMs : backoff.next();
      const retryAfterMs = Math.max(growsMs, isApiError(error) ? (error.retryAfterMs ?? 0) : 0);
      // A listener that throws must not end the list-watch.
      const report = () => options.onFailure?.(error, retryAfterMs);
      if (!isExpired || !hasState) callUnawaited(report, { onFailure: () => {} });
      await sleep(retryAfterMs, signal, clock).catch(() => {});
    } finally {
      leaveAttempt();
    }
  }
}

async function list(options: ListWatchOptions, reader: WatchReader, signal: AbortSignal): Promise<void> {
  const pages = pagesOf(options.requester, {
    accept: options.isMetadataOnly === true ? METADATA_LIST : undefined,
    signal,
    pathOf: (page) => pathOf(options, page),
    read: (body) => ({ metadata: metadataOf(body), body }),
    onRestart: () => reader.beginList(),
  });
  let version = "";
  for await (const { metadata, body } of pages) {
    await turns.visit(itemsOf(body), (item) => reader.readItem(body, item), signal);
    signal.throwIfAborted();
    version = metadata.resourceVersion;
  }
  reader.endList(version);
}

async function watch(options: ListWatchOptions, reader: WatchReader, signal: AbortSignal): Promise<void> {
  const { quietMs = QUIET_MS, initialTimeoutMs = INITIAL_TIMEOUT_MS, clock = systemClock } = options;
  const { transport } = options.requester;
  const isInitial = !reader.isListed;
  const path = pathOf(options, {
    watch: true,
    allowWatchBookmarks: true,
    ...(isInitial
      ? { sendInitialEvents: true, resourceVersionMatch: "NotOlderThan" }
      : { resourceVersion: reader.version }),
    timeoutSeconds: MIN_TIMEOUT_SECONDS + Math.floor(Math.random() * MIN_TIMEOUT_SECONDS),
  });
  let hasArrived = false;
  let receivedAt = clock.now();
  const over = new AbortController();
  const died = new AbortController();
  const running = AbortSignal.any([signal, over.signal]);
  const checkWhenQuiet = async () => {
    while (!running.aborted) {
      const leftMs = receivedAt + (reader.isListed ? quietMs : initialTimeoutMs) - clock.now();
      // From the end of the list on, it is looked at more often.
      if (leftMs > 0) await sleep(Math.min(leftMs, quietMs), running, clock);
      else {
        if (!hasArrived) throw new ConnectionError(`${transport.connection.server} does not answer: nothing arrived`);
        // A server that answers but sends no bookmark at the end of the list does not support sendInitialEvents.
        if (!reader.isListed) throw new WatchListUnsupportedError();
        await checkChanges(options, () => reader.version, running);
        await checkVersion(options, reader.version, running);
        receivedAt = clock.now();
      }
    }
  };
  checkWhenQuiet().catch((error: unknown) => running.aborted || died.abort(error));
  const splitter = transport.createEventSplitter({ method: "GET", path });
  const accept = options.isMetadataOnly === true ? METADATA_OBJECT : undefined;
  try {
    const response = await transport.send(
      { method: "GET", path, accept, signal: AbortSignal.any([signal, died.signal]) },
      {
        onStart(status) {
          hasArrived = true;
          receivedAt = clock.now();
          if (status === 200) options.onConnected?.();
        },
        onData(chunk) {
          receivedAt = clock.now();
          options.onReceived?.();
          return turns.visit(splitter.split(chunk), (line) => reader.read(line), over.signal);
        },
      },
    );
    if (response.status !== 200) {
      const error = errorOf(response);
      if (isInitial && (error.code === 400 || error.code === 422)) throw new WatchListUnsupportedError();
      throw error;
    }
    // A server that does not support sendInitialEvents ends the stream without the bookmark.
    if (!reader.isListed) throw new WatchListUnsupportedError();
  } catch (error) {
    throw died.signal.reason ?? error;
  } finally {
    over.abort(new Error("the stream has ended"));
  }
}
