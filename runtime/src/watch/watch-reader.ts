import type { ApiStatus } from "../base/errors.js";
import type { KubernetesObject } from "../base/kubernetes-object.js";
import { errorOfStatus } from "../client/requester.js";
import { peekIdentity, peekResourceVersion, versionOf } from "../decode/decode-resource.js";
import { asciiString, endOfValue, findMember, skipSpace, startsWith, type Range } from "../decode/json-scanner.js";
import type { WatchedDecoder } from "./decode-watched.js";
import type { ListWatchConsumer, ListWatchOptions } from "./list-watch-options.js";
import { requireNotOlder } from "./quiet-check.js";

const INITIAL_EVENTS_END = "k8s.io/initial-events-end";

/** Thrown when the version to resume from is too old. */
export class ExpiredError extends Error {}

/** How far a list-watch has come. */
export interface StreamState {
  /** The last version that the server has sent; "0" before the first. */
  version: string;
  /** Whether the list is complete and the watch goes on from this version. */
  isListed: boolean;
  /** Whether an earlier list brought objects, whose versions are worth comparing. */
  isRelist: boolean;
  /** Whether the server was restored to an older version than this one. */
  isRestored: boolean;
  /** Whether the next list is a WatchList. */
  usesWatchList: boolean;
}

/** The consumer of a list-watch, and how far the list-watch has come. */
export interface WatchReaderRun {
  readonly consumer: ListWatchConsumer;
  readonly decoder: WatchedDecoder;
  readonly state: StreamState;
  /** Called when a list is complete. */
  onListed(): void;
}

/** Ends a list as of `version`; throws a RestoredError if it is older than an earlier state, and was not expected to be. */
export function endListing(options: ListWatchOptions, run: WatchReaderRun, version: string): void {
  const { consumer, state } = run;
  if (!state.isRestored) requireNotOlder(options, version, state.version);
  consumer.endReplace(version);
  state.version = version;
  state.isListed = true;
  state.isRestored = false;
  run.onListed();
}

/** Turns the lines of a watch into calls of a consumer. */
export class WatchReader {
  readonly #options: ListWatchOptions;
  readonly #run: WatchReaderRun;

  constructor(options: ListWatchOptions, run: WatchReaderRun) {
    this.#options = options;
    this.#run = run;
  }

  /** Takes the line of one event, and changes its bytes. */
  read(line: Buffer): void {
    const { consumer, decoder, state } = this.#run;
    const { type, start, end } = eventIn(line);
    const range = { start, end, lacksType: this.#options.isMetadataOnly === true };
    const parse = () => JSON.parse(line.toString("utf8", range.start, range.end)) as unknown;
    switch (type) {
      case "ADDED":
      case "MODIFIED": {
        if (this.#isKnown(line, range.start)) return;
        const entry = decoder.decode(line, range);
        if (!state.isListed) return consumer.observeListed(entry);
        consumer.observe(entry);
        state.version = versionOf(entry);
        return;
      }
      case "DELETED": {
        const entry = decoder.decode(line, range);
        if (!state.isListed) return consumer.forgetListed(entry.object);
        consumer.observeDeletion(entry.object);
        state.version = versionOf(entry);
        return;
      }
      case "BOOKMARK":
        // A bookmark has no managed fields to cut.
        return this.#readBookmark(parse() as KubernetesObject);
      case "ERROR":
        throw watchError(parse() as ApiStatus);
    }
  }

  // Known states are not decoded: decoding is most of the work.
  #isKnown(line: Buffer, start: number): boolean {
    const { consumer, state } = this.#run;
    if (!state.isListed) {
      const identity = state.isRelist ? peekIdentity(line, start) : undefined;
      return identity !== undefined && consumer.observeKnown(identity.key, identity.version);
    }
    const version = consumer.expectsOwn() ? peekResourceVersion(line, start) : undefined;
    if (version === undefined || !consumer.observeOwn(version)) return false;
    state.version = version;
    return true;
  }

  #readBookmark({ metadata }: KubernetesObject): void {
    const { consumer, state } = this.#run;
    const version = metadata.resourceVersion ?? "0";
    if (!state.isListed) {
      if (metadata.annotations?.[INITIAL_EVENTS_END] === "true") endListing(this.#options, this.#run, version);
      return;
    }
    requireNotOlder(this.#options, version, state.version);
    consumer.observeVersion(version);
    state.version = version;
  }
}

/** An event of a watch, and where its object stands. */
interface WatchEvent extends Range {
  readonly type: string;
}

const CLOSE_BRACE = 0x7d;
// The first bytes of an event as API servers write it, the most frequent first. Other forms are scanned.
const BEGINNINGS = ["MODIFIED", "ADDED", "DELETED"].map((type) => ({ type, text: `{"type":"${type}","object":` }));

function eventIn(line: Buffer): WatchEvent {
  for (const { type, text } of BEGINNINGS)
    if (startsWith(line, 0, text)) return { type, start: skipSpace(line, text.length), end: endOfLastMember(line) };
  const type = findMember(line, 0, '"type"');
  const object = findMember(line, 0, '"object"');
  if (type === undefined || object === undefined) throw new SyntaxError("a line of a watch is no event");
  const end = type.key > object.value ? endOfValue(line, object.value) : endOfLastMember(line);
  return { type: asciiString(line, type.value), start: object.value, end };
}

// The object is the last member of an event, so the end of the event is its end: no scan is needed.
function endOfLastMember(line: Buffer): number {
  return line.lastIndexOf(CLOSE_BRACE);
}

function watchError(status: ApiStatus): Error {
  if (status.code === 410 || status.reason === "Expired" || status.reason === "Gone")
    return new ExpiredError(status.message);
  return errorOfStatus(status);
}
