// Detects dead connections, and restored servers, which answer 200 and silence to a watch from a version that they have not reached: neither
// differs from a quiet kind. So the server is asked on another connection, before a watch is resumed and while it is quiet.
import { sleep } from "../base/clock.js";
import { ConnectionError } from "../base/errors.js";
import { isNewerVersion } from "../base/kubernetes-object.js";
import { withDeadline } from "../base/promises.js";
import type { ResourceCache } from "../cache/resource-cache.js";
import { METADATA_LIST, metadataOf } from "../client/list-page.js";
import { collectionPath, queryOf } from "../client/resource-path.js";
import { METADATA_OBJECT, type InformerScope, type ListWatchOptions } from "./list-watch-options.js";

const ANSWER_TIMEOUT_MS = 8_000;
// How long the watch may take to bring an event that the check has seen.
const LATE_EVENT_MS = 1_000;
// A server that has started anew answers 410: it does not know what came after an older version.
const CHANGE = /^\s*\{"type":"(?:ADDED|MODIFIED|DELETED|ERROR)"/;

/** Thrown when the server is at an older version than the last one read from it: its store was restored from a backup. */
export class RestoredError extends Error {}

/** Throws a RestoredError if a version of the server is older than one that was read from it before. */
export function requireNotOlder(cache: ResourceCache, version: string, last: string): void {
  if (!cache.comparesVersions || !isNewerVersion(last, version)) return;
  throw new RestoredError(
    `the server is at version ${version} and was at ${last}: its store was restored; the whole state is read again`,
  );
}

/** Asks for the version of the server, by a list of one object; throws if it is older than `last`, or does not come in time. */
export async function checkVersion(options: ListWatchOptions, last: string, signal: AbortSignal): Promise<void> {
  // With a label selector the server would scan all objects. Roles with resourceNames need the field selector.
  const path = pathOf(options, { labelSelector: undefined, shardSelector: undefined, limit: 1 });
  // So few attempts end before the time is over, and tell why they failed.
  const requester = options.requester.with({ maxAttempts: 5 });
  const { body } = await inTime(options, signal, (inner) =>
    requester.send({ method: "GET", path, accept: METADATA_LIST, signal: inner }),
  );
  requireNotOlder(options.cache, metadataOf(body).resourceVersion, last);
}

/** Returns the path of a request for what a list-watch follows. */
export function pathOf(
  { definition, namespace, labelSelector, fieldSelector, shardSelector }: InformerScope,
  parameters: Parameters<typeof queryOf>[0],
): string {
  const query = queryOf({ labelSelector, fieldSelector, shardSelector, ...parameters });
  return collectionPath(definition, namespace) + query;
}

/** Throws if the server has changes that a watch, which has come to `version()`, does not bring: its connection has died. */
export async function checkChanges(
  options: ListWatchOptions,
  version: () => string,
  signal: AbortSignal,
): Promise<void> {
  const before = version();
  if (!(await hasChangesSince(options, before, signal))) return;
  await sleep(LATE_EVENT_MS, signal, options.clock);
  if (version() !== before) return;
  const { server } = options.requester.transport.connection;
  throw new ConnectionError(`the watch at ${server} has died: it does not bring what came after version ${before}`);
}

async function hasChangesSince(options: ListWatchOptions, version: string, signal: AbortSignal): Promise<boolean> {
  const { transport } = options.requester;
  const path = pathOf(options, { watch: true, resourceVersion: version, timeoutSeconds: 1 });
  const enough = new AbortController();
  let first = "";
  const onData = (chunk: Buffer) => {
    first = chunk.toString("latin1", 0, 100);
    enough.abort(new Error("one event is enough"));
  };
  try {
    await inTime(options, signal, (inner) => {
      const either = AbortSignal.any([inner, enough.signal]);
      return transport.send({ method: "GET", path, accept: METADATA_OBJECT, signal: either }, { onData });
    });
  } catch (error) {
    if (!enough.signal.aborted) throw error;
  }
  return CHANGE.test(first);
}

function inTime<Answer>(
  { requester, clock, answerTimeoutMs: timeoutMs = ANSWER_TIMEOUT_MS }: ListWatchOptions,
  signal: AbortSignal,
  ask: (signal: AbortSignal) => Promise<Answer>,
): Promise<Answer> {
  const message = `${requester.transport.connection.server} does not answer`;
  return withDeadline(ask, { timeoutMs, clock, message }, [signal]);
}
