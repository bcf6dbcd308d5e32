import type { ApiStatus } from "../base/errors.js";
import { type KubernetesObject, isNewerVersion } from "../base/kubernetes-object.js";
import { errorOfStatus } from "../client/requester.js";
import { peekIdentity, peekResourceVersion } from "../decode/decode-resource.js";
import { asciiString, endOfValue, findMember, skipSpace, startsWith, type Range } from "../decode/json-scanner.js";
import type { WatchedDecoder } from "./decode-watched.js";
import type { ListWatchConsumer, ListWatchOptions, StreamState } from "./list-watch.js";

const INITIAL_EVENTS_END = "k8s.io/initial-events-end";

/** Thrown when the version to resume from is too old. */
export class ExpiredError extends Error {}

/** Who is told what, and how far the watch has come. */
export interface WatchReaderRun {
  readonly consumer: ListWatchConsumer;
  readonly decoder: WatchedDecoder;
  readonly state: StreamState;
  /** Whether the watch begins with the whole state. */
  readonly isInitial: boolean;
}

/** Turns the lines of a watch into calls of a consumer. */
export class WatchReader {
  readonly #options: ListWatchOptions;
  readonly #consumer: ListWatchConsumer;
  readonly #decoder: WatchedDecoder;
  readonly #state: StreamState;
  #isInitial: boolean;

  constructor(options: ListWatchOptions, { consumer, decoder, state, isInitial }: WatchReaderRun) {
    this.#options = options;
    this.#consumer = consumer;
    this.#decoder = decoder;
    this.#state = state;
    this.#isInitial = isInitial;
  }

  /** Whether the initial events are not complete yet. */
  get isInitial(): boolean {
    return this.#isInitial;
  }

  /** Takes one event; the bytes of the line are changed. */
  read(line: Buffer): void {
    const { type, start, end } = eventIn(line);
    const range = { start, end, lacksType: this.#options.isMetadataOnly === true };
    const parse = () => JSON.parse(line.toString("utf8", range.start, range.end)) as unknown;
    switch (type) {
      case "ADDED":
      case "MODIFIED": {
        if (this.#isKnown(line, range.start)) return;
        const entry = this.#decoder.decode(line, range);
        if (this.#isInitial) return this.#consumer.observeListed(entry);
        this.#consumer.observe(entry);
        this.#state.version = entry.object.metadata.resourceVersion;
        return;
      }
      case "DELETED": {
        const { object: deleted } = this.#decoder.decode(line, range);
        if (this.#isInitial) return this.#consumer.forgetListed(deleted);
        this.#consumer.observeDeletion(deleted);
        this.#state.version = deleted.metadata.resourceVersion;
        return;
      }
      case "BOOKMARK":
        // It is no object, so nothing is left out of it.
        return this.#readBookmark(parse() as KubernetesObject);
      case "ERROR":
        throw watchError(parse() as ApiStatus);
    }
  }

  // What is known needs no decoding, which is most of the work.
  #isKnown(line: Buffer, start: number): boolean {
    if (this.#isInitial) {
      const identity = this.#state.isRelist ? peekIdentity(line, start) : undefined;
      return identity !== undefined && this.#consumer.observeKnown(identity.key, identity.version);
    }
    const version = this.#consumer.expectsOwn() ? peekResourceVersion(line, start) : undefined;
    if (version === undefined || !this.#consumer.observeOwn(version)) return false;
    this.#state.version = version;
    return true;
  }

  // The versions of a server that was restored from a backup begin anew, and a watch from one that is still to come brings nothing.
  #requireNewer(version: string): void {
    const { version: last = "0" } = this.#state;
    if (this.#options.comparesVersions !== false && isNewerVersion(last, version))
      throw new ExpiredError(`the server is at version ${version}, and was at ${last} before`);
  }

  #readBookmark({ metadata }: KubernetesObject): void {
    const version = metadata.resourceVersion ?? "0";
    if (!this.#isInitial) {
      this.#requireNewer(version);
      this.#consumer.observeVersion(version);
    } else if (metadata.annotations?.[INITIAL_EVENTS_END] === "true") {
      this.#isInitial = false;
      this.#consumer.endReplace(version);
    } else return;
    this.#state.version = version;
  }
}

/** An event of a watch, and where its object stands. */
interface WatchEvent extends Range {
  readonly type: string;
}

const CLOSE_BRACE = 0x7d;
// As API servers begin an event, most of which are changes; whatever is written otherwise is scanned.
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

// The object is the last member of an event, so its end is where the event ends: that saves looking through all of it.
function endOfLastMember(line: Buffer): number {
  return line.lastIndexOf(CLOSE_BRACE);
}

function watchError(status: ApiStatus): Error {
  if (status.code === 410 || status.reason === "Expired" || status.reason === "Gone")
    return new ExpiredError(status.message);
  return errorOfStatus(status);
}
