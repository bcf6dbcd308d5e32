import type { ApiStatus } from "../base/errors.js";
import type { KubernetesObject } from "../base/kubernetes-object.js";
import { errorOfStatus } from "../client/requester.js";
import { versionOf, type ManagedWrite } from "../base/decoded-resource.js";
import { peekIdentity } from "../decode/decode-resource.js";
import { endOfValue, findMember, stringAt, type Range } from "../decode/json-scanner.js";
import { createWatchedDecoder } from "./decode-watched.js";
import type { ListWatchOptions } from "./list-watch-options.js";
import { requireNotOlder } from "./quiet-check.js";

const INITIAL_EVENTS_END = "k8s.io/initial-events-end";

/** Turns the pages and events of a list-watch into calls of its cache, and knows how far the list-watch has come. */
export class WatchReader {
  /** The last version that the server has sent; "0" before the first. */
  version = "0";
  /** Whether the list is complete and the watch goes on from this version. */
  isListed = false;
  /** Whether the server was restored to an older version than this one. */
  isRestored = false;
  readonly #options: ListWatchOptions;
  readonly #decode: ReturnType<typeof createWatchedDecoder>;
  /** How many lists have begun: objects of the first one are unknown. */
  #lists = 0;
  #written: ManagedWrite | undefined;

  constructor(options: ListWatchOptions) {
    this.#options = options;
    this.#decode = createWatchedDecoder({ ...options, onWritten: (write) => (this.#written = write) });
  }

  beginList(): void {
    this.isListed = false;
    this.#lists++;
    this.#options.cache.beginReplace({ isRestored: this.isRestored });
  }

  /** Ends a list as of `version`; throws a RestoredError if it is older than an earlier state, and was not expected to be. */
  endList(version: string): void {
    const { cache } = this.#options;
    if (!this.isRestored) requireNotOlder(cache, version, this.version);
    cache.endReplace(version);
    this.version = version;
    this.isListed = true;
    this.isRestored = false;
    this.#options.onListed?.();
  }

  /** Takes an object of a page, and changes its bytes. */
  readItem(page: Buffer, { start, end }: Range): void {
    if (!this.#isKnown(page, start)) this.#options.cache.observe(this.#decode(page, { start, end, lacksType: true }));
  }

  /** Takes the line of one event, and changes its bytes. */
  read(line: Buffer): void {
    const { cache, isMetadataOnly = false } = this.#options;
    const { type, start, end } = eventIn(line);
    const parse = () => JSON.parse(line.toString("utf8", start, end)) as unknown;
    switch (type) {
      case "ADDED":
      case "MODIFIED":
      case "DELETED": {
        if (type !== "DELETED" && this.#isKnown(line, start)) return;
        const entry = this.#decode(line, { start, end, lacksType: isMetadataOnly });
        if (type === "DELETED") cache.observeDeletion(entry.object);
        else cache.observe(entry, this.isListed ? this.#written : undefined);
        if (this.isListed) this.version = versionOf(entry);
        return;
      }
      case "BOOKMARK":
        // A bookmark has no managed fields to cut.
        return this.#readBookmark(parse() as KubernetesObject);
      case "ERROR":
        throw errorOfStatus(parse() as ApiStatus);
    }
  }

  // Known states are not decoded: decoding is most of the work.
  #isKnown(bytes: Buffer, start: number): boolean {
    const { cache } = this.#options;
    // The first list brings nothing that is known, and the watch nothing but what own writes made.
    const mayBeKnown = this.isListed ? cache.expectsOwn : this.#lists > 1;
    const identity = mayBeKnown ? peekIdentity(bytes, start) : undefined;
    if (identity === undefined) return false;
    const { key, version } = identity;
    if (!this.isListed) return cache.observeKnown(key, version);
    const answer = cache.getVersion(key, version);
    if (answer === undefined) return false;
    cache.observe(answer);
    this.version = version;
    return true;
  }

  #readBookmark({ metadata }: KubernetesObject): void {
    const { cache } = this.#options;
    const version = metadata.resourceVersion ?? "0";
    if (!this.isListed) {
      if (metadata.annotations?.[INITIAL_EVENTS_END] === "true") this.endList(version);
      return;
    }
    requireNotOlder(cache, version, this.version);
    cache.observeVersion(version);
    this.version = version;
  }
}

const CLOSE_BRACE = 0x7d;

/** Returns the type of an event, and where its object stands. */
function eventIn(line: Buffer): Range & { readonly type: string } {
  const type = findMember(line, 0, '"type"');
  const object = findMember(line, 0, '"object"');
  if (type === undefined || object === undefined) throw new SyntaxError("a line of a watch is no event");
  // Mostly the object is the last member: the end of the event is its end, and no scan is needed.
  const end = type > object ? endOfValue(line, object) : line.lastIndexOf(CLOSE_BRACE);
  return { type: stringAt(line, type), start: object, end };
}
