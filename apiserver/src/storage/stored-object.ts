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

  constructor(key: string, content: JsonObject | string, revision: number) {
    this.key = key;
    this.revision = revision;
    if (typeof content === "string") this.#json = content;
    else this.#object = content;
  }

  /** The object as a value. */
  get object(): JsonObject {
    if (this.#object === undefined) {
      this.#object = JSON.parse(this.#json as string) as JsonObject;
      this.#keepValue();
    }
    return this.#object;
  }

  /** The object as JSON text, serialised once per version. */
  get json(): string {
    if (this.#json === undefined) {
      this.#json = inOnePiece(JSON.stringify(this.#object));
      this.#keepValue();
    }
    return this.#json;
  }

  /** Returns the same version of the object in another form. */
  as(object: JsonObject): StoredObject {
    return new StoredObject(this.key, object, this.revision);
  }

  /** Returns the same state as seen at another revision, which is what the events of deleted objects show. */
  at(revision: number): StoredObject {
    return new StoredObject(this.key, withResourceVersion(this.object, revision), revision);
  }

  // Called when both forms are there: the value of the oldest one goes.
  #keepValue(): void {
    const oldest = withValues[next];
    withValues[next] = this;
    next = (next + 1) % MAX_VALUES;
    if (oldest !== undefined) oldest.#object = undefined;
  }
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
