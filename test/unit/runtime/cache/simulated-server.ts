import {
  type DecodedResource,
  type KubernetesObject,
  type ObjectKey,
  refOfKey,
} from "#runtime/base/kubernetes-object.js";

/** An object in parts: each controller writes one of them, and the last belongs to somebody else. */
export interface Simulated extends KubernetesObject {
  readonly parts: readonly number[];
}

/** What the server tells its watches. */
export interface LogEntry {
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  readonly key: ObjectKey;
  readonly object: Simulated;
}

/** Versions as the server counts them; the first has two digits, and soon there are three. */
const FIRST_VERSION = 95;

/** A server that keeps objects and a log of what became of them. */
export class SimulatedServer {
  readonly objects = new Map<ObjectKey, Simulated>();
  readonly log: LogEntry[] = [];
  readonly #parts: number;
  #version = FIRST_VERSION;

  constructor(parts: number) {
    this.#parts = parts;
  }

  get version(): string {
    return `${this.#version}`;
  }

  /** Writes a part of an object, which is created if there is none. */
  write(key: ObjectKey, part: number, value: number): Simulated {
    const live = this.objects.get(key);
    const version = `${++this.#version}`;
    const parts = live === undefined ? Array.from({ length: this.#parts }, () => 0) : [...live.parts];
    parts[part] = value;
    const metadata = { ...refOfKey(key), uid: live?.metadata.uid ?? `uid-${version}`, resourceVersion: version };
    const object = { apiVersion: "v1", kind: "ConfigMap", metadata, parts };
    this.log.push({ type: live === undefined ? "ADDED" : "MODIFIED", key, object });
    this.objects.set(key, object);
    return object;
  }

  /** Deletes an object; returns the version of that. */
  remove(key: ObjectKey): string {
    const live = this.objects.get(key)!;
    const resourceVersion = `${++this.#version}`;
    this.objects.delete(key);
    this.log.push({ type: "DELETED", key, object: { ...live, metadata: { ...live.metadata, resourceVersion } } });
    return resourceVersion;
  }
}

/** Returns the version of an object that has one. */
export function versionOf({ metadata }: KubernetesObject): string {
  return metadata.resourceVersion!;
}

/** Returns an object as a watch would bring it. */
export function entryOf(object: Simulated): DecodedResource {
  return { object: structuredClone(object) };
}
