import { LongIntegers, exactTextOf, parseRounded, withLongIntegers } from "../exact-numbers.js";
import type { JsonObject } from "../json.js";

// As many objects are kept as values beside their text: a value takes three times as much memory.
const MAX_VALUES = 1024;

/**
 * One version of one object. Nobody changes it, so that watches, pages and caches may share it.
 *
 * Its text stays; the value of one that was not used lately is parsed anew when it is needed.
 */
export class StoredObject {
  readonly key: string;
  readonly revision: number;
  #object: JsonObject | undefined;
  #json: string | undefined;
  /** Where the text has its long integers from. */
  readonly #sources: readonly LongIntegers[];
  /** Computed on first use, because most objects have none. */
  #integers: LongIntegers | undefined | "unknown";

  /** `sources` have the integers that a value lost. */
  constructor(key: string, content: JsonObject | string, revision: number, sources: readonly LongIntegers[] = []) {
    this.key = key;
    this.revision = revision;
    this.#sources = sources;
    this.#integers = typeof content === "string" || sources.length > 0 ? "unknown" : undefined;
    if (typeof content === "string") this.#json = content;
    else this.#object = content;
  }

  /** The object as a value. */
  get object(): JsonObject {
    if (this.#object === undefined) {
      const json = this.#json as string;
      this.#object = this.#integers === undefined ? (JSON.parse(json) as JsonObject) : parseRounded(json);
      this.#keepValue();
    }
    return this.#object;
  }

  /** The object as JSON text, serialised once per version. */
  get json(): string {
    if (this.#json === undefined) {
      const object = this.#object as JsonObject;
      const sources = this.#sources;
      this.#json = inOnePiece(sources.length === 0 ? JSON.stringify(object) : exactTextOf(object, sources));
      this.#keepValue();
    }
    return this.#json;
  }

  /** The integers of the object that its value has rounded. */
  get integers(): LongIntegers | undefined {
    if (this.#integers === "unknown") this.#integers = LongIntegers.inJson(this.json);
    return this.#integers;
  }

  /** The object as a value in which those integers are bigints, for who prints it. */
  get exactObject(): JsonObject {
    const { integers, object } = this;
    return integers === undefined ? object : withLongIntegers(object, [integers]);
  }

  /** Returns the same version of the object in another form, in which the integers of `sources` come first. */
  as(object: JsonObject, sources: readonly LongIntegers[] = []): StoredObject {
    return new StoredObject(this.key, object, this.revision, withThose(sources, this));
  }

  /** Returns the same state as seen at another revision, which is what the events of deleted objects show. */
  at(revision: number): StoredObject {
    const object = withResourceVersion(this.object, revision);
    return new StoredObject(this.key, object, revision, withThose([], this));
  }

  // Called when both forms are there: the value of the oldest one goes.
  #keepValue(): void {
    const oldest = withValues[next];
    withValues[next] = this;
    next = (next + 1) % MAX_VALUES;
    if (oldest !== undefined) oldest.#object = undefined;
  }
}

/** Appends the integers of a stored object to the sources. */
export function withThose(sources: readonly LongIntegers[], stored: StoredObject | undefined): readonly LongIntegers[] {
  const integers = stored?.integers;
  return integers === undefined ? sources : [...sources, integers];
}

// V8 makes a text of several pieces, which take more memory. It joins them when it has to look at the text.
function inOnePiece(text: string): string {
  Number(text);
  return text;
}

const withValues: StoredObject[] = [];
let next = 0;

/** Returns a shallow copy of `object` that carries `revision` as its resourceVersion. */
export function withResourceVersion(object: JsonObject, revision: number): JsonObject {
  return { ...object, metadata: { ...(object["metadata"] as JsonObject), resourceVersion: String(revision) } };
}
