import type { JsonObject } from "../json.js";

/** One version of one object. Nobody changes it, so that watches, pages and caches may share it. */
export class StoredObject {
  readonly key: string;
  readonly object: JsonObject;
  readonly revision: number;
  #json: string | undefined;

  constructor(key: string, object: JsonObject, revision: number) {
    this.key = key;
    this.object = object;
    this.revision = revision;
  }

  /** The object as JSON text, serialised once per version. */
  get json(): string {
    return (this.#json ??= JSON.stringify(this.object));
  }

  /** Returns the same version of the object in another form. */
  as(object: JsonObject): StoredObject {
    return new StoredObject(this.key, object, this.revision);
  }

  /** Returns the same state as seen at another revision, which is what the events of deleted objects show. */
  at(revision: number): StoredObject {
    return new StoredObject(this.key, withResourceVersion(this.object, revision), revision);
  }
}

/** Returns a shallow copy of `object` that carries `revision` as its resourceVersion. */
export function withResourceVersion(object: JsonObject, revision: number): JsonObject {
  return { ...object, metadata: { ...(object["metadata"] as JsonObject), resourceVersion: String(revision) } };
}
