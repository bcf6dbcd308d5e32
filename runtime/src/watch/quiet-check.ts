// Detects dead connections and restored servers, which a watch cannot tell from a quiet kind.
//
// A server whose store was restored answers 200 and silence to a watch from a version that it has not reached. A dead connection is silent, too.
// So the server is asked on another connection: before a watch is resumed, and while it is quiet.
import { sleep, systemClock } from "../base/clock.js";
import { ConnectionError } from "../base/errors.js";
import { isNewerVersion } from "../base/kubernetes-object.js";
import { metadataOf } from "../client/list-page.js";
import { collectionPath, queryOf } from "../client/resource-path.js";
import { METADATA_LIST, METADATA_OBJECT, type ListWatchOptions } from "./list-watch-options.js";

const ANSWER_TIMEOUT_MS = 8_000;
// How long the watch may take to bring an event that the check has seen.
const LATE_EVENT_MS = 1_000;
const CHANGE = /^\s*\{"type":"(?:ADDED|MODIFIED|DELETED)"/;

/** Thrown when the server is at an older version than the last one read from it: its store was restored from a backup. */
export class RestoredError extends Error {}

/** Throws a RestoredError if a version of the server is older than one that was read from it before. */
export function requireNotOlder({ comparesVersions = true }: ListWatchOptions, version: string, last: string): void {
  if (!comparesVersions || !isNewerVersion(last, version)) return;
  throw new RestoredError(
    `the server is at version ${version} and was at ${last}: its store was restored; the whole state is read again`,
  );
}

/** Asks for the version of the server, by a list of one object; throws if it is older than `last`, or does not come in time. */
export async function checkVersion(options: ListWatchOptions, last: string, signal: AbortSignal): Promise<void> {
  const { definition, namespace, fieldSelector, requester } = options;
  // With a label selector the server would scan all objects. Roles with resourceNames need the field selector.
  const path = collectionPath(definition, namespace) + queryOf({ fieldSelector, limit: 1 });
  const { body } = await inTime(options, signal, (inner) =>
    requester.send({ method: "GET", path, accept: METADATA_LIST, signal: inner }),
  );
  requireNotOlder(options, metadataOf(body).resourceVersion, last);
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
  const { server } = options.transport.connection;
  throw new ConnectionError(`the watch at ${server} has died: it does not bring what came after version ${before}`);
}

async function hasChangesSince(options: ListWatchOptions, version: string, signal: AbortSignal): Promise<boolean> {
  const { definition, namespace, labelSelector, fieldSelector, shardSelector, transport } = options;
  const selectors = { labelSelector, fieldSelector, shardSelector };
  const query = queryOf({ watch: true, ...selectors, resourceVersion: version, timeoutSeconds: 1 });
  const path = collectionPath(definition, namespace) + query;
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

async function inTime<Answer>(
  { transport, clock = systemClock, answerTimeoutMs = ANSWER_TIMEOUT_MS }: ListWatchOptions,
  signal: AbortSignal,
  ask: (signal: AbortSignal) => Promise<Answer>,
): Promise<Answer> {
  const late = new AbortController();
  const error = new ConnectionError(`${transport.connection.server} does not answer`);
  const cancel = clock.schedule(answerTimeoutMs, () => late.abort(error));
  try {
    return await ask(AbortSignal.any([signal, late.signal]));
  } finally {
    cancel();
  }
}
